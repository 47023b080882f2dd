//! Waiting for the submissions one depends on, and for nothing that would never come (SES-9).

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::{SubmissionId, Tenant};
use orchestr8_contract::{Code, Fault, limits};
use tokio::sync::watch;

use crate::kernel::Core;
use crate::lanes::{Known, Place};
use crate::outcome::Stored;
use crate::submission::{Scope, past};

/// Who waits for whom.
pub struct Waiting<'a> {
    pub place: &'a Place,
    pub tenant: &'a Tenant,
    pub scope: &'a Scope,
    pub me: Option<&'a SubmissionId>,
    pub depends_on: &'a [SubmissionId],
}

/// Ends once all have succeeded; an error as soon as one has not, or cannot be waited for.
pub async fn wait_for(core: &Core, waiting: Waiting<'_>) -> Result<(), Fault> {
    for id in waiting.depends_on {
        if waiting.me == Some(id) {
            return Err(fault(Code::DependencyCycle, id, format!("'{id}' cannot depend on itself")));
        }
        match waiting.place.look_up(&waiting.scope.0, id) {
            Known::InFlight(ended) => in_flight(core, id, ended).await?,
            Known::BehindMe => {
                let text = format!("'{id}' is queued in the same lane and cannot be awaited from here");
                return Err(fault(Code::DependencyInversion, id, text));
            }
            Known::WaitsForMe => {
                return Err(fault(Code::DependencyCycle, id, format!("'{id}' waits for this one in turn")));
            }
            Known::Unknown => {
                let identity = past(waiting.scope, id, limits::KEY_TTL_MS);
                let stored =
                    core.ledger.look_up(waiting.tenant, &identity, core.ports.clock.now_ms()).await?;
                completed(id, stored)?;
            }
        }
    }
    Ok(())
}

async fn in_flight(
    core: &Core,
    id: &SubmissionId,
    mut ended: watch::Receiver<Option<bool>>,
) -> Result<(), Fault> {
    let limit_ms = core.limits.dependency_wait_ms;
    let wait = ended.wait_for(Option::is_some);
    let waited = tokio::select! {
        biased;
        ended = wait => ended.ok().and_then(|succeeded| *succeeded),
        () = core.ports.clock.sleep(Duration::from_millis(limit_ms)) => {
            return Err(fault(Code::DependencyTimeout, id, format!("'{id}' did not end within {limit_ms} ms")));
        }
    };
    match waited {
        Some(true) => Ok(()),
        Some(false) | None => Err(fault(Code::DependencyFailed, id, format!("'{id}' failed"))),
    }
}

fn completed(id: &SubmissionId, stored: Option<Arc<Stored>>) -> Result<(), Fault> {
    match stored {
        Some(stored) if stored.succeeded() => Ok(()),
        Some(stored) => {
            let why = stored.fault.as_ref().map_or("", |fault| fault.message.as_str());
            Err(fault(Code::DependencyFailed, id, format!("'{id}' failed: {why}")))
        }
        None => Err(fault(Code::DependencyUnknown, id, format!("'{id}' is unknown"))),
    }
}

fn fault(code: Code, id: &SubmissionId, text: String) -> Fault {
    Fault::new(code, format!("the dependency {text}")).with("dependency", id.as_str())
}
