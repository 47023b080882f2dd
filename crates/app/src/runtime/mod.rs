//! Puts the program together: settings -> ports -> store -> kernel -> registry -> faces; and takes it apart again.

mod audit;
mod bridge;
mod command_log;
mod countdown;
pub mod descriptors;
mod embedding;
pub mod examples;
pub mod knowledge;
pub(crate) mod log_retention;
mod messages;
mod principals;
pub mod rejections;
mod seal;
pub mod secrets;
mod sessions;
mod signals;
mod sink;
pub mod store;
pub mod tls;
pub mod tokens;
pub mod transparency;
mod upkeep;
mod upstreams;
mod workflows;
mod workspace;

use std::future::Future;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::{Code, canonical};
use orchestr8_kernel::bus::{self, Bus};
use orchestr8_kernel::log::Level;
use orchestr8_kernel::ports::{Clock, Ids, Random, clock, ids, random};
use orchestr8_kernel::redact::Redactor;
use orchestr8_kernel::{Action, Cancel, Kernel, Log, Ports};
use orchestr8_mcp::Face;
use orchestr8_process::sandbox::{Sandbox, SandboxSettings};
use orchestr8_secrets::SecretVault;
use orchestr8_stores::Sqlite;
use orchestr8_tlog::HeadRecorder;
use orchestr8_tokens::ApiTokens;
use orchestr8_tools::remote::{self, RemoteServers};
use orchestr8_workflows::Hub;
use orchestr8_workspace::ServerSigningKey;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::settings::Settings;
use sink::Stderr;

pub use command_log::CommandLog;
pub use countdown::Countdown;
pub use store::WhenHeld;

/// The seed of deterministic mode.
const SEED: u64 = 8;

/// How long the log may take to reach stderr at the end.
const FLUSH_LIMIT: Duration = Duration::from_millis(500);

/// What commands say about how they run the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Purpose {
    pub when_held: WhenHeld,
    /// Nothing below this is logged, whatever the settings say: a short command should not chatter.
    pub at_least: Level,
    /// Whether it runs for long: then old records are deleted, and signals end it gracefully.
    pub lasting: bool,
    /// Whether other MCP servers are started: never by a command that only looks at something.
    pub starts_servers: bool,
}

/// The program, put together.
pub struct Runtime {
    pub settings: Settings,
    pub kernel: Kernel,
    pub store: Sqlite,
    /// Fires when the process is asked to stop.
    pub stop: CancellationToken,
    pub durable: bool,
    /// Signs the heads of the audit log; None where nothing is kept, or there is no key.
    pub heads: Option<HeadRecorder>,
    /// How long the end may still take.
    pub countdown: Countdown,
    /// Other MCP servers; they come up while we serve already.
    pub remote: RemoteServers,
    pub vault: SecretVault,
    pub workflows: Hub,
    pub sessions: orchestr8_sessions::Hub,
    pub knowledge: orchestr8_knowledge::Hub,
    pub messages: orchestr8_agents::aacp::Hub,
    workspace_key: ServerSigningKey,
    pub tokens: ApiTokens,
    /// Told by SIGHUP, where there is something to reload.
    pub reload: Option<Arc<Notify>>,
    /// Tasks that still have something to write when the server stops.
    finishing: Mutex<Vec<JoinHandle<()>>>,
    sink: Stderr,
}

/// Runs a future on a thread for each core. At least two, since a small commit holds its thread up while the disk flushes;
/// not more than a disk can keep busy, since each costs memory.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    const WORKERS: RangeInclusive<usize> = 2..=16;
    const BLOCKING_THREADS: usize = 16;
    let cores = std::thread::available_parallelism().map_or(*WORKERS.start(), usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.clamp(*WORKERS.start(), *WORKERS.end()))
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("worker")
        .enable_all()
        .build()
        .map_err(|cause| {
            Failure::new(Code::Unavailable, format!("no threads: {cause}"))
                .hinting("the machine is out of threads or memory")
        })?;
    let result = runtime.block_on(work);
    // Work that outlived its answer and the drain is not waited for a second time.
    runtime.shutdown_background();
    result
}

