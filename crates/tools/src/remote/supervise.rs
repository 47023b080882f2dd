//! The supervisor of one server: starts it, learns its tools, hears of changes, starts it again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::resilience::breaker;
use orchestr8_kernel::resilience::retry::{Jitter, delay_ms};
use orchestr8_kernel::{Kernel, Log};
use orchestr8_outbound::Guard;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::catalogue::{Listed, learn};
use super::child::Child;
use super::connect::{self, Session};
use super::desk::{Desk, InstanceUse, Line, Phase};
use super::instance_pool::InstancePool;
use super::offer::breaker_key;
use super::placeholders::NameSources;
use super::served_server::ServedServer;
use super::{Link, Settings, limits, pins};

/// What all supervisors share.
pub struct Surroundings {
    pub kernel: Kernel,
    pub base_env: BTreeMap<String, String>,
    pub client_name: String,
    pub client_version: String,
    pub search_above: usize,
    pub pool: InstancePool,
    pub stop: CancellationToken,
    pub tasks: TaskTracker,
    pub names: NameSources,
    guard: Arc<Guard>,
}

impl Surroundings {
    pub fn new(kernel: Kernel, settings: &Settings) -> Self {
        Self {
            base_env: settings.base_env.clone(),
            client_name: settings.client_name.clone(),
            client_version: settings.client_version.clone(),
            search_above: settings.search_above,
            pool: InstancePool::new(settings.instances, kernel.ports().clock.clone()),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            names: settings.names.clone(),
            guard: Arc::new(Guard::new(&settings.allowed)),
            kernel,
        }
    }

    /// What keeps servers that a tenant added from places inside; none for those of the settings and of the machine's own tenant.
    pub fn guard_for(&self, owner: Option<&Tenant>) -> Option<Arc<Guard>> {
        owner.filter(|owner| **owner != Tenant::local()).map(|_| self.guard.clone())
    }

    /// The instance that serves a tenant, in use until the answer is dropped. One that does not run is started; `Desk::line` waits for
    /// it.
    pub fn instance(
        self: &Arc<Self>,
        served: &Arc<ServedServer>,
        caller: &Tenant,
    ) -> Result<InstanceUse, Fault> {
        self.pool.acquire(served, caller, |desk| {
            self.tasks.spawn(supervise(self.clone(), desk));
        })
    }

    async fn pause(&self, ms: u64) {
        self.kernel.ports().clock.sleep(Duration::from_millis(ms)).await;
    }
}

/// How a life of an instance ended.
enum End {
    /// It is to be stopped for good.
    Stopped,
    /// It was not used, or made room for another.
    Idle,
    Restart,
    /// It is gone or did not come up, for this reason.
    Problem(String),
}

/// Keeps an instance running while it is wanted, until it is told to stop.
async fn supervise(around: Arc<Surroundings>, desk: Arc<Desk>) {
    let fields = json!({"server": desk.server.name, "tenant": desk.tenant.as_str()});
    let log = around.kernel.log().child(fields);
    let (mut failures, mut known) = (0, Listed::default());
    loop {
        if !desk.is_live() {
            failures = 0;
            desk.see(|seen| (seen.phase, seen.next_attempt_at_ms) = (Phase::Idle, None));
            tokio::select! {
                biased;
                () = desk.stop.cancelled() => break,
                () = desk.wanted() => continue,
            }
        }
        let began_us = around.kernel.ports().clock.elapsed_us();
        let end = life(&around, &desk, &log, &mut known).await;
        desk.see(|seen| seen.pid = None);
        desk.has_tried();
        let problem = match end {
            End::Stopped => break,
            End::Idle => continue,
            End::Restart => {
                failures = 0;
                desk.expect_start();
                continue;
            }
            // It is shown to all who may read, and logged.
            End::Problem(problem) => desk.stderr.mask(&problem),
        };
        let ran_us = around.kernel.ports().clock.elapsed_us().saturating_sub(began_us);
        failures = if ran_us >= limits::STABLE_MS * 1000 { 1 } else { failures + 1 };
        if !wait_for_next_attempt(&around, &desk, &log, problem, failures).await {
            break;
        }
    }
    desk.disconnect();
    desk.see(|seen| seen.phase = Phase::Stopped);
}

/// Waits after a failure; false if it is to be stopped meanwhile.
async fn wait_for_next_attempt(
    around: &Surroundings,
    desk: &Desk,
    log: &Log,
    problem: String,
    failures: u32,
) -> bool {
    let wait_ms = restart_ms(around, failures);
    log.warn("an MCP server is not there", json!({"problem": problem, "nextTryMs": wait_ms}));
    desk.note_error(&problem);
    desk.disconnect();
    let next_at_ms = around.kernel.ports().clock.now_ms().saturating_add_unsigned(wait_ms);
    desk.see(|seen| {
        (seen.phase, seen.problem, seen.next_attempt_at_ms) =
            (Phase::Waiting, Some(problem), Some(next_at_ms));
    });
    tokio::select! {
        biased;
        () = desk.stop.cancelled() => return false,
        () = desk.evicted() => {}
        () = desk.restart_requested() => desk.expect_start(),
        () = unused(around, desk) => {}
        () = next_attempt(around, desk, wait_ms) => {}
    }
    true
}

