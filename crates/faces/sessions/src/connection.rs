//! One client: who it is, what it is told, what it follows, and how much of it is under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Args, Principal, Source, Submission, Transport};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::audience::Audience;
use crate::catch_up::Record;
use crate::face::Inner;
use crate::following::Follower;
use crate::from_wire::{self, Command, Label, Refused};
use crate::limits::FOLLOWED;
use crate::metrics::count;
use crate::outbox::{Outbox, Weight};
use crate::wording::{INVALID_JSON, SHUTTING_DOWN};
use crate::{pursuit, strict, to_wire};

/// Tells what the last start found and mended.
const RECOVERY: &str = "session.get_startup_recovery";

pub struct Connection {
    pub face: Arc<Inner>,
    pub principal: Arc<Principal>,
    pub transport: Transport,
    pub source: Source,
    pub outbox: Arc<Outbox>,
    pub audience: Arc<Audience>,
    /// Commands that have not been answered.
    pending: AtomicUsize,
    answered: Notify,
    follows: Mutex<HashMap<Arc<str>, Arc<Follower>>>,
}

/// A connection while it is there; dropped, the client is gone.
pub struct Open(pub Arc<Connection>);

impl Open {
    /// None when there are too many already.
    pub fn new(
        face: &Arc<Inner>,
        principal: Arc<Principal>,
        transport: Transport,
        source: Source,
    ) -> Option<Self> {
        let limit = face.settings.connections;
        if face.metrics.connections.fetch_add(1, Ordering::AcqRel) >= limit {
            face.metrics.connections.fetch_sub(1, Ordering::AcqRel);
            count(&face.metrics.turned_away);
            return None;
        }
        let outbox = Arc::new(Outbox::new(face.settings.soft_bytes, face.settings.hard_bytes));
        let audience = face.audiences.of(&principal.tenant);
        Some(Self(Arc::new(Connection {
            face: face.clone(),
            principal,
            transport,
            source,
            outbox,
            audience,
            pending: AtomicUsize::new(0),
            answered: Notify::new(),
            follows: Mutex::default(),
        })))
    }

    /// The first words; after them the client hears what everybody hears.
    pub async fn greet(&self) {
        let connection = &self.0;
        let face = &connection.face;
        connection.outbox.push(to_wire::ready(&face.settings), Weight::Critical);
        if let Some(data) = connection.recovery().await {
            let summary = to_wire::recovery(data, face.settings.recovery_details);
            connection.outbox.push(summary, Weight::Critical);
        }
        face.audiences.join(&connection.principal, &connection.outbox);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let (connection, face) = (&self.0, &self.0.face);
        connection.outbox.close();
        face.audiences.leave(&connection.principal.tenant, &connection.outbox);
        let follows = std::mem::take(&mut *connection.follows.lock());
        follows.values().for_each(|follower| face.topics.leave(&connection.principal.tenant, follower));
        face.metrics.dropped.fetch_add(connection.outbox.dropped(), Ordering::Relaxed);
        face.metrics.connections.fetch_sub(1, Ordering::AcqRel);
        face.gone.notify_waiters();
    }
}

impl Connection {
    /// Takes one frame of the client. Whatever it is, there is one answer to it.
    pub fn receive(self: &Arc<Self>, frame: &[u8]) {
        let face = &self.face;
        if frame.len() > face.settings.message_bytes {
            return self.refuse_oversized(frame.len());
        }
        let Ok(members) = strict::object(frame) else {
            return self.refuse_malformed();
        };
        let limit = face.settings.pending;
        if self.pending.load(Ordering::Acquire) >= limit {
            count(&face.metrics.pending_limited);
            let text = format!("Too many pending commands for this connection (max {limit})");
            return self.refuse(&Label::of(&members), &text, Code::ResourceExhausted);
        }
        if face.is_shutting_down() {
            return self.refuse(&Label::of(&members), SHUTTING_DOWN, Code::ShuttingDown);
        }
        let kind = members.get("type").and_then(Value::as_str);
        let known = kind.and_then(|kind| face.commands.find(face.kernel.registry(), kind));
        let fresh = || face.kernel.ports().ids.fresh(For::Session).to_string();
        match from_wire::command(members, known, fresh) {
            Ok(command) => pursuit::start(self, command),
            Err(Refused { label, problems }) => {
                count(&face.metrics.invalid);
                self.refuse(&label, &problems.text(), Code::InvalidArgument);
            }
        }
    }

