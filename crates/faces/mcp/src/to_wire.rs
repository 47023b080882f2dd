//! What an outcome looks like on the wire: results of tools, contents of resources, prompts, and errors of three kinds.

use orchestr8_contract::content::{Content, ResourceContents, ResourceData};
use orchestr8_contract::id::RunId;
use orchestr8_contract::{Code, Fault, Kind, Output};
use orchestr8_kernel::action::Action;
use orchestr8_kernel::peer::{About, Ask};
use serde_json::{Map, Value, json};

use crate::body::{Body, json};
use crate::era::{Era, Revision, TASKS};
use crate::from_wire::Capabilities;
use crate::wire::{self, Error};

/// A detail by which an action says that its failure is one of the protocol: the JSON-RPC code to answer with.
pub const PROTOCOL_ERROR: &str = "protocolError";

/// The seven codes of seed 000, one for every kind of failure.
pub fn seed_code(kind: Kind) -> Code {
    match kind {
        Kind::Invalid | Kind::Conflict | Kind::Dependency | Kind::State => Code::InvalidArgument,
        Kind::NotFound => Code::NotFound,
        Kind::Unauthenticated | Kind::Forbidden => Code::Unauthorized,
        Kind::Exhausted => Code::ResourceExhausted,
        Kind::Timeout => Code::Timeout,
        Kind::Cancelled | Kind::Unavailable | Kind::Unknown | Kind::Internal => Code::Internal,
    }
}

/// A failure outside a tool call: always a protocol error.
pub fn protocol_error(fault: &Fault, run: RunId) -> Error {
    let code = match fault.kind() {
        Kind::Invalid | Kind::NotFound => wire::INVALID_PARAMS,
        Kind::Unauthenticated
        | Kind::Forbidden
        | Kind::Conflict
        | Kind::Exhausted
        | Kind::Timeout
        | Kind::Cancelled
        | Kind::Unavailable
        | Kind::Dependency
        | Kind::State
        | Kind::Unknown
        | Kind::Internal => wire::INTERNAL,
    };
    let mut error = Error::new(code, fault.message.clone()).with("code", fault.code.as_str());
    if let Some(details) = &fault.details {
        error = error.with("details", Value::Object((**details).clone()));
    }
    error.with("runId", run.to_string())
}

/// A failure that the protocol itself has an error for, whatever was called.
pub fn special_error(fault: &Fault, era: Era) -> Option<Error> {
    let detail = |name: &str| fault.details.as_deref().and_then(|details| details.get(name));
    if let Some(code) = detail(PROTOCOL_ERROR).and_then(Value::as_i64) {
        return Some(Error::new(code, fault.message.clone()));
    }
    if fault.code != Code::CapabilityMissing || !era.is_modern() {
        return None;
    }
    let required = detail("requiredCapabilities").cloned().unwrap_or_else(|| json!({}));
    Some(Error::new(wire::CAPABILITY_MISSING, fault.message.clone()).with("requiredCapabilities", required))
}

/// The client lacks something that it would have to declare.
pub fn capability_missing(required: Value) -> Fault {
    Fault::new(Code::CapabilityMissing, "Missing required client capability")
        .with("requiredCapabilities", required)
}

/// A modern client must declare the tasks extension for this.
pub fn tasks_undeclared() -> Error {
    Error::new(wire::CAPABILITY_MISSING, "Missing required client capability")
        .with("requiredCapabilities", json!({"extensions": {TASKS: {}}}))
}

pub fn ask_impossible(about: About) -> Fault {
    capability_missing(Capabilities::required(about))
}

/// `{"method":…,"params":…}`, as the modern era puts questions into a result.
pub fn input_request(ask: &Ask) -> Value {
    json!({"method": ask_method(ask.about), "params": ask.params})
}

pub fn ask_method(about: About) -> &'static str {
    match about {
        About::Sample => "sampling/createMessage",
        About::Elicit => "elicitation/create",
        About::Roots => "roots/list",
    }
}

/// The text a JSON result is shown as (MCP-WRAP). None: not serializable, which no `Value` is.
pub fn result_text(value: &Value) -> Option<String> {
    serde_json::to_string(value).ok()
}

/// The result of a tool that gave JSON. It is also structured content where the tool declares its shape.
pub fn json_result(text: &str, value: &Value, action: Option<&Action>, era: Era) -> Body {
    let structured = value.is_object() && action.is_some_and(|action| action.output.is_some());
    let body = Body::content(text);
    let body = if structured && era.since(Revision::V2025_06_18) {
        body.raw("structuredContent", text)
    } else {
        body
    };
    body.raw("isError", "false")
}

