//! Waiting for the submissions one depends on, and for nothing that would never come (SES-9).

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::{SubmissionId, Tenant};
use orchestr8_contract::{Code, Fault, limits};
use tokio::sync::watch;

use crate::kernel::Core;
use crate::lanes::{Known, Place, Told};
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
    mut ended: watch::Receiver<Option<Told>>,
) -> Result<(), Fault> {
    let limit_ms = core.limits.dependency_wait_ms;
    let wait = ended.wait_for(Option::is_some);
    let waited = tokio::select! {
        biased;
        ended = wait => ended.ok().and_then(|told| told.clone()),
        () = core.ports.clock.sleep(Duration::from_millis(limit_ms)) => {
            return Err(fault(Code::DependencyTimeout, id, format!("'{id}' did not end within {limit_ms} ms")));
        }
    };
    match waited {
        Some(Ok(())) => Ok(()),
        Some(Err(why)) => Err(failed(id, &why)),
        None => Err(failed(id, "it was refused")),
    }
}

fn completed(id: &SubmissionId, stored: Option<Arc<Stored>>) -> Result<(), Fault> {
    match stored {
        Some(stored) if stored.succeeded() => Ok(()),
        Some(stored) => {
            let why = stored.fault.as_ref().map_or(stored.end.as_str(), |fault| fault.message.as_str());
            Err(failed(id, why))
        }
        None => Err(fault(Code::DependencyUnknown, id, format!("'{id}' is unknown"))),
    }
}

fn failed(id: &SubmissionId, why: &str) -> Fault {
    fault(Code::DependencyFailed, id, format!("'{id}' failed: {why}")).with("why", why)
}

fn fault(code: Code, id: &SubmissionId, text: String) -> Fault {
    Fault::new(code, format!("the dependency {text}")).with("dependency", id.as_str())
}
