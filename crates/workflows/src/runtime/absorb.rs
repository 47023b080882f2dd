//! How an actor takes in events: at once where that is cheap, and else on a thread for heavy work when the turn of its tenant comes.
//!
//! The engine is one function without a pause, and what it evaluates is for its author to say. So before each event the actor asks how
//! much that may cost at most (`engine/evaluation.rs`). More than a thread that serves requests has time for waits for a turn; meanwhile
//! the actor still hears what it is told, and between two commits it looks whether it must stop.

use orchestr8_contract::Fault;
use orchestr8_kernel::heavy::HeavyTurn;
use orchestr8_kernel::log;
use serde_json::json;

use super::actor::Actor;
use crate::engine::event::{Event, Task};
use crate::engine::{evaluation, scope};
use crate::limits::INLINE_FUEL;

impl Actor {
    /// Takes in all events that wait, and what follows from them, until the commit is large enough or what comes next needs a turn for
    /// heavy work. What waits is heard before anything begins: it may be a pause.
    pub fn absorb(&mut self) {
        (self.is_cut, self.needs_turn) = (false, !self.is_beside && !self.held.is_empty());
        if self.is_beside {
            for (task, occupied) in std::mem::take(&mut self.held) {
                self.start(task, occupied);
            }
        }
        loop {
            if self.is_batch_full() {
                self.is_cut = true;
                break;
            }
            if self.queue.front().is_some_and(|(event, _)| !self.may_apply(event)) {
                self.needs_turn = true;
                break;
            }
            if let Some((event, inbox)) = self.queue.pop_front() {
                self.take_in(event, inbox);
            }
            self.start_ready();
            if self.queue.is_empty() {
                // What found no room in this commit begins with the next one.
                self.is_cut = self.is_batch_full() && !self.ready.is_empty();
                break;
            }
        }
        self.count_begun();
        self.note_progress();
    }

    /// Whether an event may be applied on this thread.
    fn may_apply(&self, event: &Event) -> bool {
        self.is_beside || evaluation::may_run_inline(&self.state, event)
    }

    /// Whether the call of a task may be resolved on this thread.
    pub(super) fn may_resolve(&self, task: Task) -> bool {
        self.is_beside || scope::cost(&self.state, task) <= INLINE_FUEL
    }

    /// Takes in what needs a turn, when there is one. None: the process stops, or the actor is lost.
    pub(super) async fn absorb_in_turn(mut self) -> Option<Self> {
        let turn = match self.wait_for_turn().await {
            Some(Ok(turn)) => turn,
            // It was told something, which comes first.
            None if !self.hub.0.stop.is_cancelled() => return Some(self),
            None => return None,
            Some(Err(fault)) => {
                self.log_lost(&fault);
                return None;
            }
        };
        let (hub, execution) = (self.hub.clone(), self.state.identity.execution.clone());
        let absorbed = turn.run(move || {
            self.is_beside = true;
            self.absorb();
            self.is_beside = false;
            self
        });
        match absorbed.await {
            Ok(actor) => Some(actor),
            Err(fault) => {
                let fields = json!({"executionId": execution, "error": log::error(&fault)});
                hub.0.log().error("an execution stops where it is", fields);
                None
            }
        }
    }

    /// Waits until the budget of its tenant has room and its turn comes. None: the process stops, or there is something in its inbox,
    /// which may be a cancellation.
    async fn wait_for_turn(&mut self) -> Option<Result<HeavyTurn, Fault>> {
        let (kernel, principal) = (self.hub.0.kernel.clone(), self.seed.principal.clone());
        let turn = kernel.heavy().reserve_patiently(&principal, 0);
        tokio::pin!(turn);
        let stop = self.hub.0.stop.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                turn = &mut turn => return Some(turn),
                Some(message) = self.mailbox.recv() => {
                    self.hear(message);
                    if self.looking {
                        return None;
                    }
                }
            }
        }
    }

    fn log_lost(&self, fault: &Fault) {
        let fields = json!({"executionId": self.state.identity.execution, "error": log::error(fault)});
        self.hub.0.log().error("an execution stops where it is", fields);
    }
}
