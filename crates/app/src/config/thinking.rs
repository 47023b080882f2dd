//! What is written about models and about the sessions that think with them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Models {
    pub default: Option<String>,
    pub answers: Option<String>,
    #[serde(default)]
    pub providers: BTreeMap<String, ModelProvider>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelProvider {
    pub kind: ModelKind,
    pub base_url: Option<String>,
    pub key_variable: Option<String>,
    pub key_secret: Option<String>,
    pub models: Vec<String>,
    pub context_window: u64,
    pub max_output: u64,
    pub reasoning: bool,
    pub images: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    Anthropic,
    Openai,
    Offline,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sessions {
    pub port: Option<u16>,
    pub max_sessions: usize,
    pub max_connections: usize,
    pub max_message_bytes: usize,
    pub commands_per_minute: usize,
    pub commands_per_minute_overall: usize,
    pub key_ttl_ms: u64,
    pub shutdown_timeout_ms: u64,
    pub cwd: Option<PathBuf>,
    pub folder: Option<PathBuf>,
    pub system_prompt: Option<String>,
    pub tools: Vec<String>,
    pub long_timeout_ms: u64,
    pub short_timeout_ms: u64,
    pub roots: Vec<PathBuf>,
    pub shared_roots: bool,
    pub bash: bool,
}