impl Runtime {
    /// Needs a tokio runtime around it.
    pub fn build(settings: Settings, purpose: Purpose) -> Result<Self, Failure> {
        let sink = Stderr::start();
        let deterministic = settings.mode.deterministic;
        let (clock, ids, random) = ports(deterministic);
        let redactor = Arc::new(Redactor::new(&settings.redact_keys));
        let log =
            Log::new(settings.log_level.max(purpose.at_least), sink.clone(), redactor.clone(), clock.clone());
        settings.warnings.iter().for_each(|warning| log.warn(warning, ()));
        bridge::listen(&log);
        bridge::catch_panics(&log);
        let opened = store::open(&settings, purpose.when_held, &log, on_fatal(&log, &sink))?;
        let store = opened.store;
        let stop = CancellationToken::new();
        let heads = match opened.durable && !deterministic {
            true => transparency::start(&settings, &store, (&clock, &ids), &log, &stop)?,
            false => None,
        };
        let bus = Bus::new(&bus::Config::default(), clock.clone(), log.clone());
        let ports = Ports { clock, ids, random, store: Arc::new(store.clone()), log: log.clone(), redactor };
        let kernel = Kernel::new(ports, settings.limits.clone(), bus);
        let tokens = tokens::register(&kernel, &settings)?;
        kernel.set_directory(Arc::new(principals::ServerPrincipals::of(&settings.auth, tokens.table())));
        register(&kernel, &settings)?;
        let vault = secrets::register(&kernel, &settings)?;
        let messages = messages::register(&kernel, &settings, &vault)?;
        // One for all, because it waits once for programs of an earlier process.
        let sandbox = sandbox(&settings, opened.durable, kernel.ports().clock.clone());
        let workflows = workflows::register(&kernel, &settings, &vault, &sandbox, &tokens)?;
        let sessions = sessions::register(&kernel, &settings, &tokens, &sandbox)?;
        let workspace_key = workspace::register(&kernel, &settings, &sandbox, &tokens)?;
        let embedder = embedding::embedder(&kernel, &settings.embedder)?;
        let knowledge = knowledge::register(&kernel, &settings, embedder, &vault)?;
        let reload = settings.tls.as_ref().map(|_| Arc::new(Notify::new()));
        let countdown = Countdown::new(kernel.ports().clock.clone(), settings.shutdown_limit);
        if purpose.lasting {
            signals::watch(&stop, &countdown, reload.clone(), &log).map_err(|cause| {
                Failure::new(Code::Unavailable, format!("signals cannot be watched: {cause}"))
            })?;
            if !deterministic {
                let kept = upkeep::Kept::of(&settings.store);
                upkeep::start(&kernel, &store, kept, heads.clone(), &stop);
                heads.iter().for_each(HeadRecorder::run);
                tokio::spawn(audit::check_at_start(store.clone(), log.clone()));
            }
        }
        let remote =
            RemoteServers::start(&kernel, upstreams::settings(&settings, &vault, purpose.starts_servers));
        cover_messages(heads.as_ref(), &messages);
        offer_own(&kernel, &remote, audit::actions(&store, &messages, heads.as_ref()))?;
        Ok(Self {
            settings,
            kernel,
            store,
            stop,
            durable: opened.durable,
            heads,
            countdown,
            remote,
            vault,
            workflows,
            sessions,
            knowledge,
            messages,
            workspace_key,
            tokens,
            reload,
            finishing: Mutex::default(),
            sink,
        })
    }

