//! The configuration: what was written, where, and everything that is wrong with it.
//!
//! `table` declares each setting once; `layers` lays default, file, environment and flags over each other; the result is
//! read into [`Config`]. What it means is in `settings`.

mod environment;
mod file;
mod knowledge;
mod layers;
mod place;
mod programs;
mod secrets;
mod shape;
mod suggest;
mod table;
mod thinking;
mod trust;
mod trust_class;
mod untrusted;
mod walk;
mod workflows;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use orchestr8_contract::Code;
use serde::Deserialize;
use serde_json::Value;

pub use environment::Environment;
pub use file::hash as content_hash;
pub use knowledge::{
    EmbedderKind, Knowledge, KnowledgeEmbedder, KnowledgeProfile, KnowledgeSecurity, KnowledgeVectors,
    VectorEngine,
};
pub use layers::{Entry, Origin, Problem, Stranger, strangers};
pub use programs::{Sandbox, SandboxMode, WorkflowsExec};
pub use secrets::{KeyConfig, NamedSecret, Secrets};
pub use suggest::suggestion;
pub use table::{PREFIX, Preset, SETTINGS, Secrecy, Setting};
pub use thinking::{ModelKind, ModelProvider, Models, Sessions};
pub use trust::{TrustStore, TrustedFile};
pub use untrusted::{ReviewedFile, review, trusted_place};
pub use workflows::Workflows;

use crate::failure::Failure;
use file::ConfigSource;
use layers::{FileLayer, Given};

/// Every value in force, with its origin, and the same as one typed whole.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    pub entries: Vec<Entry>,
    pub file: Option<PathBuf>,
    /// What an untrusted file of the working directory says and what is therefore not in force.
    pub withheld: Vec<Entry>,
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

/// Finds, reads and checks the configuration. One that was found in the working directory counts whole only if it is trusted.
pub fn load(named: Option<&Path>, flags: Flags, environment: &Environment) -> Result<Loaded, Failure> {
    let found = file::find(named, environment).map_err(wrong)?;
    let mut files = Vec::new();
    if let Some((path, choice)) = &found {
        let read = file::read(path).map_err(wrong)?;
        let is_trusted = match choice {
            ConfigSource::Named | ConfigSource::User => true,
            ConfigSource::Directory => untrusted::is_trusted(path, &read.sha256, environment)?,
        };
        if let Some(own) = file::of_user(environment).map_err(wrong)?.filter(|_| !is_trusted) {
            // What others put into a folder does not take the user's own settings away.
            let document = file::read(&own).map_err(wrong)?.document;
            files.push(FileLayer { path: own, document, is_trusted: true });
        }
        files.push(FileLayer { path: shown(path.clone(), environment), document: read.document, is_trusted });
    }
    let laid = layers::lay(&Given { files, flags }, environment).map_err(|problems| failure(&problems))?;
    let config: Config = serde_json::from_value(layers::document(&laid.entries)).map_err(|error| {
        Failure::new(Code::Internal, format!("the table of settings and the program disagree: {error}"))
    })?;
    Ok(Loaded { config, entries: laid.entries, file: found.map(|(path, _)| path), withheld: laid.withheld })
}

/// The user's own configuration, if there is one.
pub fn user_configuration(environment: &Environment) -> Result<Option<PathBuf>, Failure> {
    file::of_user(environment).map_err(wrong)
}

fn wrong(error: file::Error) -> Failure {
    Failure::new(Code::Configuration, error.to_string()).hinting(error.hint())
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
    pub audit: Audit,
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
    pub sandbox: Sandbox,
    pub workspace: Workspace,
    pub gateway: Gateway,
    #[serde(default)]
    pub mcp_servers: BTreeMap<String, McpServer>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workspace {
    pub roots: Vec<PathBuf>,
    pub self_approval: bool,
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
pub struct Resources {
    pub max_concurrent_executions: usize,
    pub max_cpu_ms_per_minute: u64,
    pub max_work_bytes: usize,
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
    pub key: KeyConfig,
    pub sync: Sync,
    pub retention_days: u32,
    pub audit_retention_days: u32,
    pub max_bytes: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Audit {
    pub key_file: Option<PathBuf>,
    pub key_env_var: Option<String>,
    pub key_command: Vec<String>,
    pub anchors: Vec<String>,
    pub head_seconds: u64,
    pub head_entries: u64,
    pub witnesses: Vec<String>,
    pub witness_token_env_var: Option<String>,
    pub witness_ca_file: Option<PathBuf>,
    pub require_witness: bool,
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
    pub max_streams_per_principal: usize,
    pub max_failed_logins_per_minute: u32,
    #[serde(default)]
    pub tls: HttpTls,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpTls {
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
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
    pub reuse_name: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Protocol {
    pub eras: Vec<Era>,
    pub max_sessions_per_principal: usize,
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
    pub shared: bool,
    pub idle_timeout_ms: Option<u64>,
}

/// Limits and rights that hold for all other MCP servers.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gateway {
    pub max_instances: usize,
    pub max_instances_per_tenant: usize,
    pub tenant_programs: bool,
    pub allowed_hosts: Vec<String>,
    pub allow_private: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerKind {
    Stdio,
    Http,
    /// The HTTP transport of revision 2024-11-05, which is found out in any case.
    Sse,
}

#[cfg(test)]
mod tests;
