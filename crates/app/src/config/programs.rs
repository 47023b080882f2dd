//! What is written about programs: the sandbox around them, and those that workflows may start.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sandbox {
    pub mode: SandboxMode,
    pub readable: Vec<PathBuf>,
    pub memory_mb: u64,
    pub processes: u64,
    pub file_mb: u64,
    pub cpu_seconds: u64,
    pub open_files: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    Required,
    BestEffort,
    Off,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkflowsExec {
    pub shared_directories: bool,
    #[serde(default)]
    pub templates: BTreeMap<String, ExecTemplate>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecTemplate {
    pub program: PathBuf,
    pub args: Vec<String>,
    #[serde(default)]
    pub holes: BTreeMap<String, String>,
    pub variables: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub directory: Option<PathBuf>,
    pub timeout_ms: Option<u64>,
    pub roles: Vec<String>,
}
