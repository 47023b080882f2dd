//! Approvals of plans: records in the store of the server, signed. A plan file only shows what was decided.

mod decide;
mod elicit;

use orchestr8_contract::Code;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::{Error, Row, Store};
use serde_json::{Value, json};

use crate::limits;
use crate::plan::Status;
use crate::refusal::Refusal;
use crate::signing::{ServerSigningKey, StatementKind};
use crate::tables::{self, PlanDecision};

pub use decide::{Decision, Proposal, proposer_decides, record_decision};
pub use elicit::{ask_person, can_ask};

/// What was decided on a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStatus {
    Waiting,
    Approved,
    Rejected,
}

impl PlanStatus {
    pub const ALL: [PlanStatus; 3] = [PlanStatus::Waiting, PlanStatus::Approved, PlanStatus::Rejected];

    pub fn as_str(self) -> &'static str {
        match self {
            PlanStatus::Waiting => "waiting",
            PlanStatus::Approved => "approved",
            PlanStatus::Rejected => "rejected",
        }
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|status| status.as_str() == text);
        found.ok_or_else(|| Error::Corrupt(format!("a plan has the status {text}")))
    }

    /// The word of the tools (ERR-5).
    pub fn shown(self) -> &'static str {
        self.in_file().as_str()
    }

    /// As the file of the plan shows it.
    pub fn in_file(self) -> Status {
        match self {
            PlanStatus::Waiting => Status::Draft,
            PlanStatus::Approved => Status::Approved,
            PlanStatus::Rejected => Status::Rejected,
        }
    }
}

/// How a decision reached the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionMethod {
    /// Over REST: the command line and the dashboard.
    Request,
    /// By another planner than the one that proposed it.
    Planner,
    /// By the planner that proposed it, as `workspace.selfApproval` allows.
    Proposer,
    /// The person at the client of the planner was asked.
    Elicitation,
    /// Signed with the bootstrap secret.
    Bootstrap,
}

impl DecisionMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            DecisionMethod::Request => "request",
            DecisionMethod::Planner => "planner",
            DecisionMethod::Proposer => "proposer",
            DecisionMethod::Elicitation => "elicitation",
            DecisionMethod::Bootstrap => "bootstrap",
        }
    }
}

/// A plan as the server knows it.
#[derive(Debug, Clone)]
pub struct PlanRecord {
    /// The real path of the workspace.
    pub path: String,
    pub hash: String,
    pub tenant: String,
    pub title: String,
    pub content: String,
    pub proposer: Option<String>,
    pub proposed_ms: i64,
    pub status: PlanStatus,
    decided_by: Option<String>,
    decided_ms: Option<i64>,
    method: Option<String>,
    comment: Option<String>,
    signature: Option<String>,
}

impl PlanRecord {
    pub fn read(row: &Row) -> Result<Self, Error> {
        let text = |column| row.text(column).map(str::to_owned);
        let maybe = |column| row.optional_text(column).map(|text| text.map(str::to_owned));
        let status = PlanStatus::parse(row.text(7)?)?;
        Ok(Self {
            path: text(0)?,
            hash: text(1)?,
            tenant: text(2)?,
            title: text(3)?,
            content: text(4)?,
            proposer: maybe(5)?,
            proposed_ms: row.int(6)?,
            status,
            decided_by: maybe(8)?,
            decided_ms: match status {
                PlanStatus::Waiting => None,
                PlanStatus::Approved | PlanStatus::Rejected => Some(row.int(9)?),
            },
            method: maybe(10)?,
            comment: maybe(11)?,
            signature: maybe(12)?,
        })
    }

    /// The plan under a hash in a workspace, if the server knows it.
    pub async fn find(store: &dyn Store, path: &str, hash: &str) -> Result<Option<Self>, Refusal> {
        let rows = store.query(tables::plan_find(path, hash)).await.map_err(Refusal::of_store)?;
        rows.first().map(Self::read).transpose().map_err(Refusal::of_store)
    }

