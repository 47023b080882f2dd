//! The one path of every action. Each step takes what the step before gave and returns the next type, so the order in
//! which things happen is the order of these signatures:
//!
//! 1 admit, 2 claim, 3 accept, 4 enter, 5 take, 6 check, 7 run, 8 settle.
//!
//! Places, claims and slots are guards: dropped on the way, they give back what they hold. What the policy of an action
//! does not need, its path does not pay for: a read without a key touches neither ledger nor disk. Rare waits are boxed.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::RunId;
use orchestr8_contract::{Code, Fault};

use crate::action::{Action, Shown, Slotting};
use crate::authorize::authorize;
use crate::depends::{Waiting, wait_for};
use crate::fingerprint::Fingerprint;
use crate::in_flight::InFlight;
use crate::kernel::Core;
use crate::lanes::{Joining, Number, Place};
use crate::ledger::{Claim, Claimed as Found, Wish};
use crate::outcome::{End, Settled, Stored};
use crate::ports::ids::For;
use crate::principals::Standing;
use crate::refusals::{self, RefusedCall};
use crate::run::{self, Ended};
use crate::settle;
use crate::slots::{Holder, Slot, Slots};
use crate::submission::{Submission, Transport};

/// A submission that may go on: its action is known, its size and its caller are in order, its place is taken.
pub struct Admitted {
    /// In a box: it is handed from step to step, and it is large.
    pub submission: Box<Submission>,
    pub action: Arc<Action>,
    pub run: RunId,
    pub began_us: u64,
    /// What others know it by who wait for it.
    pub number: Option<Number>,
    place: Option<Box<Place>>,
    in_flight: Option<InFlight>,
}

/// No other run has its keys.
pub struct Claimed {
    pub admitted: Admitted,
    pub claim: Option<Box<Claim>>,
}

/// It is on record, as far as its policy wants it to be.
pub struct Accepted(Claimed);

/// It is its turn, and everything it depends on has succeeded.
pub struct InLane {
    accepted: Accepted,
    version: Option<u64>,
}

/// There is room to run.
pub struct Ready {
    in_lane: InLane,
    slots: Held,
}

/// Its arguments are what the action wants.
pub struct Checked(Ready);

/// The slots a run holds until its work returns.
#[derive(Default)]
pub struct Held {
    _server: Option<Slot>,
    _action: Option<Slot>,
}

/// What is kept from admission to the end of the work, late or not.
pub struct Hold {
    pub slots: Held,
    pub place: Option<Box<Place>>,
    pub in_flight: Option<InFlight>,
}

/// A way off the path.
pub enum Exit {
    /// Refused: nothing ran and nothing is remembered.
    Refused(Fault),
    /// Answered from the ledger.
    Replayed(Arc<Stored>),
    /// Accepted and failed before it ran; that is its outcome.
    Failed(Box<InLane>, Fault),
}

impl From<Fault> for Exit {
    fn from(fault: Fault) -> Self {
        Exit::Refused(fault)
    }
}

/// Runs a submission from one end to the other.
pub async fn course(core: Arc<Core>, submission: Box<Submission>) -> Settled {
    let (run, correlation) = (RunId(core.ports.ids.fresh(For::Run)), submission.correlation.clone());
    let action = core.registry.find_for(&submission.principal.tenant, &submission.action);
    let is_tool = action.as_ref().is_none_or(|action| matches!(action.shown, Shown::Tool));
    let settled = match path(&core, submission, action, run).await {
        Ok(settled) => settled,
        Err(Exit::Refused(fault)) => settle::refused(&core, run, correlation, fault),
        Err(Exit::Replayed(stored)) => stored.replay(correlation),
        Err(Exit::Failed(in_lane, fault)) => Box::pin(settle::failed(&core, *in_lane, fault)).await,
    };
    if is_tool {
        core.health.ended(settled.end == End::Refused, settled.code());
    }
    settled
}

async fn path(
    core: &Arc<Core>,
    submission: Box<Submission>,
    action: Option<Arc<Action>>,
    run: RunId,
) -> Result<Settled, Exit> {
    let admitted = match admit(core, submission, action, run) {
        Ok(admitted) => admitted,
        Err(refused) => return Err(Box::pin(note_refusal(core, *refused, run)).await),
    };
    let claimed = claim(core, admitted).await?;
    let accepted = accept(core, claimed).await?;
    let in_lane = enter(core, accepted).await?;
    let ready = take(core, in_lane).await?;
    let checked = check(ready).await?;
    let ended = run_work(core, checked).await;
    Ok(settle::settle(core, ended).await)
}

/// Puts a refusal for want of a right on record before it is answered.
async fn note_refusal(core: &Arc<Core>, (submission, fault): (Box<Submission>, Fault), run: RunId) -> Exit {
    if refusals::is_refusal(&fault) {
        refusals::record(core, RefusedCall::of(&submission, run), &fault).await;
    }
    Exit::Refused(fault)
}

