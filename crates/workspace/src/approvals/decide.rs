//! Proposing a plan and deciding on it, as statements for the store.

use orchestr8_contract::Code;
use orchestr8_kernel::ports::store::Batch;

use super::{DecisionMethod, PlanRecord, PlanStatus};
use crate::limits;
use crate::plan::{body, parse};
use crate::refusal::Refusal;
use crate::signing::ServerSigningKey;
use crate::tables::{self, ProposedPlan};

/// A plan that is saved and waits for a decision.
pub struct Proposal<'a> {
    pub path: &'a str,
    pub tenant: &'a str,
    pub hash: &'a str,
    /// The text of the plan, with or without its header.
    pub text: &'a str,
    /// None: it was not saved by a tool, but lay in the folder.
    pub proposer: Option<&'a str>,
    pub at_ms: i64,
}

impl Proposal<'_> {
    pub fn record(&self) -> PlanRecord {
        PlanRecord {
            path: self.path.to_owned(),
            hash: self.hash.to_owned(),
            tenant: self.tenant.to_owned(),
            title: parse(body(self.text)).title.unwrap_or_default(),
            content: body(self.text).to_owned(),
            proposer: self.proposer.map(str::to_owned),
            proposed_ms: self.at_ms,
            status: PlanStatus::Waiting,
            decided_by: None,
            decided_ms: None,
            method: None,
            comment: None,
            signature: None,
        }
    }

    /// What keeps it; nothing changes if the plan is known.
    pub fn batch(&self) -> Batch {
        let record = self.record();
        let mut batch = Batch::new();
        batch.then(tables::plan_insert(&ProposedPlan {
            path: self.path,
            hash: self.hash,
            tenant: self.tenant,
            title: &record.title,
            content: &record.content,
            proposer: self.proposer,
            proposed_ms: self.at_ms,
        }));
        batch
    }
}

/// What a principal decides on a plan.
pub struct Decision<'a> {
    pub status: PlanStatus,
    pub principal: &'a str,
    pub at_ms: i64,
    pub method: DecisionMethod,
    pub comment: Option<&'a str>,
}

impl Decision<'_> {
    /// Whether this principal may decide on the plan: the one that proposed it may not, unless the settings or the method allow it.
    pub fn check(&self, plan: &PlanRecord, self_approval: bool) -> Result<(), Refusal> {
        if self.comment.is_some_and(|comment| comment.len() > limits::COMMENT_BYTES) {
            let message = format!("comment has at most {} bytes", limits::COMMENT_BYTES);
            return Err(Refusal::new(Code::InvalidInputValue, message).with("field", "comment"));
        }
        let is_own = plan.proposer.as_deref() == Some(self.principal);
        let is_asked = match self.method {
            DecisionMethod::Elicitation | DecisionMethod::Bootstrap => true,
            DecisionMethod::Request | DecisionMethod::Planner | DecisionMethod::Proposer => false,
        };
        let approves = self.status == PlanStatus::Approved;
        match approves && is_own && !is_asked && !self_approval {
            false => Ok(()),
            true => Err(proposer_decides(plan)),
        }
    }
}

/// The refusal of a plan's proposer that approves it.
pub fn proposer_decides(plan: &PlanRecord) -> Refusal {
    let message =
        format!("plan {} was proposed by the same principal; another one must approve it", plan.hash);
    Refusal::new(Code::UnauthorizedAction, message)
        .with("reason", "proposer")
        .with("setting", "workspace.selfApproval")
        .with("hint", format!("let a person run `orchestr8 plans approve {}`", plan.hash))
}

/// The plan after the decision, and what keeps that.
pub fn record_decision(
    plan: PlanRecord,
    decision: &Decision<'_>,
    key: &ServerSigningKey,
) -> Result<(PlanRecord, Batch), Refusal> {
    let decided = plan.decided(decision, key)?;
    let mut batch = Batch::new();
    batch.then(tables::plan_insert(&ProposedPlan {
        path: &decided.path,
        hash: &decided.hash,
        tenant: &decided.tenant,
        title: &decided.title,
        content: &decided.content,
        proposer: decided.proposer.as_deref(),
        proposed_ms: decided.proposed_ms,
    }));
    batch.then_one(tables::plan_decide(&decided.row(decision)));
    Ok((decided, batch))
}
