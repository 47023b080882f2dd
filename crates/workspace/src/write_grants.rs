//! What the store says about a write before it begins: whether the caller must report a failure first, and whether the plan it
//! names is approved.

use std::sync::Arc;

use orchestr8_kernel::Context;
use orchestr8_kernel::ports::store::Batch;

use crate::approvals::{PlanRecord, check_approved};
use crate::desk::Call;
use crate::locks::UnreportedFailure;
use crate::refusal::Refusal;
use crate::session::Session;

/// Clones share it.
#[derive(Clone)]
pub struct WriteGrants(Arc<Grants>);

struct Grants {
    unreported: Option<UnreportedFailure>,
    approval: Result<(), Refusal>,
}

impl WriteGrants {
    /// Refuses a write that is no report while the caller has a failure to report.
    pub async fn load(call: &Call, session: &Session) -> Result<Self, Refusal> {
        let store = &*call.hub.ports().store;
        let unreported = UnreportedFailure::load(store, session, &call.context).await?;
        if let (Some(failure), Some(path)) = (&unreported, call.fields.text("path")?) {
            failure.check(session, path)?;
        }
        // A name that is no hash is refused at its gate.
        let approval = match call.fields.plan_hash("plan") {
            Ok(Some(hash)) => {
                let record = PlanRecord::find(store, session.place(), &hash).await?;
                check_approved(record.as_ref(), &hash, &call.hub.settings().signing_key)
            }
            Ok(None) | Err(_) => Ok(()),
        };
        Ok(Self(Arc::new(Grants { unreported, approval })))
    }

    pub fn unreported(&self) -> Option<&UnreportedFailure> {
        self.0.unreported.as_ref()
    }

    pub fn approval(&self) -> &Result<(), Refusal> {
        &self.0.approval
    }

    /// What ends the lock, if a report was written and there is one.
    pub fn release(&self, session: &Session, context: &Context, is_report: bool) -> Option<Batch> {
        let failure = self.unreported().filter(|_| is_report)?;
        let mut batch = Batch::new();
        batch.then(failure.release(session, context));
        Some(batch)
    }
}