    /// Takes up the sessions that were there and the workflows that were under way, and runs what comes. Only for commands
    /// that stay.
    pub async fn begin(&self) -> Result<(), Failure> {
        self.unlock().await?;
        self.remote.offer_pinned().await;
        self.tokens.load().await?;
        self.sessions.start().await.map_err(Failure::from)?;
        let (knowledge, stop) = (self.knowledge.clone(), Cancel::from_token(self.stop.clone()));
        tokio::spawn(async move { knowledge.run(stop).await });
        let (messages, stop) = (self.messages.clone(), Cancel::from_token(self.stop.clone()));
        tokio::spawn(async move { messages.run(stop).await });
        tokio::spawn(self.tokens.clone().track_use(self.stop.clone()));
        self.workflows.start().await.map_err(Failure::from)
    }

    /// Opens the vault, and with it the key that seals rows which grant rights, before anything reads or writes one. Then takes up the
    /// MCP servers that were added at run time.
    pub async fn unlock(&self) -> Result<(), Failure> {
        self.vault.load().await?;
        let key = seal::row_key(&self.vault, &self.kernel).await?;
        self.kernel.row_seal().set_key(key);
        // With a key that ends with the process nothing is signed that outlives it.
        if key.is_some() || !self.durable {
            let secret = seal::secret(&self.vault, &self.kernel).await?;
            self.workspace_key.set(workspace::signing_key(&secret));
        }
        self.remote.load().await.map_err(Failure::from)
    }

    /// Runs what comes, and leaves alone what was under way. For commands that are there for one execution.
    pub async fn begin_alone(&self) -> Result<(), Failure> {
        self.unlock().await?;
        self.remote.offer_pinned().await;
        self.tokens.load().await?;
        self.sessions.start_alone().await.map_err(Failure::from)?;
        self.workflows.start_alone().await.map_err(Failure::from)
    }

    /// Waits for a task when the server stops. It must end by itself once `stop` fires.
    pub fn finish(&self, task: JoinHandle<()>) {
        self.finishing.lock().push(task);
    }

    /// The REST faces over this kernel that commands call too.
    pub fn router(&self) -> axum::Router {
        workflows::router(self).merge(messages::router(self))
    }

    /// The face of sessions over this kernel.
    pub fn sessions_face(&self) -> orchestr8_sessions_face::Face {
        sessions::face(self)
    }

    /// What pages of this server show when they change something. The same after a restart, so that an open page goes on.
    pub async fn page_token(&self) -> Result<String, Failure> {
        let secret = seal::secret(&self.vault, &self.kernel).await?;
        Ok(canonical::sha256_hex(&json!({"of": "pages", "secret": secret})))
    }

    /// The MCP face over this kernel.
    pub async fn face(&self) -> Result<Face, Failure> {
        let settings = &self.settings;
        let secret = seal::secret(&self.vault, &self.kernel).await?;
        Ok(Face::new(
            self.kernel.clone(),
            orchestr8_mcp::Settings {
                instructions: settings.instructions.clone(),
                eras: settings.eras,
                tool_filter: settings.tool_filter.clone(),
                max_result_bytes: settings.result_bytes,
                message_bytes: settings.http.body_limit_bytes,
                key_ttl_ms: settings.key_ttl_ms,
                debug_stack: settings.debug_stack,
                ..orchestr8_mcp::Settings::new(&settings.server_name, &settings.server_version, secret)
            },
        ))
    }

    /// Lets work in flight finish; everything acknowledged is on disk when it returns.
    ///
    /// What has not finished in time is cut off as a crash would cut it off: nothing of it was acknowledged, and the next
    /// start finds it as it would find it after a crash. A recorded failure would stand in the way of a repeat.
    pub async fn close(self) {
        self.countdown.begin();
        self.stop.cancel();
        self.workflows.close(self.countdown.left()).await;
        if !self.kernel.drain(self.countdown.left()).await {
            let left = self.kernel.in_flight();
            self.kernel.log().warn("work in flight was cut off", json!({"left": left}));
        }
        self.sessions.close().await;
        self.remote.stop().await;
        let finishing = std::mem::take(&mut *self.finishing.lock());
        futures::future::join_all(finishing).await;
        if let Err(fault) = self.messages.filed().await {
            self.kernel.log().warn("messages could not be filed", json!({"cause": fault.message}));
        }
        if let Some(heads) = &self.heads {
            heads.close().await;
        }
        self.store.close().await;
        self.kernel.log().debug("stopped", ());
        self.sink.flush(FLUSH_LIMIT);
    }
}

