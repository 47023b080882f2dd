//! What the configuration means for one run of the program: checked against itself, in the types the parts want.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use orchestr8_contract::Code;
use orchestr8_contract::limits;
use orchestr8_edge::{Auth, TlsFiles};
use orchestr8_kernel::Limits;
use orchestr8_kernel::heavy::HeavyLimits;
use orchestr8_kernel::log::Level;
use orchestr8_mcp::http::AdminToken;
use orchestr8_mcp::{Eras, ToolFilter};
use orchestr8_secrets::DeclaredSecret;
use orchestr8_tools::AdminMode;
use orchestr8_workflows::AllowedEnv;

use crate::config::{self, Config, Environment, Loaded, Problem};
use crate::failure::Failure;

/// What the command line says about this run.
#[derive(Debug, Clone, Default)]
pub struct Mode {
    pub data_dir: Option<PathBuf>,
    pub ephemeral: bool,
    pub deterministic: bool,
    pub conformance: bool,
}

/// Where data is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Memory,
    File {
        path: PathBuf,
        /// Somebody asked for this very place: nothing else will do.
        explicit: bool,
    },
}

impl Place {
    /// Whether there is a data file already.
    pub fn is_file(&self) -> bool {
        match self {
            Place::Memory => false,
            Place::File { path, .. } => path.exists(),
        }
    }
}

pub struct Settings {
    pub server_name: String,
    pub server_version: String,
    pub instructions: Option<String>,
    pub shutdown_limit: Duration,
    pub limits: Limits,
    pub state_bytes: usize,
    pub result_bytes: usize,
    pub search_above: usize,
    /// How long the outcome of a keyed call answers repeats.
    pub key_ttl_ms: u64,
    /// Messages between agents.
    pub messages: orchestr8_agents::aacp::Settings,
    pub tool_filter: ToolFilter,
    /// None: there are no admin tools.
    pub admin: Option<AdminMode>,
    pub admin_token: Option<AdminToken>,
    pub log_level: Level,
    pub redact_keys: Vec<String>,
    pub store: Store,
    pub audit: AuditSettings,
    pub http: config::Http,
    pub auth: Auth,
    /// With it, serve speaks HTTPS.
    pub tls: Option<TlsFiles>,
    pub sessions_per_principal: usize,
    pub eras: Eras,
    /// Other MCP servers.
    pub upstreams: Upstreams,
    pub workflows: Workflows,
    pub secrets: Secrets,
    pub models: orchestr8_models::Settings,
    pub sessions: orchestr8_sessions::Settings,
    pub sessions_face: orchestr8_sessions_face::Settings,
    /// What programs of sessions, workflows and plans run in.
    pub sandbox: orchestr8_process::sandbox::SandboxSettings,
    pub workspace: GovernedWorkspaces,
    /// Whether a failed call tells its stack (ERR-9).
    pub debug_stack: bool,
    /// A port of its own for sessions.
    pub sessions_port: Option<u16>,
    pub knowledge: Knowledge,
    pub vectors: Vectors,
    pub embedder: Embedder,
    pub mode: Mode,
    /// A hash of each setting that is not at its default and acts on more than one connection.
    pub fingerprints: BTreeMap<String, String>,
    /// What is not wrong and probably not meant.
    pub warnings: Vec<String>,
}

/// The name of the data file in the data directory.
const DATA_FILE: &str = "orchestr8.sqlite3";

