//! A request for a chat completion, as JSON.

use serde_json::{Map, Value, json};

use crate::history::{Turn, turns};
use crate::message::{Block, ToolResult, text_of};
use crate::model::{Request, Thinking, Tool};
use crate::names::{Names, safe};
use crate::wire::{Reasoning, Spec};

const NOTHING: &str = "(nothing)";
const IMAGES: &str = "The images of the results above:";

pub fn body(spec: &Spec, request: &Request) -> Value {
    let names = Names::of(&request.tools);
    let mut body = Map::new();
    body.insert("model".into(), json!(spec.about.id));
    body.insert("stream".into(), json!(true));
    body.insert("stream_options".into(), json!({"include_usage": true}));
    body.insert("messages".into(), messages(spec, request, &names));
    if !request.tools.is_empty() {
        let tool = |tool: &Tool| {
            let name = names.theirs(&tool.name);
            json!({"type": "function", "function": {"name": name, "description": tool.description, "parameters": tool.schema}})
        };
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    let reasons = match spec.reasoning {
        Reasoning::None => false,
        Reasoning::Budget | Reasoning::Effort => true,
    };
    if let Some(max) = request.max_output {
        // Models that reason refuse the old name, and small servers do not know the new one.
        let name = if reasons { "max_completion_tokens" } else { "max_tokens" };
        body.insert(name.into(), json!(max.min(spec.about.max_output).max(1)));
    }
    if let Some(effort) = effort(request.thinking).filter(|_| reasons) {
        body.insert("reasoning_effort".into(), json!(effort));
    }
    if let Some(temperature) = request.temperature.filter(|_| !reasons) {
        body.insert("temperature".into(), json!(temperature.clamp(0.0, 2.0)));
    }
    if let Some(schema) = &request.response_schema {
        // Not strict: that takes only some schemas, and the answer is checked anyway.
        let format = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": false}});
        body.insert("response_format".into(), format);
    }
    Value::Object(body)
}

/// None: not told, so that the model does as it is used to. Older ones have no word for not thinking.
fn effort(level: Thinking) -> Option<&'static str> {
    match level {
        Thinking::Off => None,
        Thinking::Minimal => Some("minimal"),
        Thinking::Low => Some("low"),
        Thinking::Medium => Some("medium"),
        Thinking::High => Some("high"),
        Thinking::Xhigh => Some("xhigh"),
    }
}

fn messages(spec: &Spec, request: &Request, names: &Names) -> Value {
    let mut messages = Vec::new();
    if let Some(system) = request.system.as_deref().filter(|system| !system.trim().is_empty()) {
        messages.push(json!({"role": "system", "content": system}));
    }
    for turn in turns(&request.messages, &spec.about, false) {
        match turn {
            Turn::User(blocks) => messages.push(json!({"role": "user", "content": content(&blocks)})),
            Turn::Assistant(blocks) => messages.push(assistant(&blocks, names)),
            Turn::Results(results) => {
                messages.extend(results.iter().map(result));
                messages.extend(images(&results));
            }
        }
    }
    Value::Array(messages)
}

/// Plain text where it is only text: not every server takes parts.
fn content(blocks: &[Block]) -> Value {
    if blocks.iter().all(|block| matches!(block, Block::Text { .. })) {
        return json!(text_of(blocks));
    }
    blocks.iter().filter_map(part).collect()
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"type": "text", "text": text})),
        Block::Image { data, mime_type } => Some(
            json!({"type": "image_url", "image_url": {"url": format!("data:{mime_type};base64,{data}")}}),
        ),
        Block::Thinking { .. } | Block::ToolCall { .. } => None,
    }
}

fn assistant(blocks: &[Block], names: &Names) -> Value {
    let calls: Vec<Value> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolCall { id, name, arguments } => Some(json!({
                "id": safe(id),
                "type": "function",
                "function": {
                    "name": names.theirs(name),
                    "arguments": serde_json::to_string(arguments).unwrap_or_default(),
                },
            })),
            Block::Text { .. } | Block::Thinking { .. } | Block::Image { .. } => None,
        })
        .collect();
    let text = text_of(blocks);
    let text = if text.is_empty() { Value::Null } else { json!(text) };
    if calls.is_empty() {
        json!({"role": "assistant", "content": text})
    } else {
        json!({"role": "assistant", "content": text, "tool_calls": calls})
    }
}

fn result(result: &ToolResult) -> Value {
    let text = text_of(&result.content);
    let text = match (text.is_empty(), result.is_error) {
        (true, _) => NOTHING.to_owned(),
        (false, true) => format!("Error: {text}"),
        (false, false) => text,
    };
    json!({"role": "tool", "tool_call_id": safe(&result.tool_call_id), "content": text})
}

/// A result is only text here, so its images follow as if the user had sent them.
fn images(results: &[ToolResult]) -> Option<Value> {
    let images: Vec<Value> = results
        .iter()
        .flat_map(|result| &result.content)
        .filter(|block| matches!(block, Block::Image { .. }))
        .filter_map(part)
        .collect();
    if images.is_empty() {
        return None;
    }
    let mut parts = vec![json!({"type": "text", "text": IMAGES})];
    parts.extend(images);
    Some(json!({"role": "user", "content": parts}))
}
