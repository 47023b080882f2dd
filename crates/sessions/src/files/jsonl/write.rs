//! Writes a session as a file.

use orchestr8_kernel::ports::clock::iso;
use serde_json::{Value, json};

use super::{VERSION, messages};
use crate::record::{Body, Header, Place, entry_id};
use crate::tree::Tree;

/// The file of a session.
pub fn write(id: &str, created_ms: i64, header: &Header, tree: &Tree) -> String {
    let mut text = String::new();
    let mut head = json!({"type": "session", "version": VERSION, "id": id, "timestamp": iso(created_ms), "cwd": header.cwd});
    if let Some(parent) = &header.parent {
        head["parentSession"] = json!(parent);
    }
    line(&mut text, &head);
    let mut last_ms = created_ms;
    for (place, node) in tree.nodes() {
        last_ms = node.entry.at_ms;
        let mut entry = members(&node.entry.body);
        stamp(&mut entry, place, node.entry.parent, last_ms);
        line(&mut text, &entry);
    }
    end(&mut text, header, tree, last_ms);
    text
}

/// Labels and the name. The last line hangs on the leaf, so that whoever reads the file goes on from there.
fn end(text: &mut String, header: &Header, tree: &Tree, at_ms: i64) {
    let mut next = tree.next();
    for (place, node) in tree.nodes() {
        if let Some(label) = &node.label {
            let mut entry = json!({"type": "label", "targetId": entry_id(place), "label": label});
            stamp(&mut entry, next, header.leaf, at_ms);
            line(text, &entry);
            next += 1;
        }
    }
    let mut entry = json!({"type": "session_info"});
    if let Some(name) = &header.name {
        entry["name"] = json!(name);
    }
    stamp(&mut entry, next, header.leaf, at_ms);
    line(text, &entry);
}

fn members(body: &Body) -> Value {
    match body {
        Body::Message { message } => json!({"type": body.kind(), "message": messages::to_file(message)}),
        Body::ModelChange { provider, model_id } => {
            json!({"type": body.kind(), "provider": provider, "modelId": model_id})
        }
        Body::ThinkingLevelChange { thinking_level } => {
            json!({"type": body.kind(), "thinkingLevel": thinking_level})
        }
        Body::Compaction { summary, first_kept, tokens_before } => {
            json!({"type": body.kind(), "summary": summary,
            "firstKeptEntryId": entry_id(*first_kept), "tokensBefore": tokens_before})
        }
        Body::BranchSummary { summary, from } => {
            json!({"type": body.kind(), "summary": summary, "fromId": entry_id(*from)})
        }
    }
}

fn stamp(entry: &mut Value, place: Place, parent: Option<Place>, at_ms: i64) {
    entry["id"] = json!(entry_id(place));
    entry["parentId"] = json!(parent.map(entry_id));
    entry["timestamp"] = json!(iso(at_ms));
}

fn line(text: &mut String, value: &Value) {
    text.push_str(&value.to_string());
    text.push('\n');
}
