//! `approve_plan`: lets executors write within a plan.

use orchestr8_contract::envelope::Role;
use serde_json::json;

use super::read_plan::which;
use super::save_plan::put;
use crate::blocking;
use crate::desk::{Call, Done, Tool};
use crate::plan::{self, Status, body, lint, unfit};
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "approve_plan",
    about: "Approves a saved plan by its hash: from then on, files may be written within it.",
    roles: &[Role::Planner],
    input: || json!({"type": "object", "properties": {"hash": {"type": "string"}, "path": {"type": "string"}}}),
    changes: true,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let (hub, hash) = (call.hub.clone(), which(&call.fields)?);
    blocking::run(move || {
        let kept = plan::load(&session.root, &hash)?;
        let output = json!({"status": "PLAN_APPROVED", "hash": hash, "path": plan::path_of(&hash).as_str()});
        if kept.head.status == Status::Approved {
            return Ok(Done::with(output));
        }
        let findings = lint(body(&kept.text));
        if !findings.is_empty() {
            return Err(unfit(&findings));
        }
        Ok(Done { output, ..put(&hub, &session.root, &kept.text, &hash, Status::Approved)? })
    })
    .await
}
