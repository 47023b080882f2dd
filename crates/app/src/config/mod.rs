//! The configuration: what was written, where, and everything that is wrong with it.
//!
//! `table` declares each setting once; `layers` lays default, file, environment and flags over each other; the result is
//! read into [`Config`]. What it means is in `settings`.

mod environment;
mod file;
mod knowledge;
mod layers;
mod place;
mod secrets;
mod shape;
mod suggest;
mod table;
mod thinking;
mod walk;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use orchestr8_contract::Code;
use serde::Deserialize;
use serde_json::Value;

pub use environment::Environment;
pub use knowledge::{
    EmbedderKind, Knowledge, KnowledgeEmbedder, KnowledgeProfile, KnowledgeSecurity, KnowledgeVectors,
    VectorEngine,
};
pub use layers::{Entry, Origin, Problem, Stranger, strangers};
pub use secrets::{NamedSecret, Secrets, SecretsKey};
pub use suggest::suggestion;
pub use table::{PREFIX, Preset, SETTINGS, Secrecy, Setting};
pub use thinking::{ModelKind, ModelProvider, Models, Sessions};

use crate::failure::Failure;
use layers::Given;

/// Every value in force, with its origin, and the same as one typed whole.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    pub entries: Vec<Entry>,
    pub file: Option<PathBuf>,
}

impl Loaded {
    /// Where the value of a key came from.
    pub fn origin(&self, key: &str) -> Origin {
        let entry = self.entries.iter().find(|entry| entry.place.to_string() == key);
        entry.map_or(Origin::Default, |entry| entry.origin.clone())
    }
}

/// Settings given by command-line flags: key, flag, value.
pub type Flags = Vec<(&'static str, &'static str, Value)>;

/// Finds, reads and checks the configuration.
pub fn load(named: Option<&Path>, flags: Flags, environment: &Environment) -> Result<Loaded, Failure> {
    let wrong =
        |error: file::Error| Failure::new(Code::Configuration, error.to_string()).hinting(error.hint());
    let path = file::find(named, environment).map_err(wrong)?;
    let document = path.as_deref().map(file::read).transpose().map_err(wrong)?;
    let given = Given { file: path.clone().map(|path| shown(path, environment)).zip(document), flags };
    let entries = layers::lay(&given, environment).map_err(|problems| failure(&problems))?;
    let config: Config = serde_json::from_value(layers::document(&entries)).map_err(|error| {
        Failure::new(Code::Internal, format!("the table of settings and the program disagree: {error}"))
    })?;
    Ok(Loaded { config, entries, file: path })
}

/// What is said when settings are wrong: all of it at once.
pub fn failure(problems: &[Problem]) -> Failure {
    let message = match problems.len() {
        1 => String::from("a setting is wrong"),
        count => format!("{count} settings are wrong"),
    };
    let lines = problems.iter().map(|problem| {
        let origin = match &problem.origin {
            Origin::Default => String::from("the default"),
            Origin::File(path) => format!("in {}", path.display()),
            Origin::Variable(name) => format!("from the environment variable {name}"),
            Origin::Flag(name) => format!("from {name}"),
        };
        format!("{}: {} ({origin})", problem.key, problem.what)
    });
    Failure::new(Code::Configuration, message).listing(lines.collect())
}

/// A path as people would write it: relative when it is in the working directory.
fn shown(path: PathBuf, environment: &Environment) -> PathBuf {
    path.strip_prefix(&environment.working_directory).map(Path::to_owned).unwrap_or(path)
}

/// What was written, defaults filled in.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    pub server: Server,
    pub tools: Tools,
    pub resources: Resources,
    pub logging: Logging,
    pub security: Security,
    pub aacp: Aacp,
    pub store: Store,
    pub http: Http,
    #[serde(default)]
    pub auth: Auth,
    pub protocol: Protocol,
    pub secrets: Secrets,
    pub workflows: Workflows,
    #[serde(default)]
    pub models: Models,
    pub sessions: Sessions,
    pub knowledge: Knowledge,
    pub workspace: Workspace,
    #[serde(default)]
    pub mcp_servers: BTreeMap<String, McpServer>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workspace {
    pub roots: Vec<PathBuf>,
    pub bootstrap_secret_env_var: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Server {
    pub name: String,
    pub version: String,
    pub instructions: Option<String>,
    pub shutdown_timeout_ms: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tools {
    pub default_timeout_ms: u64,
    pub max_payload_bytes: usize,
    pub max_state_bytes: usize,
    pub max_result_bytes: usize,
    pub admin_registration_enabled: bool,
    pub admin_policy: AdminPolicy,
    pub filter: Vec<String>,
    pub search_above: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdminPolicy {
    pub mode: AdminMode,
    pub token_env_var: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminMode {
    DenyAll,
    LocalStdioOnly,
    Token,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workflows {
    pub max_concurrent_steps: usize,
    pub queue_wait_ms: u64,
    pub cancel_grace_ms: u64,
    pub env: Vec<String>,
    pub http: WorkflowsHttp,
    pub exec: WorkflowsExec,
    #[serde(default)]
    pub agents: BTreeMap<String, RemoteAgent>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkflowsHttp {
    pub allowed_hosts: Vec<String>,
    pub allow_private: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkflowsExec {
    pub programs: Vec<PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoteAgent {
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    pub max_concurrent_executions: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Logging {
    pub level: LogLevel,
    pub redact_keys: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Security {
    pub dynamic_registration_enabled: bool,
    pub allow_arbitrary_code_tools: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Aacp {
    pub default_ttl_ms: u64,
    pub request_timeout_ms: u64,
    pub max_attempts: u32,
    pub max_inbox_messages: usize,
    pub callbacks: Callbacks,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Callbacks {
    pub allowed_hosts: Vec<String>,
    pub allow_private: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Store {
    pub path: Option<PathBuf>,
    pub sync: Sync,
    pub retention_days: u32,
    pub audit_retention_days: u32,
    pub max_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    Full,
    Normal,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Http {
    pub listen: SocketAddr,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub body_limit_bytes: usize,
    pub first_byte_timeout_ms: u64,
    pub header_timeout_ms: u64,
    pub body_timeout_ms: u64,
    pub idle_timeout_ms: u64,
    pub write_timeout_ms: u64,
    pub max_connections: usize,
    pub max_connections_per_ip: Option<usize>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Auth {
    pub tokens: Vec<Token>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Token {
    pub name: String,
    pub sha256: String,
    pub roles: Vec<String>,
    pub tenant: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Protocol {
    pub eras: Vec<Era>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    Legacy,
    Modern,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpServer {
    #[serde(rename = "type")]
    pub kind: Option<ServerKind>,
    pub command: Option<String>,
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    pub url: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub prefix: Option<String>,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub max_concurrent: usize,
    pub start_timeout_ms: u64,
    pub timeout_ms: Option<u64>,
    pub disabled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerKind {
    Stdio,
    Http,
}

#[cfg(test)]
mod tests;