/// Waits until the instance was not used for as long as it may be, and has been made idle.
async fn unused(around: &Surroundings, desk: &Desk) {
    let Some(timeout_ms) = desk.served.idle_timeout_ms(&desk.tenant) else {
        return std::future::pending().await;
    };
    loop {
        let now_us = around.kernel.ports().clock.elapsed_us();
        let unused_ms = desk.unused_since_us().map_or(0, |since_us| now_us.saturating_sub(since_us) / 1000);
        around.pause(timeout_ms.saturating_sub(unused_ms).max(limits::IDLE_CHECK_MS)).await;
        if around.pool.retire_unused(desk, timeout_ms) {
            return;
        }
    }
}

/// Waits for the next attempt. A server that somebody else runs may be back at any time: a call that wants it is reason enough to
/// look, though not more often than after a first failure.
async fn next_attempt(around: &Surroundings, desk: &Desk, wait_ms: u64) {
    let soon_ms = wait_ms.min(limits::RESTART_MS);
    around.pause(soon_ms).await;
    let rest = around.pause(wait_ms - soon_ms);
    match &desk.server.link {
        Link::Stdio { .. } => rest.await,
        Link::Http { .. } => tokio::select! {
            () = desk.wanted() => {}
            () = rest => {}
        },
    }
}

/// Doubles with every failure, up to a limit, with some randomness: servers that fail together should not start together.
fn restart_ms(around: &Surroundings, failures: u32) -> u64 {
    let factor = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    let ceiling_ms = limits::RESTART_MS.saturating_mul(factor).min(limits::RESTART_MAX_MS);
    delay_ms(Jitter::Equal, ceiling_ms, around.kernel.ports().random.unit())
}

/// One life of an instance, from its start to its end.
async fn life(around: &Arc<Surroundings>, desk: &Arc<Desk>, log: &Log, known: &mut Listed) -> End {
    desk.see(|seen| (seen.phase, seen.next_attempt_at_ms) = (Phase::Starting, None));
    let limit_ms = desk.server.start_timeout_ms;
    // What was opened so far is dropped when it takes too long, which kills it.
    let opened = tokio::select! {
        biased;
        () = desk.stop.cancelled() => return End::Stopped,
        () = desk.evicted() => return End::Idle,
        opened = open(around, desk, log) => opened,
        () = around.pause(limit_ms) => return End::Problem(format!("it did not start within {limit_ms} ms")),
    };
    let mut session = match opened {
        Ok(session) => session,
        Err(problem) => return End::Problem(problem),
    };
    desk.see(|seen| seen.pid = session.child.as_ref().and_then(Child::id));
    let end = serve(around, desk, log, known, &mut session).await;
    desk.disconnect();
    session.end(around).await;
    end
}

/// Opens a connection with what the names in the entry stand for, or says why not.
async fn open(around: &Surroundings, desk: &Desk, log: &Log) -> Result<Session, String> {
    let resolved = around.names.resolve(&desk.served, &desk.tenant).await;
    let resolved = resolved.map_err(|fault| fault.message.into_owned())?;
    connect::open(around, desk, &resolved, log).await.map_err(|error| {
        desk.see(|seen| seen.exit_code = error.exit_code());
        error.to_string()
    })
}

/// Serves calls until the server is gone or not wanted any more.
async fn serve(
    around: &Arc<Surroundings>,
    desk: &Arc<Desk>,
    log: &Log,
    known: &mut Listed,
    session: &mut Session,
) -> End {
    let mut accepted = around.kernel.ports().store.watch(pins::ACCEPTED);
    let (peer, changed) = (session.peer.clone(), session.changed.clone());
    let limit_ms = desk.server.start_timeout_ms;
    // What failed before failed with another process or connection.
    around.kernel.breakers().reset(&breaker::of_tenant(&breaker_key(&desk.server), &desk.tenant));
    loop {
        accepted.mark_unchanged();
        let learned = tokio::select! {
            biased;
            () = desk.stop.cancelled() => return End::Stopped,
            () = desk.evicted() => return End::Idle,
            (problem, exit_code) = session.over(around) => {
                desk.see(|seen| seen.exit_code = exit_code);
                return End::Problem(problem);
            }
            learned = learn(around, desk, log, known, &peer) => learned.map_err(|error| error.to_string()),
            () = around.pause(limit_ms) => Err(format!("it did not tell its tools within {limit_ms} ms")),
        };
        if let Err(problem) = learned {
            return End::Problem(problem);
        }
        desk.see(|seen| (seen.phase, seen.problem) = (Phase::Running, None));
        desk.connect(Line {
            peer: peer.clone(),
            calls: session.calls.clone(),
            modern: session.modern,
            is_http: session.child.is_none(),
            clock: around.kernel.ports().clock.clone(),
        });
        session.serves();
        desk.has_tried();
        tokio::select! {
            biased;
            () = desk.stop.cancelled() => return End::Stopped,
            () = desk.evicted() => return End::Idle,
            (problem, exit_code) = session.over(around) => {
                desk.see(|seen| seen.exit_code = exit_code);
                return End::Problem(problem);
            }
            () = desk.restart_requested() => return End::Restart,
            () = unused(around, desk) => return End::Idle,
            () = changed.notified() => {}
            () = desk.check_requested() => {}
            _ = accepted.changed() => {}
            () = around.pause(limits::REFRESH_MS) => {}
        }
        around.pause(limits::REFRESH_PAUSE_MS).await;
    }
}
