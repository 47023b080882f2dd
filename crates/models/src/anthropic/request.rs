//! A request to the Messages API, as JSON.

use serde_json::{Map, Value, json};

use super::LOCKED;
use crate::history::{Turn, turns};
use crate::message::{Block, ToolResult};
use crate::model::{Request, Thinking};
use crate::names::{Names, safe};
use crate::wire::{Reasoning, Spec};

/// The least budget that is taken, and what must be left for the answer itself.
const LEAST_BUDGET: u64 = 1_024;
const LEAST_ANSWER: u64 = 1_024;

pub fn body(spec: &Spec, request: &Request) -> Value {
    let names = Names::of(&request.tools);
    let turns = turns(&request.messages, &spec.about, true);
    let max_tokens = request.max_output.unwrap_or(spec.about.max_output).min(spec.about.max_output).max(1);
    let mut body = Map::new();
    body.insert("model".into(), json!(spec.about.id));
    body.insert("max_tokens".into(), json!(max_tokens));
    body.insert("stream".into(), json!(true));
    if let Some(system) = system(request) {
        // The tools come before the system prompt, so this mark keeps them in the cache, too.
        body.insert(
            "system".into(),
            json!([{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]),
        );
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), tools(request, &names));
    }
    let thinks = think(&mut body, spec, request.thinking, max_tokens, &turns);
    body.insert("messages".into(), messages(turns, &names));
    // A model that thinks chooses for itself, and one that is told by a word does not take it at all.
    if let Some(temperature) = request.temperature.filter(|_| !thinks && spec.reasoning != Reasoning::Effort)
    {
        body.insert("temperature".into(), json!(temperature.clamp(0.0, 1.0)));
    }
    Value::Object(body)
}

/// The system prompt, and what the answer shall look like. Told in words, because every schema can be told in words.
fn system(request: &Request) -> Option<String> {
    let asked = request.response_schema.as_ref().map(|schema| {
        format!(
            "Answer with one JSON value that is valid for this JSON Schema, and with nothing before or after it:\n{schema}"
        )
    });
    let told = request.system.clone().filter(|system| !system.trim().is_empty());
    match (told, asked) {
        (Some(told), Some(asked)) => Some(format!("{told}\n\n{asked}")),
        (told, asked) => told.or(asked),
    }
}

fn tools(request: &Request, names: &Names) -> Value {
    let tool = |tool: &crate::model::Tool| json!({"name": names.theirs(&tool.name), "description": tool.description, "input_schema": tool.schema});
    request.tools.iter().map(tool).collect()
}

/// True when the model thinks.
fn think(
    body: &mut Map<String, Value>,
    spec: &Spec,
    level: Thinking,
    max_tokens: u64,
    turns: &[Turn],
) -> bool {
    let (budget, effort) = match level {
        Thinking::Off => return false,
        Thinking::Minimal => (LEAST_BUDGET, "low"),
        Thinking::Low => (4_096, "low"),
        Thinking::Medium => (10_240, "medium"),
        Thinking::High => (20_480, "high"),
        Thinking::Xhigh => (32_768, "max"),
    };
    match spec.reasoning {
        Reasoning::None => false,
        Reasoning::Budget => {
            let budget = budget.min(max_tokens.saturating_sub(LEAST_ANSWER));
            if budget < LEAST_BUDGET || is_amid_calls_without_thinking(turns) {
                return false;
            }
            body.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": budget}));
            true
        }
        Reasoning::Effort => {
            body.insert("thinking".into(), json!({"type": "adaptive", "display": "summarized"}));
            body.insert("output_config".into(), json!({"effort": effort}));
            true
        }
    }
}

/// Within a round of tool calls the API wants to see the thinking that led to them. Where there is none, because another model
/// made the calls or thinking was off, the round is finished without.
fn is_amid_calls_without_thinking(turns: &[Turn]) -> bool {
    match turns {
        [.., Turn::Assistant(called), Turn::Results(_)]
        | [.., Turn::Assistant(called), Turn::Results(_), Turn::User(_)] => {
            !matches!(called.first(), Some(Block::Thinking { .. }))
        }
        _ => false,
    }
}

fn messages(turns: Vec<Turn>, names: &Names) -> Value {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in turns {
        let (role, content) = match turn {
            Turn::User(blocks) => ("user", blocks.iter().filter_map(|block| said(block, names)).collect()),
            Turn::Assistant(blocks) => {
                ("assistant", blocks.iter().filter_map(|block| said(block, names)).collect())
            }
            Turn::Results(results) => {
                ("user", results.iter().map(|result| answered(result, names)).collect())
            }
        };
        match messages.last_mut() {
            // Results and what is said after them are one message.
            Some((last, said)) if *last == role => said.extend::<Vec<Value>>(content),
            Some(_) | None => messages.push((role, content)),
        }
    }
    if let Some(Value::Object(block)) = messages
        .iter_mut()
        .rev()
        .find(|(role, _)| *role == "user")
        .and_then(|(_, content)| content.last_mut())
    {
        block.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
    messages.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn said(block: &Block, names: &Names) -> Option<Value> {
    Some(match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Image { data, mime_type } => {
            json!({"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}})
        }
        Block::Thinking { thinking, signature } => {
            let signature = signature.as_deref()?;
            match signature.strip_prefix(LOCKED) {
                Some(data) => json!({"type": "redacted_thinking", "data": data}),
                None => json!({"type": "thinking", "thinking": thinking, "signature": signature}),
            }
        }
        Block::ToolCall { id, name, arguments } => {
            json!({"type": "tool_use", "id": safe(id), "name": names.theirs(name), "input": arguments})
        }
    })
}

fn answered(result: &ToolResult, names: &Names) -> Value {
    let content: Vec<Value> = result.content.iter().filter_map(|block| said(block, names)).collect();
    json!({
        "type": "tool_result",
        "tool_use_id": safe(&result.tool_call_id),
        "content": content,
        "is_error": result.is_error,
    })
}