type Basics = (Arc<dyn Clock>, Arc<dyn Ids>, Arc<dyn Random>);

fn ports(deterministic: bool) -> Basics {
    match deterministic {
        true => (
            Arc::new(clock::Simulated::new()),
            Arc::new(ids::Counted::default()),
            Arc::new(random::Seeded::new(SEED)),
        ),
        false => (Arc::new(clock::Real::new()), Arc::new(ids::Random), Arc::new(random::Real)),
    }
}

/// After a failed flush nobody knows what is on the disk: say so and end at once, so that nobody is told otherwise.
fn on_fatal(log: &Log, sink: &Stderr) -> orchestr8_stores::sqlite::OnFatal {
    let (log, sink) = (log.clone(), sink.clone());
    Arc::new(move |why: &str| {
        log.error("the process ends at once", json!({"cause": why}));
        sink.flush(FLUSH_LIMIT);
        std::process::abort();
    })
}

/// Before each head the records of messages become entries of the log that it covers.
fn cover_messages(heads: Option<&HeadRecorder>, messages: &orchestr8_agents::aacp::Hub) {
    let Some(heads) = heads else { return };
    let messages = messages.clone();
    heads.before_each(Arc::new(move || {
        let messages = messages.clone();
        // A failure leaves the records in the tail, where they are durable, for the next head.
        Box::pin(async move { drop(messages.filed().await) })
    }));
}

/// What the program itself offers: over its audit trail, as a witness, over other servers.
fn offer_own(
    kernel: &Kernel,
    remote: &RemoteServers,
    of_audit: Result<Vec<Action>, orchestr8_kernel::schema::Error>,
) -> Result<(), Failure> {
    let of_witness = orchestr8_tlog::witness::all().map_err(broken)?;
    let of_others = remote.actions().map_err(broken)?;
    let mut all = of_others.into_iter().chain(of_audit.map_err(broken)?).chain(of_witness);
    all.try_for_each(|action| offer(kernel, action))
}

fn broken(error: orchestr8_kernel::schema::Error) -> Failure {
    Failure::new(Code::Internal, format!("an action is wrong: {error}"))
}

/// Something the program itself offers beside its domains.
fn offer(kernel: &Kernel, action: Action) -> Result<(), Failure> {
    kernel.registry().register(action).map_err(|error| Failure::new(Code::Internal, error.to_string()))
}

/// Every action of every domain. To add a domain: its lines here.
/// A process beside the one that owns the data does not wait for that one's programs.
fn sandbox(settings: &Settings, owns_data: bool, clock: Arc<dyn Clock>) -> Sandbox {
    let lock = settings.sandbox.lock.clone().filter(|_| owns_data);
    Sandbox::new(SandboxSettings { lock, ..settings.sandbox.clone() }, clock)
}

fn register(kernel: &Kernel, settings: &Settings) -> Result<(), Failure> {
    let tools = orchestr8_tools::Settings {
        state_bytes: settings.state_bytes,
        search_above: settings.search_above,
        admin: settings.admin,
        conformance: settings.mode.conformance,
        ..orchestr8_tools::Settings::new(&settings.server_name, &settings.server_version)
    };
    let of_admins = match settings.admin {
        Some(mode) if !settings.upstreams.servers.is_empty() => remote::admin_tools(mode).map_err(broken)?,
        Some(_) | None => Vec::new(),
    };
    let of_tools = orchestr8_tools::all(&tools).map_err(broken)?;
    for action in of_tools.into_iter().chain(of_admins) {
        kernel.registry().register(action).map_err(broken)?;
    }
    orchestr8_tools::changed(kernel, settings.search_above).map_err(broken)
}

#[cfg(test)]
mod tests;
