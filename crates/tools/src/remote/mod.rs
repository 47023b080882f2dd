//! Tools of other MCP servers: each becomes a tool of ours, under our deadlines, slots, breaker and audit.
//!
//! Every server has a supervisor of its own: it starts the server, learns its tools, listens for changes, and starts it again
//! when it has gone. A server that does not come up holds up nobody; its tools appear when it comes.
//!
//! A stdio server is a child in a process group of its own. The group is ended with the server: first its stdin is closed,
//! then it is asked to end, then it is killed. It is also killed when the supervisor is dropped. Should this process die
//! without a chance to do so, the kernel closes the pipes, and a server that reads its stdin ends at the end of input, as the
//! protocol asks of it. For a server that does not, `setpriv --pdeathsig KILL <command>` as the command makes the system do it.

mod accept_tool;
mod address_mask;
mod call;
mod calls;
mod child;
mod connect;
mod desk;
mod event_stream;
mod follow;
mod http;
mod http_refusal;
mod http_session;
mod incoming;
mod known;
mod lift;
mod lines;
mod list_quarantined;
mod list_servers;
mod listener;
mod long_line;
mod names;
mod offer;
mod pins;
mod proxy;
mod questions;
mod result;
mod sent;
mod stderr;
mod supervise;
mod task;

pub mod limits;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use orchestr8_kernel::{Action, Kernel, schema};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use desk::{Phase, RecentFailure, Seen};
pub use known::{KnownTool, known_tools};
pub use pins::{Changed, Pin, accept, pins};

use crate::AdminMode;
use desk::Desk;
use proxy::Upstreams;
use supervise::Surroundings;

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
}

/// The tools with which admins look at quarantined tools and accept them, for installations with other servers where
/// somebody may administrate.
pub fn admin_tools(mode: AdminMode) -> Result<Vec<Action>, schema::Error> {
    Ok(vec![
        list_quarantined::action("admin.listQuarantined")?.allowing(mode.allow()),
        accept_tool::action("admin.acceptTool")?.allowing(mode.allow()),
    ])
}

/// The supervisors of all other servers. Dropped, it ends them; `stop` also waits for their end.
pub struct Remote {
    desks: Vec<Arc<Desk>>,
    tasks: Vec<JoinHandle<()>>,
    stop: CancellationToken,
    /// Of servers that have no time limit of their own.
    timeout_ms: u64,
}

impl Remote {
    /// Starts all servers at the same time and returns at once. Needs a tokio runtime around it.
    pub fn start(kernel: &Kernel, settings: Settings) -> Self {
        let stop = CancellationToken::new();
        let around = Arc::new(Surroundings::new(kernel.clone(), &settings));
        let servers = settings.servers.into_iter().filter(|server| !server.disabled);
        let desk = |server| Arc::new(Desk::new(server, kernel.ports().clock.clone()));
        let desks: Vec<Arc<Desk>> = servers.map(desk).collect();
        let supervise =
            |desk: &Arc<Desk>| tokio::spawn(supervise::supervise(around.clone(), desk.clone(), stop.clone()));
        let timeout_ms = kernel.limits().timeout_ms;
        Self { tasks: desks.iter().map(supervise).collect(), desks, stop, timeout_ms }
    }

    /// Waits until each server has come up or failed to; each has its own time limit for that.
    pub async fn started(&self) {
        for desk in &self.desks {
            desk.tried().await;
        }
    }

    /// The actions with which faces ask how the servers are, and with which owners accept what has changed. Models do not see
    /// them: a tool must not let itself out of quarantine.
    pub fn actions(&self) -> Result<Vec<Action>, schema::Error> {
        let mut actions = vec![
            list_servers::action(self.desks.clone())?,
            list_quarantined::action("tools.quarantined")?.hidden(),
            accept_tool::action("tools.accept")?.hidden(),
        ];
        actions.extend(proxy::actions(&Upstreams::new(&self.desks), self.timeout_ms)?);
        Ok(actions)
    }

    /// How the servers are.
    pub fn seen(&self) -> Vec<Seen> {
        self.desks.iter().map(|desk| desk.seen()).collect()
    }

    /// Ends all servers and waits for it. Takes no longer than `limits::END_MS`.
    pub async fn stop(mut self) {
        self.stop.cancel();
        for task in std::mem::take(&mut self.tasks) {
            // A supervisor that panicked has dropped its server, which ends it too.
            let _ = task.await;
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.stop.cancel();
    }
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
