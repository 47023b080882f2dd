//! The life of an actor: take in, write down, act, wait; until it ends, only waits, or the process stops.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::{Batch, Error};
use serde_json::{Value, json};

use super::accept::Seed;
use super::actor::{Actor, Message};
use super::admit::admit;
use super::gates::Pass;
use super::scheduler::Slot;
use super::tables::InboxMessage;
use super::{Ended, Posted, fault as fault_of, record, run_task, tables};
use crate::engine::event::Event;
use crate::engine::state::State;
use crate::limits;

impl Actor {
    /// Does what became durable.
    pub(super) fn act(&mut self) {
        self.seen.send_replace(self.seq);
        self.hub.0.tell_changed(&self.seed.tenant, &self.seed.identity.execution);
        for recorded in std::mem::take(&mut self.recorded) {
            recorded.cancel();
        }
        for accepted in std::mem::take(&mut self.launching) {
            self.hub.launch(accepted);
        }
        if std::mem::take(&mut self.lining_up) {
            self.hub.line_up(self.seed.clone());
        }
        if std::mem::take(&mut self.timers_changed) {
            self.hub.0.timers.notify_one();
        }
        for posted in std::mem::take(&mut self.posting) {
            self.hub.deliver_later(self.seed.tenant.clone(), posted);
        }
        for start in std::mem::take(&mut self.starting) {
            match run_task::start(start) {
                Ok(ended) => self.ended(ended),
                Err(running) => {
                    self.tasks.spawn(running);
                }
            }
        }
    }

    /// Until it ends, only waits, or the process stops.
    pub(super) async fn live(mut self) {
        let mut grace: Option<BoxFuture<'static, ()>> = None;
        loop {
            if self.looking
                && let Err(fault) = self.look().await
            {
                let fields =
                    json!({"executionId": self.state.identity.execution, "error": log::error(&fault)});
                return self.hub.0.log().error("an execution stops where it is", fields);
            }
            self.absorb();
            if self.may_begin_children() && !self.is_batch_full() {
                self.begin_children().await;
                continue;
            }
            if !self.batch.is_empty() {
                if !self.commit().await {
                    return;
                }
                self.act();
                if self.is_cut {
                    // A commit may end without waiting for anything: a long loop of pure steps lets other tasks run.
                    tokio::task::yield_now().await;
                }
            }
            self.fuel = 0;
            if self.hub.0.stop.is_cancelled() {
                return;
            }
            if self.needs_turn {
                match self.absorb_in_turn().await {
                    Some(actor) => self = actor,
                    None => return,
                }
                continue;
            }
            if !self.queue.is_empty() || self.may_begin_children() || self.is_cut {
                continue;
            }
            if self.finished {
                return self.end().await;
            }
            if self.state.is_idle() && self.tasks.is_empty() {
                match self.retire() {
                    true => return self.hand_over().await,
                    // What came in the last moment is taken in before anything is waited for.
                    false => continue,
                }
            }
            if self.hub.0.closing.is_cancelled() && self.tasks.is_empty() {
                return;
            }
            if !self.state.is_stopping() {
                grace = None;
            } else if grace.is_none() {
                let limit = Duration::from_millis(self.hub.0.settings.grace_ms);
                grace = Some(self.hub.0.ports.clock.sleep(limit));
            }
            self.wait(&mut grace).await;
            if self.hub.0.stop.is_cancelled() {
                return;
            }
        }
    }

    /// Takes from its inbox what it has not been given yet, in order. What was acknowledged comes before all that is not taken in
    /// yet: after a pause no step begins.
    pub(super) async fn look(&mut self) -> Result<(), Fault> {
        self.looking = false;
        let rows = self.hub.0.ports.store.query(tables::inbox_of(self.seed.num)).await.map_err(fault_of)?;
        // What is not there any more never comes back, so it need not be remembered.
        let known = std::mem::take(&mut self.known);
        let mut unheard = Vec::new();
        for row in rows {
            let id = row.int(0).map_err(fault_of)?;
            self.known.insert(id);
            if known.contains(&id) {
                continue;
            }
            let event = row.text(1).map_err(fault_of)?;
            let at_ms = row.int(2).map_err(fault_of)?;
            let message = InboxMessage { id, execution: self.seed.num, at_ms, event };
            let seal = row.optional_text(3).map_err(fault_of)?;
            if let Err(fault) = message.check(self.hub.row_seal(), seal) {
                self.refuse_message(id, fault).await?;
                continue;
            }
            match serde_json::from_str(event) {
                Ok(event) => unheard.push((event, Some(id))),
                Err(error) => {
                    let fields = json!({"message": id, "cause": error.to_string()});
                    self.hub.0.log().error("a stored message cannot be read and stays where it is", fields);
                }
            }
        }
        for message in unheard.into_iter().rev() {
            self.queue.push_front(message);
        }
        Ok(())
    }

