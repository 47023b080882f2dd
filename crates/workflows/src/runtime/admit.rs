//! How an execution begins that waited for its turn.

use orchestr8_contract::Fault;
use serde_json::{Map, json};
use tokio::sync::mpsc::error::SendError;

use super::accept::Seed;
use super::actor::{Actor, Message};
use super::gates::Entry;
use super::line::Line;
use super::scheduler::Slot;
use super::{Hub, load};
use crate::engine::event::Event;

/// An execution that waited gets its turn.
pub async fn admit(hub: Hub, seed: Seed, mut slot: Slot) {
    let num = seed.num;
    let line = loop {
        let live = match hub.0.claim(num) {
            Ok(line) => break line,
            Err(live) => live,
        };
        // A message has woken it while it waited; then its actor begins it, or it was cancelled meanwhile.
        match live.sender.send(Message::Begin(slot, seed.pass.clone())).await {
            Err(SendError(Message::Begin(back, _))) if !hub.0.stop.is_cancelled() => {
                // That actor has gone in this very moment, so this one begins it.
                slot = back;
                tokio::task::yield_now().await;
            }
            Ok(()) | Err(_) => return,
        }
    };
    if let Err(fault) = begin_waiting(&hub, line, seed, slot).await {
        let error = orchestr8_kernel::log::error(&fault);
        hub.0.log().error("an execution could not begin", json!({"execution": num, "error": error}));
    }
}

async fn begin_waiting(hub: &Hub, line: Line, seed: Seed, slot: Slot) -> Result<(), Fault> {
    let (state, tail) = load::fold(hub, &seed).await?;
    if state.has_begun() || state.status.is_final() {
        // It has begun or ended meanwhile; whatever was sent to this line is heard all the same.
        return hub.revive(line, seed.num, None).await;
    }
    let mut actor = Actor::new(line, hub.clone(), seed, state, tail);
    actor.begin(slot);
    // Who was told that it is cancelled does not see it begin.
    actor.look().await?;
    actor.spawn_unrecorded();
    Ok(())
}

impl Actor {
    /// An execution that is retried has its place in its tree again, and takes its place under its key as one that starts: where there
    /// is none it waits for its turn.
    pub(super) fn take_place_again(&mut self, event: Event) -> Event {
        if !matches!(event, Event::Again) || !self.state.may_begin_again() {
            return event;
        }
        let shared = &self.hub.0;
        shared.trees.enter_again(self.seed.num, self.seed.tree_level());
        if !self.state.has_begun() {
            return event;
        }
        self.seed.is_retried = true;
        let now_ms = shared.now_ms();
        match shared.gates.try_enter(&self.seed, true, now_ms) {
            Ok(Entry::Shut { .. }) => Event::AgainQueued,
            Ok(Entry::Open(pass)) => {
                for statement in pass.iter().flat_map(|pass| pass.begin(self.seed.num, now_ms)) {
                    self.batch.then(statement);
                }
                shared.gates.hold(self.seed.num, pass);
                event
            }
            // The key was resolved when it was accepted, so this does not happen.
            Err(_) => event,
        }
    }
}

/// The first event of an execution: the environment it sees is fixed here.
pub fn begun(hub: &Hub, seed: &Seed) -> Event {
    let names = &seed.identity.workflow.env;
    let mut env = Map::new();
    for name in names {
        if let Some(value) = hub.0.settings.env.get(name) {
            env.insert(name.to_string(), value.into());
        }
    }
    Event::Begun { env, kept: seed.given.kept.clone(), generations: seed.given.generations.clone() }
}