/// Step 1: size, then name, then caller (MCP-ORDER-4, MCP-ORDER-5). The place in the lane is taken before anything is waited
/// for, so that the order of arrival is the order of the lane.
fn admit(
    core: &Arc<Core>,
    submission: Box<Submission>,
    action: Option<Arc<Action>>,
    run: RunId,
) -> Result<Admitted, Box<(Box<Submission>, Fault)>> {
    let action = match check_admission(core, &submission, action) {
        Ok(action) => action,
        Err(fault) => return Err(Box::new((submission, fault))),
    };
    let in_flight = Some(core.count_in(&submission.principal));
    let ordered = submission.lane.is_some() || submission.id.is_some() || !submission.depends_on.is_empty();
    let place = ordered.then(|| {
        Box::new(core.lanes.join(Joining {
            tenant: submission.principal.tenant.clone(),
            scope: submission.id_scope.0.clone(),
            id: submission.id.clone(),
            lane: submission.lane.clone(),
            depends_on: submission.depends_on.clone(),
        }))
    });
    let (number, began_us) = (place.as_ref().map(|place| place.number()), core.ports.clock.elapsed_us());
    Ok(Admitted { submission, action, run, began_us, number, place, in_flight })
}

fn check_admission(
    core: &Core,
    submission: &Submission,
    action: Option<Arc<Action>>,
) -> Result<Arc<Action>, Fault> {
    if core.is_shutting_down() {
        return Err(Fault::new(Code::ShuttingDown, "the server is shutting down"));
    }
    let own_limit = action.as_ref().and_then(|action| action.policy.payload_bytes);
    let limit = own_limit.unwrap_or(core.limits.payload_bytes);
    if let Err(bytes) = submission.args.fits(limit) {
        return Err(Fault::new(
            Code::ResourceExhausted,
            format!("the arguments have {bytes} bytes; the limit is {limit}"),
        )
        .with("reason", "payload_too_large")
        .with("bytes", bytes)
        .with("maxPayloadBytes", limit));
    }
    let (principal, transport) = (&submission.principal, submission.transport);
    let Some(action) = action.filter(|action| action.is_for(&principal.tenant)) else {
        return Err(core.unknown_action(&submission.action));
    };
    let standing = match transport {
        // A face has just authenticated the caller.
        Transport::Stdio | Transport::Http | Transport::WebSocket => Standing::Unknown,
        Transport::Internal => core.standing(&principal.tenant, &principal.name),
    };
    authorize(&action, principal, transport, standing)?;
    Ok(action)
}

/// Step 2: a repeat of a key is answered with the first outcome; another request under the same key is refused.
async fn claim(core: &Arc<Core>, admitted: Admitted) -> Result<Claimed, Exit> {
    let claim = match admitted.submission.identities.is_empty() {
        true => None,
        false => Some(Box::pin(claim_keys(core, &admitted)).await?),
    };
    Ok(Claimed { admitted, claim })
}

async fn claim_keys(core: &Arc<Core>, admitted: &Admitted) -> Result<Box<Claim>, Exit> {
    let submission = &admitted.submission;
    let fingerprint = match &submission.fingerprint {
        Some(fingerprint) => fingerprint.clone(),
        None => Fingerprint::of(admitted.action.name.as_str(), submission.args.as_value()),
    };
    loop {
        let wish = Wish {
            tenant: &submission.principal.tenant,
            identities: &submission.identities,
            action: admitted.action.name.as_str(),
            fingerprint: fingerprint.clone(),
            run: admitted.run,
            now_ms: core.ports.clock.now_ms(),
        };
        match core.ledger.claim(wish).await? {
            Found::Mine(claim) => return Ok(Box::new(claim)),
            Found::Replay(stored) => return Err(Exit::Replayed(stored)),
            Found::Join(mut ended) => {
                // The one in flight may be refused and give its key back; then it is this one's turn to claim.
                if let Ok(stored) = ended.wait_for(Option::is_some).await
                    && let Some(stored) = stored.clone()
                {
                    return Err(Exit::Replayed(stored));
                }
            }
        }
    }
}

/// Step 3: what must be on record before the work begins is made durable; listeners hear of it. There must be room for one
/// more; a repeat needs none, so it was answered before.
async fn accept(core: &Arc<Core>, mut claimed: Claimed) -> Result<Accepted, Exit> {
    if claimed.admitted.in_flight.as_ref().is_some_and(InFlight::is_too_many) {
        return Err(core.crowded().into());
    }
    if let Some(follow) = &claimed.admitted.submission.follow {
        follow.admit()?;
    }
    let batch = settle::beginning(core, &claimed)?;
    if !batch.is_empty() {
        core.ports.store.commit(batch).await.map_err(crate::ledger::store_fault)?;
        if let Some(claim) = &mut claimed.claim {
            claim.begun();
        }
    }
    if let Some(follow) = &claimed.admitted.submission.follow {
        follow.accepted();
    }
    core.tell(settle::ACCEPTED, &claimed.admitted, || None);
    Ok(Accepted(claimed))
}