impl Settings {
    pub fn new(loaded: Loaded, mode: Mode, environment: &Environment) -> Result<Self, Failure> {
        let Reviewed { admin_token, auth, tls, env, declared } = Review::of(&loaded, environment)?;
        let place = place(&loaded.config, &mode, environment)?;
        let tool_filter = ToolFilter { only: loaded.config.tools.filter.clone(), never: Vec::new() };
        let workflows =
            Workflows::new(&loaded.config.workflows, tool_filter.clone(), env, &auth, environment)?;
        let models = thinking::models(&loaded.config.models, &declared, environment)?;
        let roots = programs::session_roots(&loaded.config, &auth, &place, environment);
        let workspace = GovernedWorkspaces::new(&loaded, &auth, &place, environment)?;
        let sessions = thinking::sessions(&loaded.config.sessions, roots, &tool_filter, &place, environment);
        let mut sandbox = programs::sandbox(&loaded.config, &place, environment);
        sandbox
            .places
            .hidden
            .extend(private_places::named_configuration(loaded.file.as_deref(), environment));
        let audit = AuditSettings::new(&loaded.config.audit, &place, environment)?;
        let sessions_face = thinking::face(&loaded.config);
        let knowledge = Knowledge::new(&loaded.config.knowledge, thinking::answers(&loaded.config.models)?)?;
        let vectors = Vectors::new(&loaded.config.knowledge.vectors, environment)?;
        let embedder = Embedder::new(&loaded.config.knowledge.embedder, &place, &declared, environment)?;
        let secrets = Secrets::new(&loaded.config, declared, &place, environment)?;
        let store = Store::new(&loaded.config.store, place, environment)?;
        let warnings = loose_files::all_warnings(&loaded, tls.as_ref(), environment);
        let admin = protocol::admin(&loaded.config);
        let (limits, config) = (kernel_limits(&loaded.config), loaded.config);
        Ok(Self {
            server_name: config.server.name,
            server_version: config.server.version,
            instructions: config.server.instructions,
            shutdown_limit: Duration::from_millis(config.server.shutdown_timeout_ms),
            limits,
            state_bytes: config.tools.max_state_bytes,
            result_bytes: config.tools.max_result_bytes,
            search_above: config.tools.search_above,
            key_ttl_ms: config.aacp.default_ttl_ms,
            messages: messages::of(&config.aacp),
            tool_filter,
            admin,
            admin_token,
            log_level: level(config.logging.level),
            redact_keys: config.logging.redact_keys,
            store,
            audit,
            http: config.http,
            auth,
            tls,
            sessions_per_principal: config.protocol.max_sessions_per_principal,
            eras: protocol::eras(&config.protocol),
            upstreams: Upstreams::new(config.gateway, config.mcp_servers, environment),
            workflows,
            secrets,
            models,
            sessions,
            sessions_face,
            sandbox,
            workspace,
            debug_stack: environment.get("DEBUG_STACK") == Some("true"),
            sessions_port: config.sessions.port,
            knowledge,
            vectors,
            embedder,
            mode,
            fingerprints: fingerprints::of(&loaded.entries),
            warnings,
        })
    }
}

/// Looks for settings that contradict each other.
struct Review<'a> {
    loaded: &'a Loaded,
    problems: Vec<Problem>,
}

/// What the reviewed settings come to.
struct Reviewed {
    admin_token: Option<AdminToken>,
    auth: Auth,
    tls: Option<TlsFiles>,
    env: AllowedEnv,
    declared: Vec<DeclaredSecret>,
}

impl<'a> Review<'a> {
    fn of(loaded: &'a Loaded, environment: &Environment) -> Result<Reviewed, Failure> {
        let mut review = Self { loaded, problems: Vec::new() };
        let reviewed = Reviewed {
            admin_token: review.admin_token(environment),
            auth: review.auth(),
            tls: review.tls(),
            env: review.allowed_env(environment),
            declared: review.named_secrets(environment),
        };
        review.servers();
        review.knowledge();
        match review.problems.is_empty() {
            true => Ok(reviewed),
            false => Err(config::failure(&review.problems)),
        }
    }
}

