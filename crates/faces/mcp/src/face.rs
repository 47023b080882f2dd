//! The MCP face as its transports see it: connections take messages and give replies; outlets carry what else is said.

use std::sync::Arc;

use orchestr8_contract::limits;
use orchestr8_kernel::action::{Action, Shown};
use orchestr8_kernel::registry::{QUARANTINED, ToolFilter};
use orchestr8_kernel::submission::Scope;
use orchestr8_kernel::tool_limit::ToolLimit;
use orchestr8_kernel::{Kernel, Principal, Transport};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::audience::Audience;
use crate::connection::{Connection, Saved};
use crate::governed;
use crate::http;
use crate::results;
use crate::seal::Seal;
use crate::tasks::Tasks;

/// The way to the client outside any reply (stdio: stdout; HTTP: an event stream; tests: a list).
pub trait Outlet: Send + Sync + 'static {
    /// False: the client is gone or its queue is full, and the text was dropped.
    fn send(&self, text: String) -> bool;

    /// Ends this stream so that the client comes back for the rest; does nothing where there is no stream.
    fn close(&self) {}
}

/// An outlet to nobody.
pub struct Nowhere;

impl Outlet for Nowhere {
    fn send(&self, _: String) -> bool {
        false
    }
}

/// Which eras of the protocol are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eras {
    pub legacy: bool,
    pub modern: bool,
}

/// What an installation sets for this face.
#[derive(Clone)]
pub struct Settings {
    pub server_name: String,
    pub server_version: String,
    pub instructions: Option<String>,
    pub eras: Eras,
    /// Items on one page of a list.
    pub page_size: usize,
    pub tool_filter: ToolFilter,
    /// Seals what clients keep for us: request states and list cursors, and the session ids of HTTP.
    pub secret: [u8; 32],
    /// A longer message is not kept. Over HTTP the edge has the same limit.
    pub message_bytes: usize,
    /// A longer result is kept here and handed out in pages.
    pub max_result_bytes: usize,
    /// How long the outcome of a keyed call answers repeats.
    pub key_ttl_ms: u64,
    /// How long a client may take to answer a question.
    pub ask_timeout_ms: u64,
    /// How long a client may keep what a list or a resource said (modern era).
    pub cache_ttl_ms: u64,
    /// Whether a failed call tells its stack (ERR-9).
    pub debug_stack: bool,
}

impl Settings {
    /// The defaults, with a secret nobody else has.
    pub fn new(server_name: &str, server_version: &str, secret: [u8; 32]) -> Self {
        Self {
            server_name: server_name.to_owned(),
            server_version: server_version.to_owned(),
            instructions: None,
            eras: Eras { legacy: true, modern: true },
            page_size: 100,
            tool_filter: ToolFilter::default(),
            secret,
            message_bytes: http::BODY_LIMIT_BYTES,
            max_result_bytes: 131_072,
            key_ttl_ms: limits::KEY_TTL_MS,
            ask_timeout_ms: limits::TIMEOUT_MS,
            cache_ttl_ms: 0,
            debug_stack: false,
        }
    }
}

/// What all connections share.
struct Shared {
    kernel: Kernel,
    settings: Settings,
    /// Our name and version as JSON text.
    server: String,
    seal: Seal,
    tasks: Tasks,
    audience: Arc<Audience>,
    ending: CancellationToken,
    id_scope: Scope,
    /// What the tool filter lets through, for the work of clients.
    tool_limit: Option<ToolLimit>,
}

/// The face. Clones share it.
#[derive(Clone)]
pub struct Face(Arc<Shared>);

impl Face {
    /// The resource by which long results are read is registered here, unless it is there already.
    pub fn new(kernel: Kernel, settings: Settings) -> Self {
        let registered = match kernel.registry().find(results::ACTION) {
            Some(_) => Ok(()),
            None => results::action().and_then(|action| kernel.registry().register(action)),
        };
        if let Err(error) = registered {
            kernel.log().error("long results cannot be read", || json!({"error": error.to_string()}));
        }
        let server = json!({"name": settings.server_name, "version": settings.server_version}).to_string();
        let seal = Seal::new(&settings.secret);
        let tool_limit = ToolLimit::of_setting(&settings.tool_filter.only);
        Self(Arc::new(Shared {
            tool_limit,
            kernel,
            settings,
            server,
            seal,
            tasks: Tasks::default(),
            audience: Arc::default(),
            ending: CancellationToken::new(),
            id_scope: Scope("mcp".into()),
        }))
    }

    /// A new conversation. It is STARTING; a modern message needs no more than this.
    pub fn connect(
        &self,
        who: Arc<Principal>,
        transport: Transport,
        outlet: Arc<dyn Outlet>,
    ) -> Arc<Connection> {
        Connection::open(self.clone(), who, transport, outlet)
    }

    /// A conversation that was saved before a restart. Needs a tokio runtime around it.
    pub fn restore(
        &self,
        saved: Saved,
        who: Arc<Principal>,
        transport: Transport,
        outlet: Arc<dyn Outlet>,
    ) -> Arc<Connection> {
        Connection::reopen(self.clone(), saved, who, transport, outlet)
    }

    /// The process is ending: streams of all connections come to a good end.
    pub fn wind_down(&self) {
        self.0.ending.cancel();
    }

    pub fn kernel(&self) -> &Kernel {
        &self.0.kernel
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Whether an action is listed for this client: it passes the filter for tools, and the client has a role for it.
    pub(crate) fn lists(&self, action: &Action, who: &Principal) -> bool {
        match governed::role(who) {
            Some(role) => governed::shows(role, action),
            None => action.admits(who) && self.shows(action),
        }
    }

    /// Whether it passes the filter, which is for tools only.
    pub(crate) fn shows(&self, action: &Action) -> bool {
        !matches!(action.shown, Shown::Tool) || self.is_offered(action)
    }

    /// The tool of this name, or with this alias, if it is offered. Whether the client may run it is for the kernel to say.
    pub(crate) fn tool(&self, name: &str, who: &Principal) -> Option<Arc<Action>> {
        if governed::role(who).is_some() {
            return self
                .kernel()
                .registry()
                .find(&governed::full(name))
                .filter(|found| governed::is_tool(found));
        }
        let found = self.kernel().registry().find_for(&who.tenant, name);
        // One that is in quarantine is not offered, and says why when it is called.
        found.filter(|action| self.is_offered(action) || self.is_quarantined(action))
    }

    fn is_quarantined(&self, action: &Action) -> bool {
        action.about.meta.contains_key(QUARANTINED) && self.settings().tool_filter.shows(action.name.as_str())
    }

    /// The principal that the work of a request has. What the filter hides from a client is not for its workflows and sessions either.
    pub(crate) fn limited(&self, who: &Arc<Principal>) -> Arc<Principal> {
        match &self.0.tool_limit {
            None => who.clone(),
            Some(limit) => Arc::new(Principal::clone(who).limited(Some(limit))),
        }
    }

    fn is_offered(&self, action: &Action) -> bool {
        matches!(action.shown, Shown::Tool) && self.settings().tool_filter.shows(action.name.as_str())
    }

    pub(crate) fn server(&self) -> &str {
        &self.0.server
    }

    pub(crate) fn seal(&self) -> &Seal {
        &self.0.seal
    }

    pub(crate) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }

    pub(crate) fn audience(&self) -> &Arc<Audience> {
        &self.0.audience
    }

    /// Where submissions of this face have their ids, were they to have any.
    pub(crate) fn id_scope(&self) -> &Scope {
        &self.0.id_scope
    }

    pub(crate) fn ending(&self) -> &CancellationToken {
        &self.0.ending
    }
}