    /// The plans of a workspace that the server knows.
    pub async fn of_workspace(store: &dyn Store, path: &str) -> Result<Vec<Self>, Refusal> {
        let limit = i64::try_from(limits::PLANS).unwrap_or(i64::MAX);
        let rows = store.query(tables::plans_of(path, limit)).await.map_err(Refusal::of_store)?;
        rows.iter().map(Self::read).collect::<Result<_, _>>().map_err(Refusal::of_store)
    }

    /// Whether files may be written within it: it was approved, and this server signed that.
    pub fn check_approved(&self, key: &ServerSigningKey) -> Result<(), Refusal> {
        match self.status {
            PlanStatus::Approved => {}
            PlanStatus::Waiting => return Err(not_approved(&self.hash, "waiting", "waits for its approval")),
            PlanStatus::Rejected => return Err(not_approved(&self.hash, "rejected", "was rejected")),
        }
        let signature = self.signature.as_deref().unwrap_or_default();
        match key.verify(StatementKind::PlanDecision, &self.statement(), signature)? {
            true => Ok(()),
            false => {
                let what = "has a record of an approval that this server did not sign";
                Err(not_approved(&self.hash, "approval_signature", what))
            }
        }
    }

    /// What a decision is signed as.
    fn statement(&self) -> Value {
        json!({
            "workspace": self.path, "tenant": self.tenant, "plan": self.hash, "proposer": self.proposer,
            "status": self.status.as_str(), "principal": self.decided_by, "at_ms": self.decided_ms, "method": self.method,
            "comment": self.comment,
        })
    }

    /// The same plan after a decision, signed.
    fn decided(self, decision: &Decision<'_>, key: &ServerSigningKey) -> Result<Self, Refusal> {
        let decided = Self {
            status: decision.status,
            decided_by: Some(decision.principal.to_owned()),
            decided_ms: Some(decision.at_ms),
            method: Some(decision.method.as_str().to_owned()),
            comment: decision.comment.map(str::to_owned),
            signature: None,
            ..self
        };
        let signature = key.sign(StatementKind::PlanDecision, &decided.statement())?;
        Ok(Self { signature: Some(signature), ..decided })
    }

    fn row<'a>(&'a self, decision: &'a Decision<'_>) -> PlanDecision<'a> {
        PlanDecision {
            path: &self.path,
            hash: &self.hash,
            status: decision.status.as_str(),
            decided_by: decision.principal,
            decided_ms: decision.at_ms,
            method: decision.method.as_str(),
            comment: decision.comment,
            signature: self.signature.as_deref().unwrap_or_default(),
        }
    }

    /// As requests are answered; with its text where one plan is asked for.
    pub fn to_json(&self, with_content: bool) -> Value {
        let mut shown = json!({
            "workspace": self.path, "hash": self.hash, "title": self.title, "status": self.status.as_str(),
            "proposer": self.proposer, "proposedAt": iso(self.proposed_ms), "decidedBy": self.decided_by,
            "decidedAt": self.decided_ms.map(iso), "method": self.method, "comment": self.comment,
            "signature": self.signature,
        });
        if with_content {
            shown["content"] = self.content.as_str().into();
        }
        shown
    }
}

/// Refuses a plan without an approval in the store, whatever its file says.
pub fn check_approved(
    record: Option<&PlanRecord>,
    hash: &str,
    key: &ServerSigningKey,
) -> Result<(), Refusal> {
    match record {
        Some(record) => record.check_approved(key),
        None => Err(not_approved(
            hash,
            "no_approval",
            "is not approved: this server has no record of an approval",
        )),
    }
}

fn not_approved(hash: &str, reason: &'static str, what: &str) -> Refusal {
    Refusal::new(Code::PlanNotApproved, format!("plan {hash} {what}"))
        .with("reason", reason)
        .with("hint", format!("let a person run `orchestr8 plans approve {hash}`"))
}

/// The status that the tools show for a plan.
pub fn shown_status(record: Option<&PlanRecord>) -> PlanStatus {
    record.map_or(PlanStatus::Waiting, |record| record.status)
}
