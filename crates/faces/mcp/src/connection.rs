//! One conversation with one client: its state, what it has in flight, and the way back to it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll};

use futures::future::BoxFuture;
use orchestr8_contract::TraceParent;
use orchestr8_contract::id::{CorrelationId, Key};
use orchestr8_kernel::action::Action;
use orchestr8_kernel::peer::Severity;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Cancel, Principal, Source, Transport, Why};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::asks::Asks;
use crate::audience::{Listener, Lists, Seat};
use crate::era::Revision;
use crate::face::{Face, Outlet};
use crate::from_wire::Capabilities;
use crate::wire::{self, Error, Id, Raw};

/// Where the conversation stands (MCP-INIT). Only the legacy era has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Starting,
    Initializing,
    Running,
    Closed,
}

/// What the transport knows about a message beside its text.
#[derive(Default)]
pub struct Incoming<'a> {
    /// The transport says that it is of the modern era (HTTP: by its version header), whatever the text says.
    pub modern: bool,
    /// Who sends this message, where that is somebody else than the one the connection belongs to (HTTP: with an admin's
    /// token beside the caller's own).
    pub who: Option<Arc<Principal>>,
    /// From where it was sent (HTTP: the address of the client). None: over stdio.
    pub source: Option<Source>,
    /// Used where the message itself carries no idempotency key (HTTP: the `Idempotency-Key` header).
    pub idempotency_key: Option<Key>,
    /// Used where the message itself carries no correlation id (HTTP: the `X-Correlation-ID` header).
    pub correlation: Option<CorrelationId>,
    /// How long the message was, if it was too long and this is what was kept of it (stdio).
    pub oversized: Option<usize>,
    /// Used where the message itself names no trace (HTTP: the `traceparent` header).
    pub trace: Option<TraceParent>,
    /// Holds a modern request against its headers. Called once its `_meta` is known to be whole and before its version
    /// is judged; an error is what does not match, and becomes -32020 with status 400.
    pub check_headers: Option<&'a CheckHeaders<'a>>,
}

/// Says what of a request does not match its headers.
pub type CheckHeaders<'a> = dyn Fn(&Facts<'_>) -> Result<(), String> + Sync + 'a;

/// What a modern request says about itself, for a transport to compare with its headers.
pub struct Facts<'a> {
    pub method: &'a str,
    /// `_meta["io.modelcontextprotocol/protocolVersion"]`
    pub version: &'a str,
    /// `params.name`, `params.uri` or `params.taskId`, for the methods that must send `Mcp-Name`.
    pub name: Option<&'a str>,
    /// The tool a tools/call names, if there is one: its input schema tells which arguments are mirrored in headers.
    pub tool: Option<&'a Action>,
    /// `params.arguments` of a tools/call.
    pub arguments: Option<Raw<'a>>,
}

/// What became of a message.
pub enum Received {
    /// A notification or a response (HTTP: 202).
    Nothing,
    Reply(Reply),
    Pending(Pending),
}

/// An answer, or the answers of a batch.
#[derive(Debug)]
pub struct Reply {
    pub text: String,
    /// The HTTP status this answer has in its era.
    pub status: u16,
    /// The id by which it is found in the log.
    pub correlation: CorrelationId,
    /// It repeats the outcome of an earlier request with the same key.
    pub is_replay: bool,
}

/// An answer that is not there yet: None when the client has cancelled it. Dropping it means that the client is gone.
pub struct Pending {
    pub(crate) reply: BoxFuture<'static, Option<Reply>>,
    pub(crate) correlation: CorrelationId,
}

impl Pending {
    /// The id that the answer will have.
    pub fn correlation(&self) -> &CorrelationId {
        &self.correlation
    }
}

impl Future for Pending {
    type Output = Option<Reply>;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.reply.as_mut().poll(context)
    }
}

/// What must be kept so that a conversation outlives a restart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Saved {
    pub connection: CorrelationId,
    pub phase: Phase,
    pub version: Revision,
    pub capabilities: Value,
    pub log_level: Option<Severity>,
    pub subscriptions: Vec<String>,
}

/// One conversation.
pub struct Connection {
    pub(crate) face: Face,
    /// MCP-CORR: the id for errors of messages that have none of their own.
    pub(crate) id: CorrelationId,
    pub(crate) who: Arc<Principal>,
    pub(crate) transport: Transport,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) state: Mutex<State>,
    /// What the client waits for, by the id of its request.
    pub(crate) in_flight: Mutex<HashMap<Id, Cancel>>,
    pub(crate) asks: Asks,
    /// Fires when streams should come to a good end.
    pub(crate) ending: CancellationToken,
    seat: Mutex<Option<Seat>>,
    /// Grows with every change of what `saved` gives.
    changes: AtomicU64,
}