/// The result of a tool that gave blocks of content.
pub fn blocks_result(
    blocks: Vec<Content>,
    structured: Option<&Value>,
    meta: Option<&Map<String, Value>>,
    era: Era,
) -> Body {
    let blocks: Vec<Content> = blocks.into_iter().map(|block| shown(block, era)).collect();
    let mut body = Body::with_capacity(256).value("content", &blocks);
    if let (Some(structured), true) = (structured, era.since(Revision::V2025_06_18)) {
        body = body.value("structuredContent", structured);
    }
    for (name, value) in meta.into_iter().flatten() {
        body = body.meta(name, value);
    }
    body.raw("isError", "false")
}

/// A block as a revision knows it: kinds of content that came later are told in words.
pub fn shown(block: Content, era: Era) -> Content {
    match block {
        Content::Audio { mime_type, .. } if !era.since(Revision::V2025_03_26) => {
            Content::text(format!("[audio of type {mime_type}, which this protocol revision cannot carry]"))
        }
        Content::ResourceLink(link) if !era.since(Revision::V2025_06_18) => {
            Content::text(format!("{}: {}", link.name, link.uri))
        }
        Content::Text { .. }
        | Content::Image { .. }
        | Content::Audio { .. }
        | Content::ResourceLink(_)
        | Content::Resource { .. } => block,
    }
}

/// What a resource holds. An action that gave something else than contents is shown as text under the address asked for.
pub fn resource_result(output: &Output, uri: &str) -> Body {
    let text = |mime_type: &str, text: String| ResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(mime_type.to_owned()),
        data: ResourceData::Text(text),
        meta: None,
    };
    let contents = match output {
        Output::Resource { contents } => json(contents),
        Output::Json { value } => json(&[text("application/json", value.to_string())]),
        Output::Blocks { blocks, .. } => json(&[text("text/plain", joined(blocks))]),
        Output::Prompt { messages, .. } => json(&[text("application/json", json(messages))]),
    };
    Body::empty().raw("contents", &contents)
}

/// A prompt made ready. An action that gave something else than messages says it as the user.
pub fn prompt_result(output: &Output, era: Era) -> Body {
    let one = |text: String| json(&[json!({"role": "user", "content": Content::text(text)})]);
    let (description, messages) = match output {
        Output::Prompt { description, messages } => {
            let messages: Vec<Value> = messages
                .iter()
                .map(|message| json!({"role": message.role, "content": shown(message.content.clone(), era)}))
                .collect();
            (description.as_deref(), json(&messages))
        }
        Output::Json { value: Value::String(text) } => (None, one(text.clone())),
        Output::Json { value } => (None, one(value.to_string())),
        Output::Blocks { blocks, .. } => (None, one(joined(blocks))),
        Output::Resource { contents } => (None, one(json(contents))),
    };
    let body = Body::empty().raw("messages", &messages);
    match description {
        Some(description) => body.text("description", description),
        None => body,
    }
}

pub fn joined(blocks: &[Content]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Content::Text { text, .. } => Some(text.as_str()),
        Content::Image { .. }
        | Content::Audio { .. }
        | Content::ResourceLink(_)
        | Content::Resource { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_of_the_seeds_codes() {
        for code in Code::ALL {
            let seed = seed_code(code.kind()).as_str();
            assert!(
                [
                    "INVALID_ARGUMENT",
                    "NOT_FOUND",
                    "TIMEOUT",
                    "RESOURCE_EXHAUSTED",
                    "INTERNAL",
                    "UNAUTHORIZED"
                ]
                .contains(&seed)
            );
        }
    }

    #[test]
    fn a_missing_capability_is_an_error_of_the_modern_protocol_only() {
        let fault = ask_impossible(About::Sample);
        let error = special_error(&fault, Era::Modern).unwrap();
        assert_eq!((error.code, error.status), (-32021, 400));
        assert_eq!(error.data["requiredCapabilities"], json!({"sampling": {}}));
        assert!(special_error(&fault, Era::Legacy(Revision::NEWEST)).is_none());
    }

    #[test]
    fn older_revisions_are_told_in_words_what_they_cannot_carry() {
        let audio = Content::audio("", "audio/wav");
        assert!(matches!(shown(audio.clone(), Era::Legacy(Revision::V2024_11_05)), Content::Text { .. }));
        assert_eq!(shown(audio.clone(), Era::Modern), audio);
    }
}
