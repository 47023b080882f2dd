//! Messages as they stand in session files: in a few places other words than ours.

use orchestr8_models::Message;
use serde_json::{Value, json};

use crate::record;

const ROLES: [&str; 4] = ["user", "assistant", "toolResult", "bashExecution"];
const BLOCKS: [&str; 4] = ["text", "thinking", "toolCall", "image"];

/// As others read it: a cost has parts, and a signature says what it signs.
pub fn to_file(message: &Message) -> Value {
    let mut value = record::json(message);
    if let Message::Assistant(assistant) = message {
        let usage = assistant.usage;
        value["usage"]["totalTokens"] = json!(usage.total());
        value["usage"]["cost"] =
            json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": usage.cost});
    }
    rename_signatures(&mut value, "signature", "thinkingSignature");
    value
}

/// None for a message of a kind that is not known here. Ours and theirs are both understood.
pub fn from_file(mut value: Value, at_ms: i64) -> Result<Option<Message>, String> {
    let role = value["role"].as_str().ok_or("its message has no role")?;
    if !ROLES.contains(&role) {
        return Ok(None);
    }
    if value["timestamp"].is_null() {
        value["timestamp"] = json!(at_ms);
    }
    if let Some(total) = value.pointer("/usage/cost/total").cloned() {
        value["usage"]["cost"] = total;
    }
    if let Some(Value::Array(blocks)) = value.get_mut("content") {
        blocks.retain(|block| block["type"].as_str().is_none_or(|kind| BLOCKS.contains(&kind)));
    }
    rename_signatures(&mut value, "thinkingSignature", "signature");
    serde_json::from_value(value).map(Some).map_err(|error| format!("its message cannot be read: {error}"))
}

fn rename_signatures(value: &mut Value, from: &str, to: &str) {
    let blocks = value.get_mut("content").and_then(Value::as_array_mut);
    let blocks = blocks.into_iter().flatten().filter(|block| block["type"] == "thinking");
    for block in blocks.filter_map(Value::as_object_mut) {
        if let Some(signature) = block.remove(from) {
            block.insert(to.to_owned(), signature);
        }
    }
}
