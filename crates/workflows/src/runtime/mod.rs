//! What drives executions: one actor for each that is under way, a scheduler they share, timers, and the way back after a crash.
//!
//! ```text
//! accept -> (slot? begin : line up) -> actor: event -> engine::next -> commit -> act on decisions -> event ...
//! ```
//!
//! Whatever an actor decides is durable before it acts on it. An execution that only waits has no actor: a timer, a message
//! or a person wakes it, and it is folded from its records again.

mod absorb;
mod accept;
mod actor;
mod admit;
mod allowed_env;
mod artifacts;
pub(crate) mod breakers;
mod children;
mod deliver;
mod dropped_events;
mod fair_queue;
mod gates;
pub(crate) mod inputs;
mod limit_overrides;
mod line;
mod live;
pub(crate) mod load;
mod occupy;
mod quota;
mod recent;
mod record;
mod recover;
mod remote_limits;
mod rights;
mod run_log;
mod run_task;
mod scheduler;
mod shared;
pub(crate) mod tables;
mod timers;
pub(crate) mod trees;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::ports::store;
use orchestr8_kernel::{Args, Kernel, Ports, Principal};
use orchestr8_secrets::SecretVault;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

pub use accept::{Accepted, Request};
use actor::Message;
pub use allowed_env::AllowedEnv;
pub use deliver::Posted;
pub use deliver::{child_ended, child_undone};
use limit_overrides::LimitOverrides;
pub use limit_overrides::{ChangeableLimit, LimitSubject, TENANT_LIMITS};
pub use load::{Loaded, Row};
pub use recent::Ended;
pub use scheduler::Depth;
use scheduler::Scheduler;

use crate::agents::Agents;
use crate::agents::SecretAccess;
use crate::agents::settings::Http;
use crate::definition::{Cache, Problems, Workflow};
use crate::keyed_events::EventLocks;
use crate::limits;
use crate::notifications::Notifier;
use crate::triggers::TriggerLocks;
use gates::Gates;
use quota::ExecutionQuota;
use recent::Recent;
use remote_limits::RemoteLimits;
use run_log::LogQuota;
use trees::TreeLimits;

/// What an installation sets for workflows.
#[derive(Clone)]
pub struct Settings {
    /// Steps that this process works on at once.
    pub running_steps: usize,
    pub queue_wait_ms: u64,
    pub grace_ms: u64,
    /// Executions that may wait for their turn; beyond it new ones are refused.
    pub queued_executions: usize,
    /// Executions of one tenant that run or wait for their turn; beyond it new ones are refused.
    pub executions_per_tenant: usize,
    /// Children of one execution tree that have not ended, at each level; beyond it the next one waits.
    pub executions_per_tree_level: usize,
    /// Executions that one execution may start in all, with those that they start.
    pub executions_per_tree: usize,
    /// The environment variables that definitions may name.
    pub env: AllowedEnv,
    /// Whom notifications may reach beside the public internet: the same as `@orchestr8/http`.
    pub http: Http,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            running_steps: limits::RUNNING_STEPS,
            queue_wait_ms: limits::QUEUE_WAIT_MS,
            grace_ms: limits::GRACE_MS,
            queued_executions: limits::QUEUED_EXECUTIONS,
            executions_per_tenant: limits::EXECUTIONS_PER_TENANT,
            executions_per_tree_level: limits::EXECUTIONS_PER_TREE_LEVEL,
            executions_per_tree: limits::EXECUTIONS_PER_TREE,
            env: AllowedEnv::default(),
            http: Http::default(),
        }
    }
}

/// Everything executions share. Cheap to clone.
#[derive(Clone)]
pub struct Hub(Arc<Shared>);

