//! `read_file`: the text of a file, and the hash by which a later write knows it again.

use orchestr8_contract::Code;
use serde_json::json;

use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "read_file",
    about: "Reads a text file of the workspace. Its hash is what write_file takes as previousHash.",
    roles: BOTH,
    input: || json!({"type": "object", "properties": {"path": {"type": "string", "description": "From the root of the workspace."}}, "required": ["path"]}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let path =
        session.root.inside(call.fields.text("path")?.ok_or_else(|| crate::fields::missing("path"))?)?;
    blocking::run(move || {
        let found = session.root.read(&path)?;
        let (hash, bytes) = (found.hash(), found.bytes.len());
        let content = String::from_utf8(found.bytes)
            .map_err(|_| Refusal::new(Code::FileReadFailed, format!("'{path}' is no UTF-8 text")))?;
        Ok(Done::with(json!({"path": path.as_str(), "content": content, "hash": hash, "bytes": bytes})))
    })
    .await
}
