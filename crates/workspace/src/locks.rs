//! Locks: a principal whose write failed hard writes nothing more in that workspace before it has reported the failure. They
//! are in the store, so a new connection does not shed them.

use orchestr8_contract::Code;
use orchestr8_kernel::Context;
use orchestr8_kernel::ports::store::{Row, Statement, Store};

use crate::refusal::Refusal;
use crate::session::{REPORTS, Session, is_report};
use crate::tables::{self, WriteLock};

/// Failures of a write that must be reported before anything else is written.
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

/// Whether a failed write locks the workspace for its principal.
pub fn is_hard(code: Code) -> bool {
    HARD.contains(&code)
}

/// The failure that a principal has to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreportedFailure {
    pub code: String,
    pub tool: String,
    pub run: String,
    pub correlation: String,
}

impl UnreportedFailure {
    /// The failure of the caller's that is not reported yet, if there is one.
    pub async fn load(
        store: &dyn Store,
        session: &Session,
        context: &Context,
    ) -> Result<Option<Self>, Refusal> {
        let who = &context.principal;
        let rows = store.query(tables::lock_find(session.place(), who.tenant.as_str(), &who.name)).await;
        let rows = rows.map_err(Refusal::of_store)?;
        rows.first().map(Self::read).transpose()
    }

    fn read(row: &Row) -> Result<Self, Refusal> {
        let text = |column| row.text(column).map(str::to_owned).map_err(Refusal::of_store);
        Ok(Self { code: text(0)?, tool: text(1)?, run: text(2)?, correlation: text(3)? })
    }

    /// Nothing but a report is written meanwhile.
    pub fn check(&self, session: &Session, path: &str) -> Result<(), Refusal> {
        match session.root.inside(path).is_ok_and(|path| is_report(&path)) {
            true => Ok(()),
            false => Err(self.refusal(format!(
                "{} has locked this workspace for you; write a report of it under {REPORTS}/ that names run {}",
                self.code, self.run
            ))),
        }
    }

    /// Whether a text names this failure: its run, its correlation, or its code and the tool.
    pub fn is_named_in(&self, text: &str) -> bool {
        let words: Vec<&str> =
            text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))).collect();
        let has = |word: &str| words.contains(&word);
        has(&self.run) || has(&self.correlation) || (has(&self.code) && has(&self.tool))
    }

    pub fn refusal(&self, message: String) -> Refusal {
        Refusal::new(Code::SessionLocked, message)
            .with("locked_by", self.code.as_str())
            .with("tool", self.tool.as_str())
            .with("run_id", self.run.as_str())
            .with("correlation_id", self.correlation.as_str())
    }

    /// What ends the lock.
    pub fn release(&self, session: &Session, context: &Context) -> Statement {
        let who = &context.principal;
        tables::lock_delete(session.place(), who.tenant.as_str(), &who.name, &self.run)
    }
}

/// What locks a workspace for the caller.
pub fn lock(session: &Session, context: &Context, code: Code, tool: &str, now_ms: i64) -> Statement {
    let who = &context.principal;
    tables::lock_insert(&WriteLock {
        path: session.place(),
        tenant: who.tenant.as_str(),
        principal: &who.name,
        code: code.as_str(),
        tool,
        run: context.run.to_string(),
        correlation: context.correlation.as_str(),
        locked_ms: now_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_the_run_or_the_correlation_or_the_code_and_the_tool() {
        let failure = UnreportedFailure {
            code: String::from("PREFLIGHT_FAILED"),
            tool: String::from("write_file"),
            run: String::from("00000000-0000-4000-8000-000000000007"),
            correlation: String::from("c-1"),
        };
        for text in [
            "Run 00000000-0000-4000-8000-000000000007 failed.",
            "It was (c-1).",
            "`write_file` ended with PREFLIGHT_FAILED.",
        ] {
            assert!(failure.is_named_in(text), "{text}");
        }
        for text in
            ["", "It failed.", "PREFLIGHT_FAILED", "write_file", "c-12", "NOT_PREFLIGHT_FAILED write_file"]
        {
            assert!(!failure.is_named_in(text), "{text}");
        }
    }
}
