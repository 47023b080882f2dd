//! The settings of workflows, as they are written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::WorkflowsExec;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workflows {
    pub max_concurrent_steps: usize,
    pub max_executions_per_tenant: usize,
    pub max_executions_per_tree_level: usize,
    pub max_executions_per_tree: usize,
    pub queue_wait_ms: u64,
    pub cancel_grace_ms: u64,
    pub env: Vec<String>,
    pub allowed_agents: Vec<String>,
    pub http: WorkflowsHttp,
    #[serde(default)]
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
pub struct RemoteAgent {
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub timeout_ms: Option<u64>,
    pub max_concurrent: usize,
}
