//! One mailbox per agent: bounded, in order, one message at a time (MCP-PROP-10).

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use futures::FutureExt;
use orchestr8_contract::id::AgentId;
use orchestr8_contract::{Code, Event, Fault, Priority};
use orchestr8_kernel::bus::Bus;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::{Cancel, Log};
use parking_lot::RwLock;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::agent::{Agent, Message, Surroundings};
use crate::coordinator::{STATE_CHANGED, unknown};
use crate::state::State;

/// A message on its way. Whoever moves it out of `QUEUED` first decides whether it is worked on.
pub struct Letter {
    pub message: Message,
    pub cancel: Cancel,
    pub log: Log,
    pub stage: Arc<Stage>,
    pub answer: oneshot::Sender<Result<Value, Fault>>,
}

/// Whether a letter still waits.
#[derive(Default)]
pub struct Stage(AtomicU8);

const QUEUED: u8 = 0;
const BEGUN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Stage {
    /// True for the one caller that may work on it.
    pub fn begin(&self) -> bool {
        self.0.compare_exchange(QUEUED, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// True if it was still waiting, and now never is worked on.
    pub fn withdraw(&self) -> bool {
        self.0.compare_exchange(QUEUED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// What the coordinator and the mailbox of one agent both see of it.
#[derive(Default)]
pub struct Desk {
    /// The state after the last message that was answered.
    pub state: RwLock<Arc<Map<String, Value>>>,
    /// Unregistered: what still waits is answered without being worked on.
    pub leaving: AtomicBool,
}

/// The working side of a mailbox.
pub struct Mailbox {
    pub id: AgentId,
    pub agent: Arc<dyn Agent>,
    pub desk: Arc<Desk>,
    pub letters: mpsc::Receiver<Letter>,
    pub bus: Bus,
    pub clock: Arc<dyn Clock>,
}

impl Mailbox {
    /// Takes one letter after the other until the agent is unregistered.
    pub async fn serve(mut self) {
        while let Some(letter) = self.letters.recv().await {
            if !letter.stage.begin() {
                continue;
            }
            let Letter { message, cancel, log, answer, .. } = letter;
            let result = match self.desk.leaving.load(Ordering::Acquire) {
                true => Err(unknown(&self.id)),
                false => self.work(message, cancel, log).await,
            };
            // Nobody may be waiting for it any more.
            let _ = answer.send(result);
        }
    }

    /// Works on one message. A fault or a panic leaves the state as it was.
    async fn work(&self, message: Message, cancel: Cancel, log: Log) -> Result<Value, Fault> {
        let mut state = State::over(self.desk.state.read().clone());
        let around = Surroundings { id: &self.id, state: &mut state, log: log.clone(), cancel };
        let worked =
            AssertUnwindSafe(async { self.agent.receive(message, around).await }).catch_unwind().await;
        match worked {
            Ok(Ok(value)) => {
                self.keep(state);
                Ok(value)
            }
            Ok(Err(fault)) => Err(fault),
            Err(panic) => {
                log.error("an agent panicked", json!({"panic": panic_text(panic.as_ref())}));
                Err(Fault::internal("the agent failed unexpectedly")
                    .with("reason", "panic")
                    .with("agentId", self.id.as_str()))
            }
        }
    }

    fn keep(&self, state: State) {
        let (entries, changed) = state.into_parts();
        if !changed.any {
            return;
        }
        *self.desk.state.write() = entries;
        if !self.bus.has_listeners(STATE_CHANGED) {
            return;
        }
        // Only names are told: values may be secrets, and `agent.getState` shows them redacted.
        self.bus.publish(Event {
            name: STATE_CHANGED,
            subject: self.id.as_str().into(),
            priority: Priority::Normal,
            at_ms: self.clock.now_ms(),
            data: Arc::new(json!({"agentId": self.id, "changed": changed.names})),
        });
    }
}

/// The answer to a letter that was withdrawn before its turn.
pub fn withdrawn(id: &AgentId) -> Fault {
    Fault::new(Code::Cancelled, "stopped before the agent began with the message")
        .with("agentId", id.as_str())
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}
