//! What the supervisor of a server and the calls of its tools both see.

use std::sync::Arc;

use orchestr8_contract::{Code, FailureCategory, Fault};
use orchestr8_kernel::Principal;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::slots::{Holder, Slot, Slots};
use parking_lot::RwLock;
use rmcp::{Peer, RoleClient};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Server;
use super::calls::Calls;
use super::proxy::catalog::CatalogCell;
use super::stderr::StderrTail;

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
    /// Why it last went away or did not come up; none while it runs.
    pub problem: Option<String>,
    /// The exit code of its last process, if that ended by itself.
    pub exit_code: Option<i32>,
    /// The last lines it wrote to stderr.
    pub stderr: Vec<String>,
    /// The last failure of a call or of the server itself, which stays after it has recovered.
    pub last_error: Option<RecentFailure>,
    /// When it is tried again, if it is waited for.
    pub next_attempt_at_ms: Option<i64>,
}

/// A failure, and when it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentFailure {
    pub message: String,
    pub at_ms: i64,
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
    clock: Arc<dyn Clock>,
    pub stderr: Arc<StderrTail>,
    /// What it offers beside tools.
    pub catalog: Arc<CatalogCell>,
    /// A call found the connection broken: the supervisor looks whether the server is still there.
    check: Notify,
    /// A call found the server away.
    wanted: Notify,
}

impl Desk {
    pub fn new(server: Server, clock: Arc<dyn Clock>) -> Self {
        let seen = Seen {
            server: server.name.clone(),
            phase: Phase::Starting,
            tools: Vec::new(),
            quarantined: Vec::new(),
            refused: Vec::new(),
            pid: None,
            problem: None,
            exit_code: None,
            stderr: Vec::new(),
            last_error: None,
            next_attempt_at_ms: None,
        };
        Self {
            slots: Slots::exact(server.max_concurrent.max(1)),
            line: RwLock::new(None),
            seen: RwLock::new(seen),
            tried: CancellationToken::new(),
            clock,
            stderr: Arc::new(StderrTail::of(&server.link)),
            catalog: Arc::default(),
            check: Notify::new(),
            wanted: Notify::new(),
            server,
        }
    }

    pub fn seen(&self) -> Seen {
        Seen { stderr: self.stderr.lines(), ..self.seen.read().clone() }
    }

    /// Notes a failure for the status.
    pub fn note_error(&self, message: &str) {
        let error = RecentFailure { message: message.to_owned(), at_ms: self.clock.now_ms() };
        self.see(|seen| seen.last_error = Some(error));
    }

    pub fn request_check(&self) {
        self.check.notify_one();
    }

    pub async fn check_requested(&self) {
        self.check.notified().await;
    }

    pub async fn wanted(&self) {
        self.wanted.notified().await;
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
        let line = self.line.read().clone();
        line.ok_or_else(|| {
            self.wanted.notify_one();
            self.unreached("is not running now")
        })
    }

    /// The fault for a call that did not reach the server. That the server is away is known already: a breaker would only keep its
    /// tools away for longer.
    pub fn unreached(&self, what: &str) -> Fault {
        self.fault(Code::Unavailable, what).in_category(FailureCategory::Throttled)
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
