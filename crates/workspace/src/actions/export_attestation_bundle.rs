//! `export_attestation_bundle`: a bundle as a file of the workspace.

use orchestr8_contract::Code;
use orchestr8_kernel::ports::ids::For;
use serde_json::{Value, json};

use super::generate_attestation_bundle::bundle;
use super::read_audit_log::filter;
use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::refusal::Refusal;
use crate::root::{Inside, Placed};
use crate::trail::Change;

/// Where bundles are kept.
pub const FOLDER: &str = "docs/attestations";

pub static TOOL: Tool = Tool {
    name: "export_attestation_bundle",
    about: "Writes a signed bundle to docs/attestations/<name>.json: one that was made before, or a new one.",
    roles: BOTH,
    input: || {
        json!({"type": "object", "properties": {
            "bundle": {"type": "object"}, "name": {"type": "string", "description": "Letters, digits, - and _; the id of the bundle if absent."},
            "plan_hash": {"type": "string"}, "phase_id": {"type": "string"},
        }})
    },
    changes: true,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let name = call.fields.text("name")?.map(str::to_owned);
    if name.as_deref().is_some_and(|name| !is_name(name)) {
        let message = "name is made of 1 to 64 letters, digits, - and _";
        return Err(Refusal::new(Code::InvalidInputFormat, message).with("field", "name"));
    }
    let given = match call.fields.get("bundle") {
        Some(_) => Some(Value::Object(call.fields.object("bundle")?.clone())),
        None => None,
    };
    let (hub, filter) = (call.hub.clone(), filter(&call.fields)?);
    let end = session.trail.check().await.map_err(|error| error.refusal())?;
    blocking::run(move || {
        let bundle = match given {
            Some(given) => given,
            None => bundle(&hub, &session.root, &filter, &end)?,
        };
        let id = bundle["bundle_id"].as_str().filter(|id| is_name(id)).map(str::to_owned);
        let name = name.or(id).ok_or_else(|| crate::fields::missing("name"))?;
        let path = Inside::own(format!("{FOLDER}/{name}.json"));
        if session.root.look(&path)?.is_some() {
            return Err(Refusal::new(Code::FileAlreadyExists, format!("'{path}' is there already")));
        }
        let text = serde_json::to_string_pretty(&bundle).unwrap_or_default() + "\n";
        let temporary = format!(".o8-{}.tmp", hub.ports().ids.fresh(For::Record).simple());
        let placed = Placed::put(&session.root, &path, None, text.as_bytes(), temporary)?;
        let change = Change { path: path.as_str().to_owned(), before: None, after: placed.hash().to_owned() };
        let output = json!({"status": "EXPORTED", "path": path.as_str(), "hash": change.after});
        Ok(Done { change: Some(change), placed: Some(placed), ..Done::with(output) })
    })
    .await
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
