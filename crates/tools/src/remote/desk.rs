//! One instance of a server: what its supervisor and the calls of its tools both see.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, FailureCategory, Fault};
use orchestr8_kernel::Principal;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::slots::{Holder, Slot, Slots};
use parking_lot::RwLock;
use rmcp::{Peer, RoleClient};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::Server;
use super::calls::Calls;
use super::lift::Support;
use super::pins::Standing;
use super::proxy::catalog::CatalogCell;
use super::served_server::ServedServer;
use super::stderr::StderrTail;

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is started by the next call.
    Idle,
    Starting,
    Running,
    /// It is gone or did not come up; it is tried again after a while.
    Waiting,
    Stopped,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
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
    /// Whose instance it is.
    pub tenant: Tenant,
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
    pub is_http: bool,
    pub clock: Arc<dyn Clock>,
}

/// Whether calls can be sent to an instance.
#[derive(Clone)]
enum Availability {
    /// It does not run; it is started when it is wanted.
    Idle,
    /// It is coming up: calls wait for it.
    Starting,
    Ready(Box<Line>),
    /// It is gone or did not come up: calls are refused until it is there.
    Away,
}

/// A tool as this instance has it.
#[derive(Clone)]
pub struct InstanceTool {
    pub standing: Standing,
    pub support: Support,
}

pub struct Desk {
    pub server: Arc<Server>,
    pub served: Arc<ServedServer>,
    pub tenant: Tenant,
    slots: Slots,
    availability: watch::Sender<Availability>,
    seen: RwLock<Seen>,
    /// Its tools by their own names; None until they were listed.
    tools: RwLock<Option<HashMap<String, InstanceTool>>>,
    tried: CancellationToken,
    /// Ends it for good.
    pub stop: CancellationToken,
    clock: Arc<dyn Clock>,
    pub stderr: Arc<StderrTail>,
    /// What it offers beside tools.
    pub catalog: Arc<CatalogCell>,
    /// A call found the connection broken: the supervisor looks whether the server is still there.
    check: Notify,
    /// A call found the server away.
    wanted: Notify,
    /// It was made idle to make room for another instance.
    evicted: Notify,
    restart: Notify,
    in_use: AtomicUsize,
    last_used_us: AtomicU64,
}

impl Desk {
    pub fn new(served: &Arc<ServedServer>, tenant: Tenant, clock: Arc<dyn Clock>) -> Self {
        let server = served.server.clone();
        let seen = Seen {
            server: server.name.clone(),
            tenant: tenant.clone(),
            phase: Phase::Idle,
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
            availability: watch::Sender::new(Availability::Idle),
            seen: RwLock::new(seen),
            tools: RwLock::new(None),
            tried: CancellationToken::new(),
            stop: served.stop.child_token(),
            last_used_us: AtomicU64::new(clock.elapsed_us()),
            clock,
            stderr: Arc::new(StderrTail::of(&server.link)),
            catalog: Arc::default(),
            check: Notify::new(),
            wanted: Notify::new(),
            evicted: Notify::new(),
            restart: Notify::new(),
            in_use: AtomicUsize::new(0),
            served: served.clone(),
            tenant,
            server,
        }
    }

    /// The tenant that hears what it tells without being asked. None: all of those that it serves.
    pub fn audience(&self) -> Option<Tenant> {
        let is_for_all = self.server.shared && self.served.key.owner.is_none();
        (!is_for_all).then(|| self.tenant.clone())
    }

    pub fn seen(&self) -> Seen {
        Seen {
            stderr: self.stderr.last_lines(),
            tools: self.served.listed_names(),
            ..self.seen.read().clone()
        }
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

    pub fn request_restart(&self) {
        self.restart.notify_one();
    }

    pub async fn restart_requested(&self) {
        self.restart.notified().await;
    }

    pub async fn evicted(&self) {
        self.evicted.notified().await;
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

    pub fn set_tools(&self, tools: HashMap<String, InstanceTool>) {
        *self.tools.write() = Some(tools);
    }

    /// A tool as this instance has it, if it has listed its tools.
    pub fn tool(&self, name: &str) -> Option<Option<InstanceTool>> {
        self.tools.read().as_ref().map(|tools| tools.get(name).cloned())
    }

    pub fn is_live(&self) -> bool {
        !matches!(*self.availability.borrow(), Availability::Idle)
    }

    /// Makes an idle instance start. Only the pool calls it, which counts those that run.
    pub(super) fn wake(&self) {
        self.availability.send_replace(Availability::Starting);
        self.see(|seen| seen.phase = Phase::Starting);
        self.wanted.notify_one();
    }

    /// Makes it idle, unless a call uses it. Only the pool calls it, under whose lock uses begin.
    pub(super) fn retire(&self) -> bool {
        if self.in_use.load(Ordering::Acquire) > 0 {
            return false;
        }
        self.availability.send_replace(Availability::Idle);
        self.evicted.notify_one();
        true
    }

    /// Since when it is not used; None while it is.
    pub fn unused_since_us(&self) -> Option<u64> {
        let is_used = self.in_use.load(Ordering::Acquire) > 0;
        (!is_used).then(|| self.last_used_us.load(Ordering::Acquire))
    }

    fn set(&self, availability: Availability) {
        self.availability.send_if_modified(|current| match current {
            // Only `wake` leaves this state.
            Availability::Idle => false,
            Availability::Starting | Availability::Ready(_) | Availability::Away => {
                *current = availability;
                true
            }
        });
    }

    pub fn connect(&self, line: Line) {
        self.set(Availability::Ready(Box::new(line)));
    }

    /// Calls wait for it.
    pub fn expect_start(&self) {
        self.set(Availability::Starting);
    }

    pub fn disconnect(&self) {
        self.set(Availability::Away);
    }

    /// The connection, once the instance has come up, or the fault for one that is not there.
    pub async fn line(&self) -> Result<Line, Fault> {
        let mut availability = self.availability.subscribe();
        loop {
            match &*availability.borrow_and_update() {
                Availability::Ready(line) => return Ok((**line).clone()),
                Availability::Away => {
                    self.wanted.notify_one();
                    return Err(self.unreached(&self.why_away()));
                }
                // An instance that is in use does not become idle; one that was stopped for good stays so.
                Availability::Idle => return Err(self.unreached("was stopped")),
                Availability::Starting => {}
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(self.unreached("was stopped")),
                // It lives as long as this instance.
                _ = availability.changed() => {}
            }
        }
    }

    fn why_away(&self) -> String {
        match &self.seen.read().problem {
            Some(problem) => format!("is not running now: {problem}"),
            None => String::from("is not running now"),
        }
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

/// A use of an instance: while there is one it is not stopped for being idle.
pub struct InstanceUse(Arc<Desk>);

impl InstanceUse {
    /// Only the pool calls it, under its lock.
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        desk.in_use.fetch_add(1, Ordering::AcqRel);
        Self(desk)
    }

    pub fn desk(&self) -> &Arc<Desk> {
        &self.0
    }
}

impl Drop for InstanceUse {
    fn drop(&mut self) {
        self.0.last_used_us.store(self.0.clock.elapsed_us(), Ordering::Release);
        self.0.in_use.fetch_sub(1, Ordering::AcqRel);
    }
}
