//! `llm.complete`: one answer of a model, without a session; as JSON of a schema if that is asked for.

mod structured;

use std::sync::Arc;

use futures::StreamExt;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{self, Slotting};
use orchestr8_kernel::schema::{self, Schema};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply};
use orchestr8_models::{About, Assistant, Delta, Message, Model, Request, Usage, User};
use serde_json::{Value, json};

use crate::commands::{level, text};
use crate::hub::Hub;
use crate::limits;
use crate::speak::{EVERY_FAILURE, Progress, spent};

pub const NAME: &str = "llm.complete";

/// Hidden: for other domains. It leaves nothing behind, so that it may run again; under a key a success is given again for nothing.
pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let policy = Policy {
        slotting: Slotting::Free,
        timeout_ms: Some(hub.settings().long_ms),
        payload_bytes: Some(limits::PAYLOAD_BYTES),
        refusals: EVERY_FAILURE,
        open_world: true,
        ..Policy::read()
    };
    let hub = hub.clone();
    let about = "One answer of a model to a prompt or a conversation.";
    let work = move |args, context| complete(hub.clone(), args, context);
    Action::unlisted(NAME, about, input(), policy, action::work(work))
}

fn input() -> Value {
    let block =
        json!({"type": "object", "required": ["type"], "properties": {"type": {"enum": ["text", "image"]}}});
    let content = json!({"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "maxItems": limits::IMAGES + 1, "items": block}]});
    json!({"type": "object", "additionalProperties": false, "properties": {
        "prompt": text(limits::PROMPT_CHARS),
        "messages": {"type": "array", "minItems": 1, "maxItems": limits::COMPLETE_MESSAGES, "items": {
            "type": "object", "required": ["role", "content"], "additionalProperties": false,
            "properties": {"role": {"enum": ["user", "assistant"]}, "content": content}}},
        "system": text(limits::PROMPT_CHARS), "provider": text(100), "modelId": text(200), "thinkingLevel": level(),
        "maxTokens": {"type": "integer", "minimum": 1, "maximum": limits::ANSWER_TOKENS},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "schema": {"type": "object"},
        "repairs": {"type": "integer", "minimum": 0, "maximum": limits::REPAIRS_MAX},
    }})
}

async fn complete(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let model = hub.model_asked(args.text("provider"), args.text("modelId"))?;
    let shape = args.get("schema").map(|schema| Schema::compile(schema.clone())).transpose();
    let shape = shape.map_err(|wrong| Fault::invalid(format!("schema: {wrong}")).with("path", "/schema"))?;
    let repairs = args.get("repairs").and_then(Value::as_u64).unwrap_or(limits::REPAIRS);
    let mut request = request(&args, model.about(), &context.principal.tenant, hub.now_ms())?;
    let (mut usage, mut attempts) = (Usage::default(), 0);
    loop {
        attempts += 1;
        let answer = answer(&model, request.clone(), &context).await.map_err(|fault| paid(fault, &usage))?;
        usage.add(answer.usage);
        let text = Message::Assistant(answer.clone()).text();
        let read = shape.as_ref().map(|shape| structured::read(&text, answer.stop_reason, shape)).transpose();
        match read {
            Ok(json) => {
                let mut told = json!({"text": text, "model": answer.model, "provider": answer.provider,
                    "usage": spent(&usage), "attempts": attempts, "stopReason": answer.stop_reason});
                if let Some(json) = json {
                    told["json"] = json;
                }
                return Ok(Output::json(told).into());
            }
            Err(wrong) if wrong.can_be_mended && attempts <= repairs => {
                request.messages.push(Message::Assistant(answer));
                request.messages.push(Message::User(User::text(wrong.plea(), hub.now_ms())));
            }
            Err(wrong) => return Err(paid(wrong.into_fault(&text, attempts), &usage).into()),
        }
    }
}

/// What was spent before it failed has to be paid for all the same.
fn paid(fault: Fault, usage: &Usage) -> Fault {
    if usage.total() == 0 { fault } else { fault.with("usage", spent(usage)) }
}

fn request(args: &Args, about: &About, tenant: &Tenant, now_ms: i64) -> Result<Request, Fault> {
    Ok(Request {
        system: args.text("system").map(str::to_owned),
        messages: messages(args, about, now_ms)?,
        tools: Vec::new(),
        thinking: args.text("thinkingLevel").and_then(|level| level.parse().ok()).unwrap_or_default(),
        max_output: args.get("maxTokens").and_then(Value::as_u64),
        response_schema: args.get("schema").cloned(),
        temperature: args.get("temperature").and_then(Value::as_f64),
        tenant: Some(tenant.clone()),
    })
}

fn messages(args: &Args, about: &About, now_ms: i64) -> Result<Vec<Message>, Fault> {
    let wrong = |what: &str, path: &str| Fault::invalid(what.to_owned()).with("path", path);
    let items = match (args.text("prompt"), args.get("messages").and_then(Value::as_array)) {
        (Some(prompt), None) => return Ok(vec![Message::User(User::text(prompt, now_ms))]),
        (None, Some(items)) => items,
        (Some(_), Some(_)) | (None, None) => return Err(wrong("give either prompt or messages", "/prompt")),
    };
    let read = |(place, item): (usize, &Value)| {
        message(item, about, now_ms)
            .map_err(|error| wrong(&format!("messages[{place}]: {error}"), &format!("/messages/{place}")))
    };
    let messages = items.iter().enumerate().map(read).collect::<Result<Vec<_>, Fault>>()?;
    match messages.last() {
        Some(Message::User(_)) => Ok(messages),
        Some(Message::Assistant(_) | Message::ToolResult(_) | Message::BashExecution(_)) | None => {
            Err(wrong("messages: the last one must be of the user", "/messages"))
        }
    }
}

/// A message as callers write it, with what they need not know.
fn message(item: &Value, about: &About, now_ms: i64) -> Result<Message, serde_json::Error> {
    let mut item = item.clone();
    item["timestamp"] = now_ms.into();
    if item["role"] == "assistant" {
        item["provider"] = about.provider.as_str().into();
        item["model"] = about.id.as_str().into();
        item["stopReason"] = "stop".into();
    }
    serde_json::from_value(item)
}

async fn answer(model: &Arc<dyn Model>, request: Request, context: &Context) -> Result<Assistant, Fault> {
    let mut stream = model.stream(request, context.cancel.token().clone());
    let mut progress = Progress::of(context);
    while let Some(item) = stream.next().await {
        match item? {
            Delta::Done(answer) => return Ok(answer),
            Delta::TextStart { .. }
            | Delta::Text { .. }
            | Delta::TextEnd { .. }
            | Delta::ThinkingStart { .. }
            | Delta::Thinking { .. }
            | Delta::ThinkingEnd { .. }
            | Delta::ToolCallStart { .. }
            | Delta::ToolCall { .. }
            | Delta::ToolCallEnd { .. } => progress.goes_on("answers"),
        }
    }
    context.check()?;
    Err(Fault::new(Code::Unavailable, "the answer of the model broke off").with("reason", "stream_broken"))
}
