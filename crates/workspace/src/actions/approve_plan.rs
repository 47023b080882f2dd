//! `approve_plan`: records in the store of the server that files may be written within a plan.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use orchestr8_kernel::Transport;
use orchestr8_kernel::action::Halt;
use serde_json::json;

use super::read_plan::which;
use super::save_plan::put;
use crate::approvals::{
    Decision, DecisionMethod, PlanRecord, PlanStatus, Proposal, ask_person, can_ask, proposer_decides,
    record_decision,
};
use crate::blocking;
use crate::desk::{Call, Done, Tool};
use crate::plan::{self, Kept, Status, body, lint, unfit};
use crate::refusal::Refusal;
use crate::session::Session;

pub static TOOL: Tool = Tool {
    name: "approve_plan",
    about: "Approves a saved plan by its hash: from then on, files may be written within it. The planner that proposed it cannot; then the person at its client is asked, or approves it with `orchestr8 plans approve`.",
    roles: &[Role::Planner],
    input: || json!({"type": "object", "properties": {"hash": {"type": "string"}, "path": {"type": "string"}}}),
    changes: true,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let hash = which(&call.fields)?;
    let kept = load(&session, &hash).await?;
    let known = PlanRecord::find(&*call.hub.ports().store, session.place(), &hash).await?;
    let record = known.unwrap_or_else(|| found(&call, &session, &kept).record());
    let key = &call.hub.settings().signing_key;
    let output = json!({"status": "PLAN_APPROVED", "hash": hash, "path": plan::path_of(&hash).as_str()});
    if record.check_approved(key).is_ok() {
        return Ok(Done::with(output));
    }
    let findings = lint(body(&kept.text));
    if !findings.is_empty() {
        return Err(unfit(&findings));
    }
    let who = call.context.principal.name.clone();
    let method = method(&call, &record).await?;
    let at_ms = call.hub.ports().clock.now_ms();
    let decision = Decision { status: PlanStatus::Approved, principal: &who, at_ms, method, comment: None };
    decision.check(&record, call.hub.settings().self_approval)?;
    let (_, batch) = record_decision(record, &decision, key)?;
    let hub = call.hub.clone();
    blocking::run(move || {
        let placed = put(&hub, &session.root, &kept.text, &hash, Status::Approved)?;
        Ok(Done { output, batch: Some(batch), ..placed })
    })
    .await
}

async fn load(session: &Arc<Session>, hash: &str) -> Result<Kept, Refusal> {
    let (session, hash) = (session.clone(), hash.to_owned());
    blocking::run(move || plan::load(&session.root, &hash)).await
}

/// A plan that lay in the folder without having been saved.
fn found<'a>(call: &'a Call, session: &'a Session, kept: &'a Kept) -> Proposal<'a> {
    Proposal {
        path: session.place(),
        tenant: call.context.principal.tenant.as_str(),
        hash: &kept.hash,
        text: &kept.text,
        proposer: None,
        at_ms: call.hub.ports().clock.now_ms(),
    }
}

/// How this planner may approve it: as another one than the proposer, as the settings allow, or by asking the person at its
/// client. Over HTTP the client is the program that holds the token of the planner, so asking it would prove nothing.
async fn method(call: &Call, record: &PlanRecord) -> Result<DecisionMethod, Refusal> {
    if record.status == PlanStatus::Rejected {
        let message = format!("plan {} was rejected; only a person can approve it now", record.hash);
        return Err(Refusal::new(Code::UnauthorizedAction, message).with("reason", "rejected"));
    }
    let context = &call.context;
    let is_of_other = record.proposer.as_deref().is_some_and(|proposer| proposer != &*context.principal.name);
    if is_of_other {
        return Ok(DecisionMethod::Planner);
    }
    if call.hub.settings().self_approval {
        return Ok(DecisionMethod::Proposer);
    }
    if context.transport != Transport::Stdio || !can_ask(record, context) {
        return Err(proposer_decides(record));
    }
    match ask_person(record, context).await {
        Ok(true) => Ok(DecisionMethod::Elicitation),
        Ok(false) => {
            let message = format!("the person who was asked did not approve plan {}", record.hash);
            Err(Refusal::new(Code::UnauthorizedAction, message).with("reason", "not_approved"))
        }
        Err(Halt::Asks(asks)) => {
            Err(Refusal { asks: Some(asks), ..Refusal::new(Code::UnknownToolFailure, "the client is asked") })
        }
        Err(Halt::Fault(fault)) => Err(Refusal::of_fault(fault)),
    }
}
