//! `save_plan`: keeps a plan under its hash, to be approved.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use orchestr8_kernel::ports::ids::For;
use serde_json::json;

use crate::approvals::{PlanRecord, PlanStatus, Proposal, shown_status};
use crate::blocking;
use crate::desk::{Call, Done, Tool};
use crate::hub::Hub;
use crate::plan::{self, Head, Status, body, hash_of, lint, unfit, with_head};
use crate::refusal::Refusal;
use crate::root::{Placed, Root};
use crate::trail::Change;

pub static TOOL: Tool = Tool {
    name: "save_plan",
    about: "Checks a plan and keeps it as docs/plans/<hash>.md. It is not approved by that.",
    roles: &[Role::Planner],
    input: || json!({"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]}),
    changes: true,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let content = call.fields.required("content")?.to_owned();
    let findings = lint(body(&content));
    if !findings.is_empty() {
        return Err(unfit(&findings));
    }
    let hub = call.hub.clone();
    let hash = hash_of(&content);
    let known = PlanRecord::find(&*hub.ports().store, session.place(), &hash).await?;
    let (place, principal) = (session.place().to_owned(), call.context.principal.clone());
    blocking::run(move || {
        let proposal = Proposal {
            path: &place,
            tenant: principal.tenant.as_str(),
            hash: &hash,
            text: &content,
            proposer: Some(&principal.name),
            at_ms: hub.ports().clock.now_ms(),
        };
        let status = shown_status(known.as_ref());
        let batch = known.is_none().then(|| proposal.batch());
        match plan::load(&session.root, &hash) {
            Ok(_) => Ok(Done { batch, ..Done::with(saved(&hash, status, true)) }),
            Err(refusal) if refusal.code == Code::PlanNotFound => {
                let done = put(&hub, &session.root, &content, &hash, status.in_file())?;
                Ok(Done { output: saved(&hash, status, false), batch, ..done })
            }
            Err(refusal) => Err(refusal),
        }
    })
    .await
}

fn saved(hash: &str, status: PlanStatus, existed: bool) -> serde_json::Value {
    json!({"status": "PLAN_SAVED", "hash": hash, "path": plan::path_of(hash).as_str(), "plan_status": status.shown(), "existed": existed})
}

/// Puts a plan with this status in its place.
pub fn put(hub: &Hub, root: &Arc<Root>, text: &str, hash: &str, status: Status) -> Result<Done, Refusal> {
    let path = plan::path_of(hash);
    let before = root.look(&path)?;
    let text = with_head(text, &Head { hash: hash.to_owned(), role: Role::Planner, status });
    let temporary = format!(".o8-{}.tmp", hub.ports().ids.fresh(For::Record).simple());
    let placed = Placed::put(root, &path, before, text.as_bytes(), temporary)?;
    let change = Change {
        path: path.as_str().to_owned(),
        before: placed.hash_before(),
        after: placed.hash().to_owned(),
    };
    Ok(Done { change: Some(change), placed: Some(placed), ..Done::default() })
}
