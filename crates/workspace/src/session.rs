//! A session: one connection at work in one workspace. It begins once, a hard failure locks it, a report unlocks it.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::refusal::Refusal;
use crate::root::{Inside, Root};
use crate::trail::Trail;

/// Where reports of failures are written.
pub const REPORTS: &str = "docs/reports";

/// Failures of a write after which somebody must say what happened before anything else is written.
const HARD: [Code; 9] = [
    Code::InvariantViolation,
    Code::PathTraversalBlocked,
    Code::OutsideWorkspace,
    Code::PlanEnforcementFailed,
    Code::PlanScopeViolation,
    Code::PreflightFailed,
    Code::InternalError,
    Code::UnknownToolFailure,
    Code::AuditLogFailed,
];

/// Whether a failed write locks its session.
pub fn is_hard(code: Code) -> bool {
    HARD.contains(&code)
}

pub struct Session {
    pub id: String,
    pub role: Role,
    pub root: Arc<Root>,
    pub trail: Arc<Trail>,
    /// One write at a time in a workspace, its commands included.
    pub turn: Arc<Semaphore>,
    locked_by: Mutex<Option<Code>>,
}

impl Session {
    pub fn new(id: String, role: Role, root: Arc<Root>, trail: Arc<Trail>, turn: Arc<Semaphore>) -> Self {
        Self { id, role, root, trail, turn, locked_by: Mutex::default() }
    }

    pub fn lock(&self, code: Code) {
        self.locked_by.lock().get_or_insert(code);
    }

    pub fn unlock(&self) {
        *self.locked_by.lock() = None;
    }

    pub fn locked_by(&self) -> Option<Code> {
        *self.locked_by.lock()
    }

    /// Nothing but a report is written while it is locked.
    pub fn open_to(&self, path: &str) -> Result<(), Refusal> {
        let Some(code) = self.locked_by() else { return Ok(()) };
        let is_report = self.root.inside(path).is_ok_and(|path| is_report(&path));
        match is_report {
            true => Ok(()),
            false => Err(Refusal::new(
                Code::SessionLocked,
                format!("{code} has locked the session; write a report of it under {REPORTS}/"),
            )
            .with("locked_by", code.as_str())),
        }
    }
}

/// Whether a path is that of a report.
pub fn is_report(path: &Inside) -> bool {
    let (folder, name) = path.split();
    folder == Some(REPORTS) && name.ends_with(".md")
}
