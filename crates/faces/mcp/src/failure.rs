//! A failed tool call on the wire: one object that is both the structured error of MCP-ERR-2 and the canonical error of
//! ERR-1, as text for the model and as data for programs.

use std::backtrace::Backtrace;

use orchestr8_contract::content::Content;
use orchestr8_contract::envelope::{Surroundings, Thrown};
use orchestr8_contract::id::{CorrelationId, RunId};
use orchestr8_contract::{Code, Envelope, Fault};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::schema::Mistake;
use serde_json::{Map, Value};

use crate::body::{Body, json};
use crate::era::{Era, Revision};
use crate::face::Face;
use crate::to_wire::{self, seed_code};
use crate::wire::push_string;

/// A tool's name is told with at most this many characters, however long a name somebody made up.
const NAME_CHARACTERS: usize = 128;

/// What a tool says about its own failure is repeated up to this length; all of it follows as it was said.
const WORDS_CHARACTERS: usize = 2000;

/// A call that failed.
pub struct Failed<'a> {
    pub tool: &'a str,
    pub run: RunId,
    pub correlation: &'a CorrelationId,
    pub era: Era,
}

impl Face {
    /// The answer to a call that failed.
    pub(crate) fn failed(&self, call: &Failed<'_>, fault: &Fault) -> Body {
        let payload = self.payload(call, fault);
        let body = Body::content(&payload);
        structured(body, &payload, call.era).raw("isError", "true")
    }

    /// The answer to a call whose tool reports a failure of its own: the canonical error, then what the tool said.
    pub(crate) fn failed_by_itself(
        &self,
        call: &Failed<'_>,
        blocks: Vec<Content>,
        own: Option<Value>,
        meta: Option<&Map<String, Value>>,
    ) -> Body {
        let words: String = to_wire::joined(&blocks).chars().take(WORDS_CHARACTERS).collect();
        let message = if words.is_empty() { String::from("the tool reports a failure") } else { words };
        let thrown = own.map_or_else(|| Thrown::Text(message.clone()), Thrown::Value);
        let mut envelope = Envelope::from_unknown(thrown, None, self.surroundings(call));
        envelope.human_message = message;
        let payload = self.payload(call, &envelope.into_fault());
        let shown = std::iter::once(Content::text(payload.as_str())).chain(blocks);
        let shown: Vec<Content> = shown.map(|block| to_wire::shown(block, call.era)).collect();
        let mut body = Body::with_capacity(512).value("content", &shown);
        body = structured(body, &payload, call.era);
        for (name, value) in meta.into_iter().flatten() {
            body = body.meta(name, value);
        }
        body.raw("isError", "true")
    }

    fn surroundings(&self, call: &Failed<'_>) -> Surroundings {
        Surroundings {
            tool_name: call.tool.chars().take(NAME_CHARACTERS).collect(),
            timestamp: iso(self.kernel().ports().clock.now_ms()),
            ..Surroundings::default()
        }
    }

    /// The members of both errors, always in the same order (ERR-3).
    fn payload(&self, call: &Failed<'_>, fault: &Fault) -> String {
        let envelope = self.envelope(call, fault);
        let mut text = String::with_capacity(512);
        text.push_str("{\"code\":\"");
        text.push_str(seed_code(fault.kind()).as_str());
        text.push_str("\",\"message\":");
        push_string(&mut text, &fault.message);
        if let Some(details) = details(fault) {
            text.push_str(",\"details\":");
            text.push_str(&Value::Object(details).to_string());
        }
        text.push_str(",\"runId\":\"");
        text.push_str(&call.run.to_string());
        text.push_str("\",\"correlationId\":");
        push_string(&mut text, call.correlation.as_str());
        text.push(',');
        let envelope = json(&envelope);
        text.push_str(envelope.strip_prefix('{').unwrap_or(&envelope));
        text
    }

    /// The canonical error somebody has made already, or one made of what is known here.
    fn envelope(&self, call: &Failed<'_>, fault: &Fault) -> Envelope {
        let mut envelope = match &fault.envelope {
            Some(envelope) => (**envelope).clone(),
            None => {
                let mut envelope = Envelope::of(fault, self.surroundings(call));
                if let Some(mistake) = fault.cause().and_then(|cause| cause.downcast_ref::<Mistake>()) {
                    envelope.error_code = mistake.code();
                }
                envelope
            }
        };
        if self.settings().debug_stack && envelope.stack_trace.is_none() {
            envelope.stack_trace = Some(Backtrace::force_capture().to_string());
        }
        envelope
    }
}

/// The details of a fault, with our own code among them when the seed has no word for it.
fn details(fault: &Fault) -> Option<Map<String, Value>> {
    let mut details = fault.details.as_deref().cloned().unwrap_or_default();
    if seed_code(fault.kind()) != fault.code {
        details.insert("code".into(), fault.code.as_str().into());
    }
    (!details.is_empty()).then_some(details)
}

fn structured(body: Body, payload: &str, era: Era) -> Body {
    if era.since(Revision::V2025_06_18) { body.raw("structuredContent", payload) } else { body }
}

/// The fault of a name that is no tool for this client.
pub fn no_such_tool(name: &str) -> Fault {
    let name: String = name.chars().take(NAME_CHARACTERS).collect();
    Fault::new(Code::NotFound, format!("there is no tool named '{name}'")).with("name", name)
}

#[cfg(test)]
mod tests;