pub(crate) struct Shared {
    pub settings: Settings,
    pub agents: Agents,
    pub secrets: SecretAccess,
    pub ports: Ports,
    pub kernel: Kernel,
    started: AtomicBool,
    pub definitions: Cache,
    scheduler: Scheduler<accept::Seed>,
    remote_limits: RemoteLimits,
    /// Turns of executions that start children.
    child_turns: RemoteLimits,
    limit_overrides: LimitOverrides,
    gates: Gates,
    quota: ExecutionQuota,
    trees: TreeLimits,
    log_quota: LogQuota,
    live: Mutex<HashMap<i64, Live>>,
    /// Where others may have work in the same store: only what this process was asked about is its own.
    own: OnceLock<Mutex<HashSet<i64>>>,
    recent: Recent,
    trigger_locks: TriggerLocks,
    event_locks: EventLocks,
    notifier: Notifier,
    numbers: AtomicI64,
    messages: AtomicI64,
    timers: Notify,
    /// Nothing new begins; what runs may finish.
    closing: CancellationToken,
    stop: CancellationToken,
}

/// The way to an actor.
#[derive(Clone)]
struct Live {
    sender: mpsc::Sender<Message>,
    seen: watch::Receiver<u64>,
}

/// The topic that wakes whoever follows the journals.
pub const FEED: &str = "workflows.feed";

/// Messages that may wait for one actor; senders wait beyond it.
const MAILBOX: usize = 256;

impl Hub {
    pub fn new(kernel: Kernel, agents: Agents, vault: SecretVault, settings: Settings) -> Self {
        let trees = TreeLimits::new(settings.executions_per_tree_level, settings.executions_per_tree);
        Self(Arc::new(Shared {
            scheduler: Scheduler::new(settings.running_steps),
            agents,
            secrets: SecretAccess::new(vault, kernel.ports(), kernel.row_seal().clone()),
            ports: kernel.ports().clone(),
            kernel,
            started: AtomicBool::new(false),
            definitions: Cache::default(),
            remote_limits: RemoteLimits::default(),
            child_turns: RemoteLimits::default(),
            limit_overrides: LimitOverrides::default(),
            gates: Gates::default(),
            quota: ExecutionQuota::new(trees.clone()),
            trees,
            log_quota: LogQuota::default(),
            live: Mutex::default(),
            own: OnceLock::new(),
            recent: Recent::default(),
            trigger_locks: TriggerLocks::default(),
            event_locks: EventLocks::default(),
            notifier: Notifier::new(&settings.http),
            numbers: AtomicI64::new(0),
            messages: AtomicI64::new(0),
            timers: Notify::new(),
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
            settings,
        }))
    }

    /// Takes up what was under way, and begins to run. Nothing may be accepted before.
    pub async fn start(&self) -> Result<(), Fault> {
        let last = self.begin().await?;
        tokio::spawn(recover::recover(self.clone(), last));
        tokio::spawn(crate::triggers::events::run(self.clone()));
        tokio::spawn(crate::notifications::run(self.clone()));
        Ok(())
    }

    /// Begins to run what comes, and leaves alone what was under way: for a command that is there for one execution and
    /// then ends. Schedules begin nothing.
    pub async fn start_alone(&self) -> Result<(), Fault> {
        self.0.own.get_or_init(Mutex::default);
        self.begin().await.map(|_| ())
    }

    /// Takes up one execution that was under way, with all it has begun itself.
    pub async fn take_up(&self, tenant: &Tenant, id: &str) -> Result<(), Fault> {
        recover::take_up_family(self, tenant, id).await
    }

    /// Reads where numbering goes on, and begins to run. Gives the last number that was there before.
    async fn begin(&self) -> Result<i64, Fault> {
        let mut last = 0;
        let rows = self.0.ports.store.query(tables::highest_numbers()).await.map_err(fault)?;
        if let Some(row) = rows.first() {
            last = row.int(0).map_err(fault)?.max(row.int(2).map_err(fault)?);
            self.0.numbers.store(last, Ordering::Release);
            self.0.messages.store(row.int(1).map_err(fault)?, Ordering::Release);
        }
        breakers::restore(&self.0).await?;
        gates::restore(&self.0).await?;
        trees::restore(self).await?;
        limit_overrides::restore(self).await?;
        self.0.started.store(true, Ordering::Release);
        let weak = Arc::downgrade(&self.0);
        self.0.scheduler.on_admit(Arc::new(move |seed, slot| {
            if let Some(shared) = weak.upgrade() {
                tokio::spawn(admit::admit(Hub(shared), seed, slot));
            }
        }));
        let weak = Arc::downgrade(&self.0);
        self.0.gates.on_open(Arc::new(move |seed| {
            if let Some(shared) = weak.upgrade() {
                Hub(shared).line_up(seed);
            }
        }));
        tokio::spawn(timers::run(self.clone()));
        tokio::spawn(breakers::keep(self.clone()));
        dropped_events::follow(self.clone());
        Ok(last)
    }