    /// A frame that is no single JSON object.
    pub fn refuse_malformed(&self) {
        count(&self.face.metrics.malformed);
        self.refuse(&Label::default(), INVALID_JSON, Code::InvalidArgument);
    }

    /// One more command will be answered later.
    pub fn begin(&self) {
        self.pending.fetch_add(1, Ordering::AcqRel);
    }

    /// One of them has been answered.
    pub fn end(&self) {
        self.pending.fetch_sub(1, Ordering::AcqRel);
        self.answered.notify_waiters();
    }

    /// Ends once every command has been answered.
    pub async fn idle(&self) {
        loop {
            let answered = self.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            if self.pending.load(Ordering::Acquire) == 0 {
                return;
            }
            answered.await;
        }
    }

    pub fn refuse_oversized(&self, bytes: usize) {
        count(&self.face.metrics.oversized);
        let text = format!("Message size {bytes} exceeds limit {}", self.face.settings.message_bytes);
        self.refuse(&Label::default(), &text, Code::PayloadTooLarge);
    }

    pub fn refuse_fault(&self, command: &Command, fault: &Fault) {
        let label = Label { id: command.id.clone(), command: Some(command.known.name.as_ref().to_owned()) };
        self.refuse(&label, &fault.message, fault.code);
    }

    fn refuse(&self, label: &Label, text: &str, code: Code) {
        self.outbox.push(to_wire::refusal(label, text, code), Weight::Critical);
    }

    /// Listens to a session from now on; its events wait until `settle_following`.
    pub fn follow(self: &Arc<Self>, session: &Arc<str>) -> Result<Arc<Follower>, Fault> {
        let mut follows = self.follows.lock();
        if let Some(follower) = follows.get(session).filter(|follower| !follower.is_ended()) {
            follower.hold();
            return Ok(follower.clone());
        }
        if follows.len() >= FOLLOWED {
            follows.retain(|_, follower| !follower.is_ended());
        }
        if follows.len() >= FOLLOWED {
            let text = format!("Too many subscriptions for this connection (max {FOLLOWED})");
            return Err(Fault::new(Code::ResourceExhausted, text));
        }
        let record = Record {
            kernel: self.face.kernel.clone(),
            principal: self.principal.clone(),
            transport: self.transport,
        };
        let follower = Arc::new(Follower::new(session.clone(), self.outbox.clone(), record));
        self.face.topics.join(&self.principal.tenant, &follower)?;
        follows.insert(session.clone(), follower.clone());
        Ok(follower)
    }

    /// The answer is on its way: lets the events follow it, or stops listening to what there is not.
    pub fn settle_following(&self, follower: &Arc<Follower>, after: Option<u64>, succeeded: bool) {
        if succeeded && !self.outbox.is_over() {
            return follower.release(after);
        }
        let mut follows = self.follows.lock();
        if follower.was_live() {
            drop(follows);
            return follower.release(None);
        }
        follows.remove(&follower.session);
        drop(follows);
        self.face.topics.leave(&self.principal.tenant, follower);
    }

    /// None where there is nothing that could tell.
    async fn recovery(&self) -> Option<Value> {
        let kernel = &self.face.kernel;
        // Not asked for by the client, so one that may not read it is not refused.
        kernel.registry().find(RECOVERY).filter(|action| action.admits(&self.principal))?;
        let correlation = CorrelationId::from_uuid(kernel.ports().ids.fresh(For::Correlation));
        let mut submission =
            Submission::new(RECOVERY, Args::new(Map::new()), self.principal.clone(), correlation);
        submission.transport = self.transport;
        match kernel.submit(submission).await.result {
            Ok(Output::Json { value }) => Some(value),
            Ok(Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. }) | Err(_) => None,
        }
    }
}