impl Review<'_> {
    fn complain(&mut self, key: &str, what: impl Into<String>) {
        let origin = self.loaded.origin(key);
        self.problems.push(Problem { key: key.to_owned(), what: what.into(), origin });
    }

    fn admin_token(&mut self, environment: &Environment) -> Option<AdminToken> {
        let policy = &self.loaded.config.tools.admin_policy;
        if policy.mode != config::AdminMode::Token {
            return None;
        }
        let Some(variable) = &policy.token_env_var else {
            self.complain("tools.adminPolicy.tokenEnvVar", "is missing; mode token needs it");
            return None;
        };
        let token = environment.get(variable).and_then(AdminToken::new);
        if token.is_none() {
            let what = format!("names the environment variable {variable}, which is not set or empty");
            self.complain("tools.adminPolicy.tokenEnvVar", what);
        }
        token
    }

    fn servers(&mut self) {
        for (name, server) in &self.loaded.config.mcp_servers {
            let key = |part: &str| format!("mcpServers.{name}.{part}");
            let web = |url: &str| url.starts_with("http://") || url.starts_with("https://");
            match (&server.command, &server.url, server.kind) {
                (None, None, _) => self.complain(&key("command"), "is missing; give command, or url"),
                (Some(_), Some(_), _) => {
                    self.complain(&key("url"), "stands beside command; give one of them")
                }
                (Some(_), None, Some(config::ServerKind::Http | config::ServerKind::Sse)) => {
                    self.complain(&key("type"), "is http or sse, which need url")
                }
                (None, Some(_), Some(config::ServerKind::Stdio)) => {
                    self.complain(&key("type"), "is stdio, which needs command")
                }
                (None, Some(url), _) if !web(url) => {
                    self.complain(&key("url"), "must begin with http:// or https://")
                }
                (Some(_), None, None | Some(config::ServerKind::Stdio))
                | (None, Some(_), None | Some(config::ServerKind::Http | config::ServerKind::Sse)) => {}
            }
        }
    }
}

/// The flag, then the setting, then the environment, then the user's data folder.
fn place(config: &Config, mode: &Mode, environment: &Environment) -> Result<Place, Failure> {
    if mode.ephemeral {
        return Ok(Place::Memory);
    }
    if let Some(folder) = &mode.data_dir {
        return Ok(Place::File { path: folder.join(DATA_FILE), explicit: true });
    }
    if let Some(path) = &config.store.path {
        return Ok(Place::File { path: path.clone(), explicit: true });
    }
    // One folder for all processes of a user: a second process must cope when the first has it.
    let folder = environment.path("ORCHESTR8_DATA_DIR").or_else(|| environment.data_home());
    match folder {
        Some(folder) => Ok(Place::File { path: folder.join(DATA_FILE), explicit: false }),
        None => Err(Failure::new(Code::Configuration, "there is no place to keep data: HOME is not set")
            .hinting("set HOME or ORCHESTR8_DATA_DIR, or give --data-dir DIR or --ephemeral")),
    }
}

fn kernel_limits(config: &Config) -> Limits {
    Limits {
        payload_bytes: config.tools.max_payload_bytes,
        concurrent_runs: config.resources.max_concurrent_executions,
        timeout_ms: config.tools.default_timeout_ms,
        in_flight: limits::IN_FLIGHT,
        dependency_wait_ms: limits::DEPENDENCY_WAIT_MS,
        heavy: HeavyLimits {
            // One core stays free for requests, where there are several.
            workers: std::thread::available_parallelism().map_or(1, usize::from).saturating_sub(1).max(1),
            ms_per_minute: config.resources.max_cpu_ms_per_minute,
            bytes_per_tenant: config.resources.max_work_bytes,
        },
    }
}

fn level(level: config::LogLevel) -> Level {
    match level {
        config::LogLevel::Debug => Level::Debug,
        config::LogLevel::Info => Level::Info,
        config::LogLevel::Warn => Level::Warn,
        config::LogLevel::Error => Level::Error,
    }
}

mod allowed_env;
mod audit;
mod auth;
mod embedder;
mod fingerprints;
mod knowledge;
mod loose_files;
mod messages;
mod private_places;
mod programs;
mod protocol;
mod secrets;
mod store;
mod thinking;
mod tokens;
mod upstreams;
mod vectors;
mod workflows;
mod workspaces;

pub use audit::{AuditSettings, KeySource, witness};
pub use embedder::{Embedder, model_folder};
pub use knowledge::{Knowledge, UnsignedAccess};
pub use programs::CONFINE;
pub use secrets::{KeyLocation, Secrets};
pub use store::{STORE_KEY, Store};
pub use upstreams::Upstreams;
pub use vectors::Vectors;
pub use workflows::{Workflows, read_private};
pub use workspaces::GovernedWorkspaces;

#[cfg(test)]
mod tests;
