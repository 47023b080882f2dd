//! `generate_attestation_bundle`: what the trail proves now, signed.

use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::ids::For;
use serde_json::{Map, Value, json};

use super::read_audit_log::{filter, input};
use crate::attest;
use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::hub::Hub;
use crate::refusal::Refusal;
use crate::replay::{Filter, Finding, replay};
use crate::root::{Root, sha256};
use crate::trail::Sealed;

pub static TOOL: Tool = Tool {
    name: "generate_attestation_bundle",
    about: "Makes a signed statement of what the audit trail proves: its head, the files written, the failures, and what does not fit.",
    roles: BOTH,
    input,
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let (hub, filter) = (call.hub.clone(), filter(&call.fields)?);
    let end = session.trail.check().await.map_err(|error| error.refusal())?;
    blocking::run(move || Ok(Done::with(json!({"bundle": bundle(&hub, &session.root, &filter, &end)?}))))
        .await
}

/// A signed bundle of what is there now.
pub fn bundle(hub: &Hub, root: &Root, filter: &Filter, end: &Sealed) -> Result<Value, Refusal> {
    let mut replayed = replay(root, filter, end)?;
    replayed.compare(root);
    let ports = hub.ports();
    let files: Vec<Value> = replayed
        .files
        .values()
        .map(|(seq, change)| json!({"path": change.path, "seq": seq, "hash": change.after}))
        .collect();
    let findings: Vec<Value> = replayed.findings.iter().map(Finding::shown).collect();
    let verified = replayed.verified.as_ref();
    let bundle = json!({
        "bundle_id": ports.ids.fresh(For::Record),
        "generated_at": iso(ports.clock.now_ms()),
        "workspace": sha256(root.path().as_os_str().as_encoded_bytes()),
        "plan_hash": filter.plan_hash, "phase_id": filter.phase_id,
        "audit": {"entries": verified.map(|verified| verified.entries), "head": verified.map(|verified| verified.head.as_str())},
        "counted": {"entries": replayed.entries, "writes": replayed.writes, "failures": replayed.failures},
        "files": files, "findings": findings,
        "verdict": replayed.verdict(),
    });
    let bundle: Map<String, Value> = bundle.as_object().cloned().unwrap_or_default();
    Ok(attest::seal(bundle, hub.settings().signing_key.secret()?))
}