/// What a legacy conversation has agreed on.
pub(crate) struct State {
    pub phase: Phase,
    pub revision: Revision,
    pub capabilities: Capabilities,
    /// The capabilities as the client wrote them.
    pub declared: Value,
    pub log_level: Option<Severity>,
}

impl Connection {
    pub(crate) fn open(
        face: Face,
        who: Arc<Principal>,
        transport: Transport,
        outlet: Arc<dyn Outlet>,
    ) -> Arc<Self> {
        let id = CorrelationId::from_uuid(face.kernel().ports().ids.fresh(For::Connection));
        let state = State {
            phase: Phase::Starting,
            revision: Revision::NEWEST,
            capabilities: Capabilities::default(),
            declared: Value::Null,
            log_level: None,
        };
        Self::with(face, id, state, who, transport, outlet)
    }

    pub(crate) fn reopen(
        face: Face,
        saved: Saved,
        who: Arc<Principal>,
        transport: Transport,
        outlet: Arc<dyn Outlet>,
    ) -> Arc<Self> {
        let state = State {
            phase: saved.phase,
            revision: saved.version,
            capabilities: Capabilities::of(&saved.capabilities),
            declared: saved.capabilities,
            log_level: saved.log_level,
        };
        let connection = Self::with(face, saved.connection, state, who, transport, outlet);
        if saved.phase == Phase::Running {
            connection.listen_to_changes();
            for uri in &saved.subscriptions {
                // What could be followed before can be followed again.
                let _ = connection.with_listener(|listener| listener.follow(uri));
            }
        }
        connection
    }

    fn with(
        face: Face,
        id: CorrelationId,
        state: State,
        who: Arc<Principal>,
        transport: Transport,
        outlet: Arc<dyn Outlet>,
    ) -> Arc<Self> {
        Arc::new(Self {
            face,
            id,
            who,
            transport,
            outlet,
            state: Mutex::new(state),
            in_flight: Mutex::default(),
            asks: Asks::default(),
            ending: CancellationToken::new(),
            seat: Mutex::default(),
            changes: AtomicU64::new(0),
        })
    }

    pub fn id(&self) -> &CorrelationId {
        &self.id
    }

    pub fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// The negotiated revision, once there is one (legacy era).
    pub fn version(&self) -> Option<&'static str> {
        let state = self.state.lock();
        (state.phase != Phase::Starting).then(|| state.revision.as_str())
    }

    /// Grows with every change of what `saved` gives, so that a transport knows when to save.
    pub fn revision(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// How many requests the client waits for.
    pub fn waiting(&self) -> usize {
        self.in_flight.lock().len()
    }

    /// What to keep; None before `initialize` and after the end.
    pub fn saved(&self) -> Option<Saved> {
        let followed = self.seat.lock().as_ref().map(|seat| seat.listener.followed());
        let state = self.state.lock();
        match state.phase {
            Phase::Starting | Phase::Closed => None,
            Phase::Initializing | Phase::Running => Some(Saved {
                connection: self.id.clone(),
                phase: state.phase,
                version: state.revision,
                capabilities: state.declared.clone(),
                log_level: state.log_level,
                subscriptions: followed.unwrap_or_default(),
            }),
        }
    }

    /// Lets streams that would never end by themselves come to a good end.
    pub fn wind_down(&self) {
        self.ending.cancel();
    }

    /// CLOSED: whatever is in flight hears of the disconnect, and no reply is given any more.
    pub fn close(&self) {
        self.change(|state| state.phase = Phase::Closed);
        let in_flight: Vec<Cancel> = self.in_flight.lock().values().cloned().collect();
        in_flight.iter().for_each(|cancel| cancel.fire(Why::Disconnect));
        self.asks.close();
        self.seat.lock().take();
    }

    /// Changes what the conversation has agreed on.
    pub(crate) fn change<T>(&self, edit: impl FnOnce(&mut State) -> T) -> T {
        let edited = edit(&mut self.state.lock());
        self.changes.fetch_add(1, Ordering::AcqRel);
        edited
    }

    /// From now on the client hears of changes (legacy era).
    pub(crate) fn listen_to_changes(self: &Arc<Self>) {
        let kernel = self.face.kernel();
        let (tenant, interests) = (self.who.tenant.clone(), kernel.interests().clone());
        let listener = Listener::new(self.outlet.clone(), Lists::ALL, None, tenant, interests);
        if let Some(level) = self.state.lock().log_level {
            listener.log_from(level);
        }
        let seat = self.face.audience().join(listener, kernel.bus(), kernel.log());
        *self.seat.lock() = Some(seat);
    }

    pub(crate) fn with_listener<T>(
        &self,
        act: impl FnOnce(&Listener) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let acted = match &*self.seat.lock() {
            Some(seat) => act(&seat.listener),
            None => Err(Error::new(wire::INTERNAL, "the connection is closed")),
        };
        self.changes.fetch_add(1, Ordering::AcqRel);
        acted
    }
}
