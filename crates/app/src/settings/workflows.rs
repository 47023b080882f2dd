//! What the settings of workflows mean: limits, and whom agents may call.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use orchestr8_contract::Code;
use orchestr8_edge::Auth;
use orchestr8_kernel::registry::ToolFilter;
use orchestr8_workflows::AllowedEnv;
use orchestr8_workflows::agents::{self, settings};

use crate::config::{self, Environment};
use crate::failure::Failure;

/// What workflows run with.
#[derive(Clone)]
pub struct Workflows {
    pub running_steps: usize,
    pub executions_per_tenant: usize,
    pub executions_per_tree_level: usize,
    pub executions_per_tree: usize,
    pub queue_wait_ms: u64,
    pub grace_ms: u64,
    pub agents: agents::Settings,
    /// The environment variables that definitions may name.
    pub env: AllowedEnv,
}

impl Workflows {
    pub fn new(
        config: &config::Workflows,
        tools: ToolFilter,
        env: AllowedEnv,
        auth: &Auth,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let base_env = super::upstreams::base_env(environment);
        let sharing = super::programs::folder_sharing(auth, config.exec.shared_directories);
        let templates = super::programs::templates(&config.exec)?;
        let exec =
            (!templates.is_empty()).then_some(settings::Exec { templates, sandbox: None, base_env, sharing });
        let remote = config.agents.iter().map(|(name, agent)| {
            let remote = settings::Remote {
                url: agent.url.clone(),
                headers: agent.headers.clone(),
                timeout_ms: agent.timeout_ms,
                max_concurrent: Some(agent.max_concurrent),
            };
            (name.clone(), remote)
        });
        Ok(Self {
            running_steps: config.max_concurrent_steps,
            executions_per_tenant: config.max_executions_per_tenant,
            executions_per_tree_level: config.max_executions_per_tree_level,
            executions_per_tree: config.max_executions_per_tree,
            queue_wait_ms: config.queue_wait_ms,
            grace_ms: config.cancel_grace_ms,
            agents: agents::Settings {
                http: settings::Http {
                    allowed_hosts: config.http.allowed_hosts.clone(),
                    allow_private: config.http.allow_private,
                },
                exec,
                remote: remote.collect(),
                tools,
                allowed: config.allowed_agents.clone(),
            },
            env,
        })
    }
}

/// Secrets that others on this machine can read are none.
pub fn read_private(what_for: &str, path: &Path) -> Result<String, Failure> {
    const OTHERS: u32 = 0o077;
    let wrong = |what: String| Failure::new(Code::Configuration, format!("{what_for}: {what}"));
    let metadata = std::fs::metadata(path).map_err(|cause| wrong(format!("{}: {cause}", path.display())))?;
    if metadata.mode() & OTHERS != 0 {
        return Err(wrong(format!("{} can be read by others", path.display()))
            .hinting(format!("chmod 600 {}", path.display())));
    }
    std::fs::read_to_string(path).map_err(|cause| wrong(format!("{}: {cause}", path.display())))
}