    /// Ends all actors where they are. What they have not recorded did not happen; the next start takes it up.
    pub fn stop(&self) {
        self.0.closing.cancel();
        self.0.stop.cancel();
    }

    /// Lets steps that run finish, and begins no other; then ends all actors.
    pub async fn close(&self, limit: Duration) {
        const LOOK_EVERY: Duration = Duration::from_millis(5);
        self.0.closing.cancel();
        let clock = &self.0.ports.clock;
        let all_left = async {
            while self.live() > 0 {
                clock.sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            () = all_left => {}
            () = clock.sleep(limit) => {}
        }
        self.stop();
    }

    /// Ends when the process is about to: whoever only waits should stop waiting.
    pub async fn closing(&self) {
        self.0.closing.cancelled().await;
    }

    pub fn depth(&self) -> Depth {
        self.0.scheduler.depth()
    }

    /// How many attempts are with workers and remote agents, and how many wait for a place with them.
    pub fn remote_depth(&self) -> (usize, usize) {
        self.0.remote_limits.depth()
    }

    /// Executions that have an actor.
    pub fn live(&self) -> usize {
        self.0.live.lock().len()
    }

    pub fn agents(&self) -> &Agents {
        &self.0.agents
    }

    /// A definition that this server accepts: valid, and it names only what the server allows.
    pub fn read_definition(&self, source: &Value) -> Result<Arc<Workflow>, Problems> {
        let workflow = self.0.definitions.get_or_read(source)?;
        self.0.settings.env.check(&workflow)?;
        Ok(workflow)
    }

    /// The definition in the member `workflow` of arguments. A large one is checked beside other work, in turns by tenant.
    pub async fn read_definition_of(
        &self,
        args: &Arc<Args>,
        principal: &Principal,
    ) -> Result<Result<Arc<Workflow>, Problems>, Fault> {
        let (hub, given) = (self.clone(), args.clone());
        let read = move || hub.read_definition(given.get("workflow").unwrap_or(&Value::Null));
        self.0.kernel.heavy().run(principal, args.bytes(), read).await
    }

    pub fn ports(&self) -> &Ports {
        &self.0.ports
    }

    /// Something about schedules has changed.
    pub fn look_at_timers(&self) {
        self.0.timers.notify_one();
    }

    /// What was kept of an ended execution is not true any more.
    pub fn forget(&self, id: &str) {
        self.0.recent.forget(id);
    }

    /// An execution that has just ended.
    pub fn recent(&self, tenant: &str, id: &str) -> Option<Arc<Ended>> {
        self.0.recent.get(tenant, id)
    }

    /// Wakes at the end of an execution that is known to be under way.
    pub fn end_of(&self, tenant: &str, id: &str) -> Option<watch::Receiver<()>> {
        self.0.recent.end_of(tenant, id)
    }

    /// The same for one that was found in the store.
    pub fn end_of_stored(&self, row: &Row) -> Option<watch::Receiver<()>> {
        self.0.recent.open(&row.id, &row.tenant);
        self.end_of(row.tenant.as_str(), &row.id)
    }

    /// Nobody waits for this end any more.
    pub fn unwatch(&self, id: &str) {
        self.0.recent.close_if_unheard(id);
    }

    /// Wakes whoever follows one execution; None when it is not under way.
    pub fn follow(&self, number: i64) -> Option<watch::Receiver<u64>> {
        self.0.live.lock().get(&number).map(|live| live.seen.clone())
    }
}

/// A failure of the store as callers see it.
pub fn fault(error: store::Error) -> Fault {
    orchestr8_kernel::ledger::store_fault(error)
}
