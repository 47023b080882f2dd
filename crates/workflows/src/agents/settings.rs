//! What an installation says about its agents: whom they may call, what they may start.

use std::collections::BTreeMap;
use std::fmt;

use orchestr8_kernel::folder_sharing::FolderSharing;
use orchestr8_kernel::registry::ToolFilter;
use orchestr8_process::sandbox::Sandbox;

pub use super::exec::{ExecTemplate, ExecTemplateSource};

/// Everything closed that reaches into this machine or its network.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub http: Http,
    /// The tools that `@orchestr8/tool` may call, as clients see them.
    pub tools: ToolFilter,
    /// The agents that steps may call: ids, or beginnings of ids followed by `*`. Empty: all.
    pub allowed: Vec<String>,
    /// None: no workflow can start a program.
    pub exec: Option<Exec>,
    /// Agents behind `POST /process`, by the name workflows call them.
    pub remote: BTreeMap<String, Remote>,
}

/// Whom `@orchestr8/http` may call beside the public internet.
#[derive(Debug, Clone, Default)]
pub struct Http {
    /// Hosts that may be called wherever they are: `host`, `*.domain`, or an address. Without a port.
    pub allowed_hosts: Vec<String>,
    /// Private, loopback and carrier addresses may be called; link-local and metadata addresses still may not.
    pub allow_private: bool,
}

/// What `@orchestr8/exec` may start.
#[derive(Debug, Clone, Default)]
pub struct Exec {
    /// By the name steps call them. Nothing else is started.
    pub templates: BTreeMap<String, ExecTemplate>,
    /// What programs run in. None: they do not run.
    pub sandbox: Option<Sandbox>,
    /// The environment of every program: `PATH`, `HOME`, `LANG`, as the process around us has them.
    pub base_env: BTreeMap<String, String>,
    /// Which tenants may use a directory that has no tenant.
    pub sharing: FolderSharing,
}

/// One agent behind `POST /process`.
#[derive(Clone)]
pub struct Remote {
    /// Where it is; `/process` and `/health` come behind it.
    pub url: String,
    pub headers: BTreeMap<String, String>,
    /// None: the usual limit.
    pub timeout_ms: Option<u64>,
    /// Calls of it at once. None: the usual limit.
    pub max_concurrent: Option<usize>,
}

impl fmt::Debug for Remote {
    /// Headers carry tokens, and so may an address.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Remote").field("timeout_ms", &self.timeout_ms).finish_non_exhaustive()
    }
}
