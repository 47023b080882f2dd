//! Authorization failures in the audit chain: who tried what and was refused.
//!
//! A caller without rights must not be able to fill the disk, so a principal has a budget of entries per minute. What goes
//! beyond it is counted, and the count is in the next entry.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, RunId};
use orchestr8_contract::{Fault, Kind};
use parking_lot::Mutex;
use serde_json::json;

use crate::audit;
use crate::kernel::Core;
use crate::log;
use crate::ports::store::Batch;
use crate::source::Source;
use crate::submission::{Principal, Submission, Transport};

/// Entries of one principal in one window.
const ENTRIES: u32 = 60;
const WINDOW_MS: i64 = 60_000;

/// Principals whose windows are remembered; beyond it all windows begin again.
const PRINCIPALS: usize = 10_000;

/// What is known of a call that was refused.
pub struct RefusedCall {
    pub run: RunId,
    pub action: Arc<str>,
    pub object: Option<String>,
    pub principal: Arc<Principal>,
    pub transport: Transport,
    pub source: Source,
    pub correlation: CorrelationId,
}

/// Where a refused request came from.
#[derive(Clone, Copy)]
pub struct RefusalSource<'a> {
    pub transport: Transport,
    pub source: Source,
    pub correlation: &'a CorrelationId,
}

impl RefusedCall {
    pub fn of(submission: &Submission, run: RunId) -> Self {
        Self {
            run,
            action: submission.action.clone(),
            object: match &submission.audit_subject {
                Some(subject) => subject.object.clone(),
                None => audit::object(submission.args.as_value()),
            },
            principal: submission.principal.clone(),
            transport: submission.transport,
            source: submission.source,
            correlation: submission.correlation.clone(),
        }
    }
}

/// Whether a fault says that the caller has no right.
pub fn is_refusal(fault: &Fault) -> bool {
    matches!(fault.kind(), Kind::Forbidden | Kind::Unauthenticated)
}

#[derive(Default)]
struct Window {
    began_ms: i64,
    entries: u32,
    suppressed: u32,
}

/// The budgets of all principals.
#[derive(Default)]
pub struct RefusalBudget(Mutex<HashMap<String, Window>>);

impl RefusalBudget {
    /// How many were suppressed before this one; none: this one is suppressed too.
    fn take(&self, principal: &Principal, now_ms: i64) -> Option<u32> {
        let mut windows = self.0.lock();
        if windows.len() >= PRINCIPALS {
            windows.clear();
        }
        let name = format!("{}/{}", principal.tenant.as_str(), principal.name);
        let window = windows.entry(name).or_default();
        if now_ms.saturating_sub(window.began_ms) >= WINDOW_MS || now_ms < window.began_ms {
            *window = Window { began_ms: now_ms, entries: 0, suppressed: window.suppressed };
        }
        if window.entries >= ENTRIES {
            window.suppressed = window.suppressed.saturating_add(1);
            return None;
        }
        window.entries += 1;
        Some(std::mem::take(&mut window.suppressed))
    }
}

/// Writes the entry, before the caller gets its answer.
pub async fn record(core: &Core, call: RefusedCall, fault: &Fault) {
    let now_ms = core.ports.clock.now_ms();
    let Some(suppressed) = core.refusals.take(&call.principal, now_ms) else { return };
    let mut batch = Batch::new();
    batch.link(audit::refused(&call, fault, suppressed, now_ms));
    if let Err(error) = core.ports.store.commit(batch).await {
        let error = log::error(&crate::ledger::store_fault(error));
        let fields = json!({"correlationId": call.correlation, "error": error});
        core.ports.log.error("an authorization failure could not be recorded", fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_has_a_budget_and_what_exceeds_it_is_counted() {
        let budget = RefusalBudget::default();
        let (ann, bob) = (Principal::local(), Principal { name: "bob".into(), ..Principal::local() });
        for _ in 0..ENTRIES {
            assert_eq!(budget.take(&ann, 1_000), Some(0));
        }
        assert_eq!(budget.take(&ann, 1_500), None);
        assert_eq!(budget.take(&ann, 2_000), None);
        assert_eq!(budget.take(&bob, 2_000), Some(0), "others have budgets of their own");
        assert_eq!(budget.take(&ann, 1_000 + WINDOW_MS), Some(2));
        assert_eq!(budget.take(&ann, 1_001 + WINDOW_MS), Some(0));
    }
}