    /// A message that this server did not write is not heard: it is deleted, and that is on record. Without the key of the seals it
    /// is not known who wrote it, so it stays.
    async fn refuse_message(&mut self, id: i64, fault: Fault) -> Result<(), Fault> {
        let execution = &self.state.identity.execution;
        let fields = json!({"executionId": execution, "message": id, "error": log::error(&fault)});
        self.hub
            .0
            .log()
            .error("a message to an execution was not written by this server and is not heard", fields);
        if fault.code != Code::StoreCorrupt {
            return Ok(());
        }
        let change = StateChange {
            code: Some(fault.code),
            detail: json!({"message": id, "reason": "row_seal"}),
            ..StateChange::by_server("executions.refused", self.seed.tenant.as_str(), Some(execution))
        };
        let mut batch = Batch::new();
        batch.then(tables::inbox_take(id));
        batch.link(change.link(self.hub.0.now_ms()));
        self.hub.0.ports.store.commit(batch).await.map_err(fault_of)
    }

    async fn wait(&mut self, grace: &mut Option<BoxFuture<'static, ()>>) {
        // What no child could begin with is not kept from others meanwhile.
        self.admission.give_back();
        let graced = async {
            match grace {
                Some(grace) => grace.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.hub.0.stop.cancelled() => {}
            () = self.hub.0.closing.cancelled(), if !self.told_closing => self.told_closing = true,
            Some(message) = self.mailbox.recv() => self.hear(message),
            Some((task, granted)) = self.grants.next(), if !self.grants.is_empty() => {
                self.granted(task, granted);
            }
            () = self.admission.granted(), if self.admission.is_awaited() => {}
            Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => match ended {
                Ok(ended) => self.ended(ended),
                Err(error) => {
                    self.hub.0.log().error("the task of a step was lost", json!({"cause": error.to_string()}));
                }
            },
            () = graced => {
                *grace = None;
                self.queue.push_back((Event::Forced, None));
            }
        }
    }

    /// An attempt has ended.
    fn ended(&mut self, mut ended: run_task::Ended) {
        if let Some((key, change)) = ended.circuit.take()
            && !self.state.status.is_final()
        {
            // A step opened or closed a circuit, which the journal says (WF-19.7).
            let at_ms = self.hub.0.now_ms().max(self.last_ms);
            self.last_ms = at_ms;
            self.log_circuit(ended.task, &key, change);
            self.write(record::of_circuit(ended.task, &key, change), None, at_ms);
        }
        // What is not waited for any more keeps nothing.
        if let Some(artifact) = ended.artifact.take().filter(|_| self.state.work.contains_key(&ended.task)) {
            self.batch.then(artifact.keep(self.seed.num, &self.seed.tenant));
        }
        self.queue.push_back((ended.into_event(), None));
    }

    pub(super) fn hear(&mut self, message: Message) {
        match message {
            Message::Event(event) => self.give(event),
            Message::Look => self.looking = true,
            Message::EventsDropped(drop) => self.note_dropped(&drop),
            Message::Begin(slot, pass) => self.take_turn(slot, pass),
        }
    }

    /// Listeners did not hear of it: the journal says so (WF-19.6).
    fn note_dropped(&mut self, drop: &Value) {
        if !self.state.status.is_final() {
            let at_ms = self.hub.0.now_ms().max(self.last_ms);
            self.last_ms = at_ms;
            self.write(record::of_dropped(drop), None, at_ms);
        }
    }

    /// Its turn has come; one that has begun or ended meanwhile gives the slot back.
    fn take_turn(&mut self, slot: Slot, pass: Option<Arc<Pass>>) {
        if !self.state.has_begun() && !self.state.status.is_final() {
            self.seed.pass = pass;
            self.begin(slot);
            self.hold_place();
        }
    }

    /// Writes what was taken in. A full disk is waited for; a store that stopped ends the actor.
    async fn commit(&mut self) -> bool {
        const AGAIN: Duration = Duration::from_secs(1);
        let batch = self.take_batch();
        loop {
            let error = match self.hub.0.ports.store.commit(batch.clone()).await {
                Ok(()) => return true,
                Err(error) => error,
            };
            let fields = json!({"executionId": self.state.identity.execution, "cause": error.to_string()});
            match error {
                Error::Full(_) => {
                    self.hub.0.log().error("an execution waits until the store can write", fields);
                    tokio::select! {
                        () = self.hub.0.ports.clock.sleep(AGAIN) => {}
                        () = self.hub.0.stop.cancelled() => return false,
                    }
                }
                Error::Conflict { .. } => {
                    // Something else was written after all: what it says counts.
                    self.hub.0.log().error("an execution is read anew", fields);
                    self.listing.end();
                    let posted = Posted::Wake { num: self.seed.num };
                    self.hub.deliver_later(self.seed.tenant.clone(), posted);
                    return false;
                }
                Error::Refused(_) => {
                    self.hub.0.log().error("an execution fails because the store refuses its record", fields);
                    self.listing.end();
                    self.fail_unwritable().await;
                    return false;
                }
                Error::Corrupt(_) | Error::Closed => {
                    self.hub.0.log().error("an execution stops where it is", fields);
                    return false;
                }
            }
        }
    }

    /// What it did cannot be written. The next actor begins from what is stored and fails it, so that it does not stay as it is.
    async fn fail_unwritable(&mut self) {
        let fault = Fault::new(Code::StoreFailed, "what the execution did next could not be recorded");
        let event = Event::Unwritable { fault: StoredFault::from(&fault) };
        let mut batch = Batch::new();
        let posted = match self.hub.post_to(self.seed.num, &event, &mut batch) {
            Ok(posted) => self.hub.0.ports.store.commit(batch).await.map(|()| posted).map_err(fault_of),
            Err(fault) => Err(fault),
        };
        match posted {
            Ok(posted) => self.hub.deliver_later(self.seed.tenant.clone(), posted),
            Err(fault) => {
                let fields =
                    json!({"executionId": self.state.identity.execution, "error": log::error(&fault)});
                self.hub.0.log().error("an execution stops where it is", fields);
            }
        }
    }

    /// Only waits from now on, so it needs no actor. False when a message has come in between.
    fn retire(&mut self) -> bool {
        let mut live = self.hub.0.live.lock();
        match self.mailbox.try_recv() {
            Ok(message) => {
                drop(live);
                self.hear(message);
                false
            }
            Err(_) => {
                live.remove(&self.seed.num);
                drop(live);
                self.hub.0.trees.leave(self.seed.num, self.seed.tree_level(), false);
                self.mailbox.close();
                self.hub.0.recent.close_if_unheard(&self.seed.identity.execution);
                true
            }
        }
    }

    /// Gives to the next actor what was sent to this one in its last moment.
    async fn hand_over(mut self) {
        self.pass_on().await;
    }

    /// A closed mailbox still gets what somebody was just about to put into it.
    async fn pass_on(&mut self) {
        while let Some(message) = self.mailbox.recv().await {
            match message {
                Message::Look => {
                    let posted = Posted::Wake { num: self.seed.num };
                    self.hub.deliver_later(self.seed.tenant.clone(), posted);
                }
                Message::Event(Event::Due { task }) => {
                    let posted = Posted::Due { num: self.seed.num, task };
                    self.hub.deliver_later(self.seed.tenant.clone(), posted);
                }
                // Its journal has ended.
                Message::EventsDropped(_) => {}
                // Only what runs says anything else, and nothing runs any more.
                Message::Event(_) => {}
                Message::Begin(slot, pass) => {
                    let seed = Seed { pass, ..self.seed.clone() };
                    tokio::spawn(admit(self.hub.clone(), seed, slot));
                }
            }
        }
    }

    /// The end is durable. Late ends of cancelled steps are still noted for a while (WF-19.4).
    async fn end(mut self) {
        let fresh = State::new(self.seed.identity.clone());
        let state = std::mem::replace(&mut self.state, fresh);
        let ended = Ended { tenant: self.seed.tenant.clone(), state, facts: self.seed.facts(self.seq) };
        self.hub.0.recent.end(&self.seed.identity.execution, ended);
        self.hub.0.gates.release(self.seed.num);
        self.hub.0.trees.leave(self.seed.num, self.seed.tree_level(), true);
        self.listing.end();
        self.seen.send_replace(self.seq);
        self.mailbox.close();
        self.running.clear();
        self.pass_on().await;
        let over = self.hub.0.ports.clock.sleep(Duration::from_millis(limits::CLEANUP_MS));
        tokio::pin!(over);
        loop {
            let late = tokio::select! {
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => ended,
                () = &mut over, if !self.tasks.is_empty() => return,
                else => return,
            };
            let Ok(late) = late else { continue };
            let at_ms = self.hub.0.now_ms().max(self.last_ms);
            let entry = record::late(late.task, at_ms);
            self.write(entry, None, at_ms);
            if !self.commit().await {
                return;
            }
        }
    }
}
