//! `replay_execution`: goes through what was done under a plan, and says whether it fits.

use serde_json::{Value, json};

use super::read_audit_log::{filter, input};
use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::refusal::Refusal;
use crate::replay::{Finding, replay};

pub static TOOL: Tool = Tool {
    name: "replay_execution",
    about: "Goes through the entries of the audit trail and says whether each write began with what the one before it left, and whether the files are what was written last.",
    roles: BOTH,
    input,
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let filter = filter(&call.fields)?;
    let end = session.trail.check().await.map_err(|error| error.refusal())?;
    blocking::run(move || {
        let mut replayed = replay(&session.root, &filter, &end)?;
        replayed.compare(&session.root);
        let files: Vec<Value> = replayed
            .files
            .values()
            .map(|(seq, change)| json!({"path": change.path, "seq": seq, "hash": change.after}))
            .collect();
        let findings: Vec<Value> = replayed.findings.iter().map(Finding::shown).collect();
        Ok(Done::with(json!({
            "verdict": replayed.verdict(),
            "plan_hash": filter.plan_hash, "entries": replayed.entries, "writes": replayed.writes,
            "failures": replayed.failures, "files": files, "findings": findings,
        })))
    })
    .await
}
