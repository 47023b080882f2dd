//! What another server's tool gave, as an output of ours.

use orchestr8_contract::{Content, Output};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use super::proxy::address;

/// `server` is whose result it is: its addresses become such that can be read here.
pub fn output(server: &str, result: CallToolResult) -> Output {
    let meta = result.meta.and_then(|meta| match serde_json::to_value(meta) {
        Ok(Value::Object(meta)) if !meta.is_empty() => Some(meta),
        Ok(_) | Err(_) => None,
    });
    Output::Blocks {
        blocks: result.content.iter().map(|block| address::content(server, read(block))).collect(),
        structured: result.structured_content,
        failed: result.is_error.unwrap_or(false),
        meta,
    }
}

/// Both sides speak of content in the words of the protocol; a kind that only they know is shown as its JSON.
fn read(block: &ContentBlock) -> Content {
    let value = serde_json::to_value(block).unwrap_or_default();
    let text = value.to_string();
    serde_json::from_value(value).unwrap_or_else(|_| Content::text(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_content_comes_through() {
        let content = json!([
            {"type": "text", "text": "t"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "a://b", "name": "n", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "a://b", "mimeType": "text/plain", "text": "x"}},
            {"type": "resource", "resource": {"uri": "a://c", "blob": "AA=="}}
        ]);
        let wire =
            json!({"content": content, "structuredContent": {"a": 1}, "isError": true, "_meta": {"m": 2}});
        let Output::Blocks { blocks, structured, failed, meta } =
            output("s", serde_json::from_value(wire).unwrap())
        else {
            panic!("blocks")
        };
        let mut expected = content;
        expected[3]["uri"] = json!("mcp://s/a://b");
        expected[4]["resource"]["uri"] = json!("mcp://s/a://b");
        expected[5]["resource"]["uri"] = json!("mcp://s/a://c");
        assert_eq!(serde_json::to_value(blocks).unwrap(), expected);
        assert_eq!((structured, failed), (Some(json!({"a": 1})), true));
        assert_eq!(meta.unwrap()["m"], 2);
    }
}
