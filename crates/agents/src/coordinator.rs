//! The coordinator: knows the agents and brings messages to them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use orchestr8_contract::id::AgentId;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::bus::Bus;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::{Cancel, Log};
use parking_lot::RwLock;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::agent::{Agent, Message};
use crate::limits;
use crate::mailbox::{Desk, Letter, Mailbox, Stage, withdrawn};

/// The news that the state of an agent has changed; its subject is the agent's id.
pub const STATE_CHANGED: &str = "agent.state_changed";

/// Knows the agents. Clones share them; when the last one goes, the mailboxes end.
#[derive(Clone)]
pub struct Coordinator(Arc<Shared>);

struct Shared {
    seats: RwLock<BTreeMap<AgentId, Seat>>,
    bus: Bus,
    clock: Arc<dyn Clock>,
    log: Log,
    mailbox_messages: usize,
}

struct Seat {
    /// None once the agent is unregistered and only its last message goes on.
    letters: Option<mpsc::Sender<Letter>>,
    desk: Arc<Desk>,
}

impl Coordinator {
    pub fn new(bus: Bus, clock: Arc<dyn Clock>, log: Log) -> Self {
        Self::with_mailboxes_of(limits::MAILBOX_MESSAGES, bus, clock, log)
    }

    /// With another number of messages that may wait for one agent.
    pub fn with_mailboxes_of(messages: usize, bus: Bus, clock: Arc<dyn Clock>, log: Log) -> Self {
        let mailbox_messages = messages.max(1);
        Self(Arc::new(Shared { seats: RwLock::default(), bus, clock, log, mailbox_messages }))
    }

    /// Gives the agent a mailbox. Needs a tokio runtime around it.
    pub fn register(&self, id: AgentId, agent: Arc<dyn Agent>) -> Result<(), Fault> {
        let mut seats = self.0.seats.write();
        if let Some(seat) = seats.get(&id) {
            return Err(match seat.letters {
                Some(_) => Fault::invalid(format!("an agent named '{id}' exists already")),
                None => Fault::new(
                    Code::Unavailable,
                    format!("the agent '{id}' is still busy with its last message"),
                ),
            }
            .with("agentId", id.as_str()));
        }
        if seats.len() >= limits::AGENTS {
            let what = format!("there are {} agents, and no more are taken", limits::AGENTS);
            return Err(Fault::new(Code::ResourceExhausted, what).with("reason", "too_many_agents"));
        }
        let (sender, letters) = mpsc::channel(self.0.mailbox_messages);
        let desk = Arc::new(Desk::default());
        let (bus, clock) = (self.0.bus.clone(), self.0.clock.clone());
        let mailbox = Mailbox { id: id.clone(), agent, desk: desk.clone(), letters, bus, clock };
        tokio::spawn(serve(mailbox, Arc::downgrade(&self.0)));
        seats.insert(id, Seat { letters: Some(sender), desk });
        Ok(())
    }

    /// Whether there was such an agent. What it works on goes to its end; what waits for it is answered NOT_FOUND.
    pub fn unregister(&self, id: &AgentId) -> bool {
        let mut seats = self.0.seats.write();
        let Some(seat) = seats.get_mut(id) else { return false };
        seat.desk.leaving.store(true, Ordering::Release);
        seat.letters.take().is_some()
    }

    /// Sends a message and waits for the answer.
    pub async fn send(&self, target: &AgentId, message: Message) -> Result<Value, Fault> {
        self.send_until(target, message, Cancel::new(), &self.0.log).await
    }

    /// Sends a message and waits for the answer, or until the cancel fires: then a message that still waits is withdrawn,
    /// and one the agent works on is waited for, since it goes on using the machine (MCP-TIMEOUT-4).
    pub async fn send_until(
        &self,
        target: &AgentId,
        message: Message,
        cancel: Cancel,
        log: &Log,
    ) -> Result<Value, Fault> {
        let (answer, mut answered) = oneshot::channel();
        let stage = Arc::new(Stage::default());
        let log = log.child(json!({"agentId": target}));
        self.post(target, Letter { message, cancel: cancel.clone(), log, stage: stage.clone(), answer })?;
        let lost = || Fault::internal("the agent's mailbox has ended").with("agentId", target.as_str());
        tokio::select! {
            biased;
            result = &mut answered => return result.unwrap_or_else(|_| Err(lost())),
            () = cancel.fired() => {}
        }
        match stage.withdraw() {
            true => Err(withdrawn(target)),
            false => answered.await.unwrap_or_else(|_| Err(lost())),
        }
    }

    /// The state of an agent after the last message it answered.
    pub fn state(&self, id: &AgentId) -> Option<Arc<Map<String, Value>>> {
        let seats = self.0.seats.read();
        let seat = seats.get(id).filter(|seat| seat.letters.is_some())?;
        Some(seat.desk.state.read().clone())
    }

    /// Whether there is such an agent.
    pub fn has(&self, id: &AgentId) -> bool {
        self.0.seats.read().get(id).is_some_and(|seat| seat.letters.is_some())
    }

    /// The first agents in order of id, and whether there are more.
    pub fn list(&self, limit: usize) -> (Vec<AgentId>, bool) {
        let seats = self.0.seats.read();
        let mut ids = seats.iter().filter(|(_, seat)| seat.letters.is_some()).map(|(id, _)| id);
        let listed = ids.by_ref().take(limit).cloned().collect();
        (listed, ids.next().is_some())
    }

    fn post(&self, target: &AgentId, letter: Letter) -> Result<(), Fault> {
        let seats = self.0.seats.read();
        let letters =
            seats.get(target).and_then(|seat| seat.letters.as_ref()).ok_or_else(|| unknown(target))?;
        letters.try_send(letter).map_err(|refused| match refused {
            TrySendError::Full(_) => {
                let max = self.0.mailbox_messages;
                Fault::new(
                    Code::ResourceExhausted,
                    format!("{max} messages wait for the agent '{target}' already"),
                )
                .with("reason", "mailbox_full")
                .with("agentId", target.as_str())
                .with("maxMessages", max)
            }
            TrySendError::Closed(_) => unknown(target),
        })
    }
}

/// Serves a mailbox to its end, then frees the name.
async fn serve(mailbox: Mailbox, shared: Weak<Shared>) {
    let (id, desk) = (mailbox.id.clone(), mailbox.desk.clone());
    mailbox.serve().await;
    if let Some(shared) = shared.upgrade() {
        let mut seats = shared.seats.write();
        if seats.get(&id).is_some_and(|seat| Arc::ptr_eq(&seat.desk, &desk)) {
            seats.remove(&id);
        }
    }
}

/// The answer to whoever names an agent that is not there.
pub fn unknown(id: &AgentId) -> Fault {
    Fault::new(Code::NotFound, format!("there is no agent named '{id}'")).with("agentId", id.as_str())
}
