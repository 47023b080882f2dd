//! What the supervisor of a server and the calls of its tools both see.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Principal;
use orchestr8_kernel::slots::{Holder, Slot, Slots};
use parking_lot::RwLock;
use rmcp::{Peer, RoleClient};
use tokio_util::sync::CancellationToken;

use super::Server;
use super::calls::Calls;

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Starting,
    Running,
    /// It is gone or did not come up; it is tried again after a while.
    Waiting,
    Stopped,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Running => "running",
            Phase::Waiting => "waiting",
            Phase::Stopped => "stopped",
        }
    }
}

/// How a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub server: String,
    pub phase: Phase,
    /// Our names of its tools.
    pub tools: Vec<String>,
    /// Its own names of tools whose definition has changed since it was accepted.
    pub quarantined: Vec<String>,
    /// Its own names of tools that could not be taken, and why.
    pub refused: Vec<(String, String)>,
    /// The process, if it is one.
    pub pid: Option<u32>,
    /// Why it last went away or did not come up.
    pub problem: Option<String>,
}

/// A connection that calls can be sent over.
#[derive(Clone)]
pub struct Line {
    pub peer: Peer<RoleClient>,
    pub calls: Arc<Calls>,
    /// See `connect::Session`.
    pub modern: bool,
}

pub struct Desk {
    pub server: Server,
    slots: Slots,
    line: RwLock<Option<Line>>,
    seen: RwLock<Seen>,
    tried: CancellationToken,
}

impl Desk {
    pub fn new(server: Server) -> Self {
        let seen = Seen {
            server: server.name.clone(),
            phase: Phase::Starting,
            tools: Vec::new(),
            quarantined: Vec::new(),
            refused: Vec::new(),
            pid: None,
            problem: None,
        };
        Self {
            slots: Slots::exact(server.max_concurrent.max(1)),
            line: RwLock::new(None),
            seen: RwLock::new(seen),
            tried: CancellationToken::new(),
            server,
        }
    }

    pub fn seen(&self) -> Seen {
        self.seen.read().clone()
    }

    pub fn see(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.write());
    }

    /// The first start has succeeded or failed.
    pub fn has_tried(&self) {
        self.tried.cancel();
    }

    pub async fn tried(&self) {
        self.tried.cancelled().await;
    }

    pub fn connect(&self, line: Line) {
        *self.line.write() = Some(line);
    }

    pub fn disconnect(&self) {
        *self.line.write() = None;
    }

    /// The connection, or the fault for a server that is not there now.
    pub fn line(&self) -> Result<Line, Fault> {
        self.line.read().clone().ok_or_else(|| self.fault(Code::Unavailable, "is not running now"))
    }

    pub fn slot(&self, principal: &Principal) -> Result<Slot, Fault> {
        self.slots.try_take(Holder::of(principal)).ok_or_else(|| {
            let max = self.slots.max();
            self.fault(Code::ResourceExhausted, &format!("takes {max} calls at once, and all are taken"))
                .with("reason", "concurrency_limit_exceeded")
                .with("maxConcurrent", max)
        })
    }

    /// A fault about this server.
    pub fn fault(&self, code: Code, what: &str) -> Fault {
        let name = &self.server.name;
        Fault::new(code, format!("the MCP server '{name}' {what}")).with("server", name.as_str())
    }
}
