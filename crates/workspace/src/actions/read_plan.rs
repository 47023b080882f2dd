//! `read_plan`: the text of a plan that is whole.

use serde_json::json;

use crate::approvals::{PlanRecord, shown_status};
use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::fields::{Fields, missing};
use crate::plan;
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "read_plan",
    about: "Reads a plan by its hash or path, with its status, phases and allowed paths.",
    roles: BOTH,
    input: || json!({"type": "object", "properties": {"hash": {"type": "string"}, "path": {"type": "string"}}}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

/// The hash a call names, as `hash` or in `path`.
pub fn which(fields: &Fields) -> Result<String, Refusal> {
    match fields.plan_hash("hash")? {
        Some(hash) => Ok(hash),
        None => fields.plan_hash("path")?.ok_or_else(|| missing("hash")),
    }
}

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let hash = which(&call.fields)?;
    let known = PlanRecord::find(&*call.hub.ports().store, session.place(), &hash).await?;
    blocking::run(move || {
        let kept = plan::load(&session.root, &hash)?;
        let paths: Vec<&str> = kept.plan.paths.iter().map(|(_, path)| path.as_str()).collect();
        let phases: Vec<&str> = kept.plan.phases.iter().map(|phase| phase.id.as_str()).collect();
        Ok(Done::with(json!({
            "hash": hash, "status": shown_status(known.as_ref()).shown(), "title": kept.plan.title, "phases": phases,
            "allowed_paths": paths, "content": kept.text,
        })))
    })
    .await
}
