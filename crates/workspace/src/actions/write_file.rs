//! `write_file`: puts a file in its place, within an approved plan.

use orchestr8_contract::envelope::Role;
use serde_json::{Value, json};

use crate::desk::Tool;
use crate::gates;

pub static TOOL: Tool = Tool {
    name: "write_file",
    about: "Writes a file whole (content) or changes it (patch, a unified diff), within an approved plan. The commands of the plan run first, on a private view with the new text in its place; if one fails, nothing is written. What they change themselves is discarded. A report under docs/reports/ needs no plan; one that names the failure ends the lock of the workspace.",
    roles: &[Role::Executor],
    input,
    changes: true,
    work: |call| Box::pin(gates::write(call)),
};

fn input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "From the root of the workspace."},
            "plan": {"type": "string", "description": "The hash of an approved plan."},
            "content": {"type": "string"},
            "patch": {"type": "string", "description": "A unified diff of this one file."},
            "previousHash": {"type": "string", "description": "The SHA-256 of what is there now."},
            "role": {"enum": ["EXECUTABLE", "BOUNDARY", "INFRASTRUCTURE", "VERIFICATION"], "description": "What the file is for, if it needs more care than its path says."},
            "intent": {"type": "string", "description": "Why, in more than 20 characters."},
            "phase_id": {"type": "string", "pattern": "^[A-Z0-9_]+$"},
        },
        "required": ["path", "plan"],
    })
}
