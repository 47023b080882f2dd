//! One conversation with one client: its state, what it has in flight, and the way back to it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures::future::BoxFuture;
use orchestr8_contract::id::{CorrelationId, Key};
use orchestr8_kernel::action::Action;
use orchestr8_kernel::peer::Severity;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Principal, Transport};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::face::{Face, Outlet};

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
    /// Used where the message itself carries no idempotency key (HTTP: the `Idempotency-Key` header).
    pub idempotency_key: Option<Key>,
    /// Used where the message itself carries no correlation id (HTTP: the `X-Correlation-ID` header).
    pub correlation: Option<CorrelationId>,
    /// Holds a modern request against its headers. Called once its `_meta` is known to be whole and before its version
    /// is judged; an error is what does not match, and becomes -32020 with status 400.
    pub check_headers: Option<&'a (dyn Fn(&Facts<'_>) -> Result<(), String> + Sync)>,
}

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
    pub arguments: Option<&'a RawValue>,
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
}

/// An answer that is not there yet: None when the client has cancelled it. Dropping it means that the client is gone.
pub struct Pending(pub(crate) BoxFuture<'static, Option<Reply>>);

impl Future for Pending {
    type Output = Option<Reply>;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

/// What must be kept so that a conversation outlives a restart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Saved {
    pub connection: CorrelationId,
    pub phase: Phase,
    pub version: String,
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
    pub(crate) phase: Mutex<Phase>,
}

impl Connection {
    pub(crate) fn open(face: Face, who: Arc<Principal>, transport: Transport, outlet: Arc<dyn Outlet>) -> Arc<Self> {
        let id = CorrelationId::from_uuid(face.kernel().ports().ids.fresh(For::Connection));
        Arc::new(Self { face, id, who, transport, outlet, phase: Mutex::new(Phase::Starting) })
    }

    pub(crate) fn reopen(
        face: Face,
        saved: Saved,
        who: Arc<Principal>,
        transport: Transport,
        outlet: Arc<dyn Outlet>,
    ) -> Arc<Self> {
        Arc::new(Self { face, id: saved.connection, who, transport, outlet, phase: Mutex::new(saved.phase) })
    }

    pub fn id(&self) -> &CorrelationId {
        &self.id
    }

    pub fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    /// The negotiated revision, once there is one (legacy era).
    pub fn version(&self) -> Option<&'static str> {
        None
    }

    /// One JSON-RPC message, or a batch where the revision allows it. `related` carries what belongs to this request:
    /// progress, log messages, questions. Needs a tokio runtime around it.
    pub fn receive(self: &Arc<Self>, text: &[u8], incoming: &Incoming<'_>, related: Arc<dyn Outlet>) -> Received {
        let _ = (text, incoming, related);
        Received::Nothing
    }

    /// What to keep; None before `initialize` and after the end.
    pub fn saved(&self) -> Option<Saved> {
        None
    }

    /// Ends it: whatever is in flight hears of the disconnect, and no reply is given any more.
    pub fn close(&self) {
        *self.phase.lock() = Phase::Closed;
    }
}
