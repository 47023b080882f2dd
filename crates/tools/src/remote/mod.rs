//! Tools of other MCP servers: each becomes a tool of ours, under our deadlines, slots, breaker and audit.
//!
//! Each tenant has an instance of its own of each server, unless the server is shared (ADR 62). Every instance has a supervisor: it
//! starts the server, learns its tools, listens for changes, starts it again when it has gone, and stops it when it is not used.
//! Tools that were accepted before are offered at once; the others appear when their server comes up.
//!
//! A stdio server is a child in a process group of its own. The group is ended with the server: first its stdin is closed,
//! then it is asked to end, then it is killed. It is also killed when the supervisor is dropped. Should this process die
//! without a chance to do so, the kernel closes the pipes, and a server that reads its stdin ends at the end of input, as the
//! protocol asks of it. For a server that does not, `setpriv --pdeathsig KILL <command>` as the command makes the system do it.

mod accept_tool;
mod address_mask;
mod call;
mod call_hold;
mod calls;
mod catalogue;
mod child;
mod connect;
mod desk;
mod entry;
mod event_stream;
mod follow;
mod http;
mod http_refusal;
mod http_session;
mod incoming;
mod instance_pool;
mod known;
mod lift;
mod lines;
mod list_quarantined;
mod list_servers;
mod listener;
mod manage;
mod names;
mod offer;
mod oversized;
mod pins;
mod placeholders;
mod proxy;
mod questions;
mod result;
mod sent;
mod served_server;
mod servers;
mod stderr;
mod stored_servers;
mod supervise;
mod task;
mod tool_call;

pub mod limits;

use std::collections::BTreeMap;
use std::path::PathBuf;

use orchestr8_kernel::{Action, schema};
use orchestr8_outbound::Allowed;

pub use desk::{Desk, InstanceUse, Line, Phase, RecentFailure, Seen};
pub use entry::ServerEntry;
pub use instance_pool::InstanceLimits;
pub use known::{KnownTool, known_tools};
pub use manage::TenantRights;
pub use pins::{Changed, Pin, accept, accept_for, pins, pins_of};
pub use placeholders::{NameSources, names_in, names_of};
pub use served_server::{ServedServer, ServerKey};
pub use servers::RemoteServers;

use crate::AdminMode;

/// Another MCP server, as the configuration names it.
#[derive(Clone)]
pub struct Server {
    /// Its tools are called `<name>.<tool>`, unless `prefix` says otherwise.
    pub name: String,
    pub link: Link,
    pub prefix: Option<String>,
    /// How long a call may take. None: as long as any other tool.
    pub timeout_ms: Option<u64>,
    /// How long it may take to start and to tell its tools.
    pub start_timeout_ms: u64,
    /// Calls of this server at once.
    pub max_concurrent: usize,
    /// Its tools that are taken; empty: all. A name, or the beginning of names followed by `*`.
    pub allow: Vec<String>,
    /// Taken away from the above.
    pub deny: Vec<String>,
    pub disabled: bool,
    /// One instance serves all tenants.
    pub shared: bool,
    /// How long an instance may be unused before it is stopped; 0: for ever. None: `limits::IDLE_TIMEOUT_MS`, and for ever for
    /// instances of the machine's own tenant and shared ones.
    pub idle_timeout_ms: Option<u64>,
}

/// How a server is reached.
#[derive(Clone)]
pub enum Link {
    /// A program that is started and spoken to over its stdin and stdout.
    Stdio {
        command: String,
        args: Vec<String>,
        /// Beside `Settings::base_env`, and before it.
        env: BTreeMap<String, String>,
        cwd: Option<PathBuf>,
    },
    /// An address of the streamable HTTP transport.
    Http { url: String, headers: BTreeMap<String, String> },
}

impl Server {
    pub fn new(name: &str, link: Link) -> Self {
        Self {
            name: name.to_owned(),
            link,
            prefix: None,
            timeout_ms: None,
            start_timeout_ms: limits::START_TIMEOUT_MS,
            max_concurrent: limits::CONCURRENT_CALLS,
            allow: Vec::new(),
            deny: Vec::new(),
            disabled: false,
            shared: false,
            idle_timeout_ms: None,
        }
    }

    /// Whether a tool of this name is taken.
    fn takes(&self, tool: &str) -> bool {
        let fits = |patterns: &[String]| {
            patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(beginning) => tool.starts_with(beginning),
                None => tool == pattern,
            })
        };
        (self.allow.is_empty() || fits(&self.allow)) && !fits(&self.deny)
    }
}

/// What an installation sets for other servers.
#[derive(Clone)]
pub struct Settings {
    pub servers: Vec<Server>,
    /// What children find in their environment: PATH, HOME, LANG and the like, never all of ours.
    pub base_env: BTreeMap<String, String>,
    /// What we call ourselves to other servers.
    pub client_name: String,
    pub client_version: String,
    /// See `crate::Settings`.
    pub search_above: usize,
    pub instances: InstanceLimits,
    pub names: NameSources,
    /// Whether servers are started at all: not by a command that only looks at records.
    pub starts_servers: bool,
    /// Where servers that tenants add may be.
    pub allowed: Allowed,
    pub tenant_rights: TenantRights,
}

/// The tools with which admins look at quarantined tools and accept them, for installations with other servers where
/// somebody may administrate.
pub fn admin_tools(mode: AdminMode) -> Result<Vec<Action>, schema::Error> {
    Ok(vec![
        list_quarantined::action("admin.listQuarantined")?.allowing(mode.allow()),
        accept_tool::action("admin.acceptTool")?.allowing(mode.allow()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_which_tools_are_taken() {
        let mut server = Server::new("s", Link::Http { url: String::new(), headers: BTreeMap::new() });
        assert!(server.takes("anything"));
        server.allow = vec!["read_*".into(), "list".into()];
        server.deny = vec!["read_secret".into()];
        let taken: Vec<&str> = ["read_file", "read_secret", "list", "listing"]
            .into_iter()
            .filter(|tool| server.takes(tool))
            .collect();
        assert_eq!(taken, ["read_file", "list"]);
    }
}