/// Step 4: waits for its turn, then for what it depends on, then looks whether the version is the one expected.
async fn enter(core: &Arc<Core>, mut accepted: Accepted) -> Result<InLane, Exit> {
    let admitted = &mut accepted.0.admitted;
    if let Some(place) = &mut admitted.place {
        place.turn().await;
    }
    let submission = &admitted.submission;
    if let Some(follow) = &submission.follow {
        follow.started();
    }
    let mut outcome = Ok(());
    if let (Some(place), false) = (&admitted.place, submission.depends_on.is_empty()) {
        let waiting = Waiting {
            place,
            tenant: &submission.principal.tenant,
            scope: &submission.id_scope,
            me: submission.id.as_ref(),
            depends_on: &submission.depends_on,
        };
        outcome = Box::pin(wait_for(core, waiting)).await;
    }
    let version = match (outcome, &submission.version) {
        (Err(fault), _) => Err(fault),
        (Ok(()), None) => Ok(None),
        (Ok(()), Some(version)) => Box::pin(core.versions.guard(&submission.principal.tenant, version)).await,
    };
    match version {
        Ok(version) => Ok(InLane { accepted, version }),
        Err(fault) => Err(Exit::Failed(Box::new(InLane { accepted, version: None }), fault)),
    }
}

/// Step 5: a slot, or a refusal (MCP-ORDER-6). Before the arguments are checked: the order of the seed.
async fn take(core: &Arc<Core>, in_lane: InLane) -> Result<Ready, Exit> {
    let Admitted { action, submission, .. } = &in_lane.accepted.0.admitted;
    let own = action.policy.concurrent_runs.map(|max| core.slots_of(action, max));
    let slots = match action.policy.slotting {
        Slotting::Free => Some(Held::default()),
        Slotting::Refuse => Held::now(core, Holder::of(&submission.principal), own.as_ref()),
        Slotting::Wait { limit_ms } => {
            let holder = Holder::of(&submission.principal);
            Box::pin(Held::within(core, holder, own.as_ref(), limit_ms)).await
        }
    };
    match slots {
        Some(slots) => Ok(Ready { in_lane, slots }),
        None => {
            let fault = core.no_slot(own.as_ref());
            give_back(in_lane).await;
            Err(Exit::Refused(fault))
        }
    }
}

/// Step 6: the arguments against the schema that was compiled when the action was registered (MCP-ORDER-7).
async fn check(ready: Ready) -> Result<Checked, Exit> {
    let admitted = &ready.in_lane.accepted.0.admitted;
    match admitted.action.input.check(admitted.submission.args.as_value()) {
        Ok(()) => Ok(Checked(ready)),
        Err(fault) => {
            give_back(ready.in_lane).await;
            Err(Exit::Refused(fault))
        }
    }
}

/// Step 7: the work, under its deadline and its cancel token (MCP-ORDER-8).
async fn run_work(core: &Arc<Core>, checked: Checked) -> Ended {
    let Ready { in_lane, slots } = checked.0;
    core.tell(settle::STARTED, &in_lane.accepted.0.admitted, || None);
    let (mut admitted, claim, version) = in_lane.into_parts();
    let hold = admitted.hold(slots);
    run::run(core, admitted, claim, version, hold).await
}

async fn give_back(in_lane: InLane) {
    if let Some(claim) = in_lane.accepted.0.claim {
        Box::pin(claim.give_back()).await;
    }
}

impl InLane {
    pub fn into_parts(self) -> (Admitted, Option<Box<Claim>>, Option<u64>) {
        let Claimed { admitted, claim } = self.accepted.0;
        (admitted, claim, self.version)
    }
}

impl Admitted {
    /// Takes out what must be held until the work returns.
    pub fn hold(&mut self, slots: Held) -> Hold {
        Hold { slots, place: self.place.take(), in_flight: self.in_flight.take() }
    }
}

impl Held {
    fn now(core: &Core, holder: Holder, own: Option<&Slots>) -> Option<Self> {
        let server = core.slots.try_take(holder)?;
        let action = match own {
            Some(slots) => Some(slots.try_take(holder)?),
            None => None,
        };
        Some(Self { _server: Some(server), _action: action })
    }

    async fn within(core: &Core, holder: Holder, own: Option<&Slots>, limit_ms: u64) -> Option<Self> {
        let both = async {
            // The action's own slot first: whoever waits for it must not hold one of the server's meanwhile.
            let action = match own {
                Some(slots) => Some(slots.take(holder).await),
                None => None,
            };
            Self { _server: Some(core.slots.take(holder).await), _action: action }
        };
        tokio::select! {
            biased;
            held = both => Some(held),
            () = core.ports.clock.sleep(Duration::from_millis(limit_ms)) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room<F>(_: fn(Arc<Core>, Box<Submission>) -> F) -> usize {
        size_of::<F>()
    }

    /// The C library hands out up to this much without a search, and every call moves its course once.
    #[test]
    fn a_course_takes_little_room() {
        let bytes = room(course);
        assert!(bytes <= 1032, "{bytes} bytes");
    }
}
