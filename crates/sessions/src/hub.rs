//! All sessions of this process, and what they share.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::action::{Action, Shown};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::registry::ToolFilter;
use orchestr8_kernel::tool_limit::ToolLimit;
use orchestr8_kernel::{Kernel, Principal};
use orchestr8_models::{About, Catalog, Model};
use orchestr8_process::sandbox::{Sandbox, SealedPath};
use orchestr8_process::tenant_folder;
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::access::SessionAccess;
use crate::limits;
use crate::record::Header;
use crate::recover::Recovery;
use crate::roots::SessionRoots;
use crate::session::{Session, Slot};

/// What an installation says about its sessions.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many one tenant may have.
    pub sessions: usize,
    /// Where a session works that was not told where.
    pub cwd: PathBuf,
    /// Session files are read from here and written to here.
    pub folder: PathBuf,
    /// What the model is told before everything else.
    pub system_prompt: Option<String>,
    /// Whether the shell may be used.
    pub bash: bool,
    /// The environment of its commands, beside `TERM`; nothing else is passed on.
    pub bash_env: Vec<(String, String)>,
    /// What commands of the shell run in. None: they do not run.
    pub sandbox: Option<Sandbox>,
    /// What commands can read and not change in their folder.
    pub sealed: Vec<SealedPath>,
    /// Where sessions may work, and where they never may.
    pub roots: SessionRoots,
    /// Tools that sessions may use, of those that the caller may.
    pub tools: ToolFilter,
    pub long_ms: u64,
    pub short_ms: u64,
    /// Attempts after the first when a model is not reachable, and the longest first wait.
    pub retries: u32,
    pub retry_base_ms: u64,
}

impl Settings {
    /// Where sessions of a tenant work unless they say where: the folder of the settings, or the first one that the tenant may use.
    pub fn cwd_of(&self, tenant: &Tenant) -> PathBuf {
        if let Some(own) = tenant_folder::of_tenant(&self.cwd, tenant.as_str()) {
            return own;
        }
        match self.roots.sharing.admits(tenant) {
            true => self.cwd.clone(),
            false => self.roots.of_tenant(tenant).open.into_iter().next().unwrap_or_else(|| self.cwd.clone()),
        }
    }

    /// Sessions may work in this folder and those beneath it.
    pub fn new(cwd: PathBuf, folder: PathBuf) -> Self {
        let roots = SessionRoots { open: vec![cwd.clone()], ..SessionRoots::default() };
        Self {
            sessions: limits::SESSIONS,
            cwd,
            folder,
            system_prompt: None,
            bash: false,
            bash_env: Vec::new(),
            sandbox: None,
            sealed: Vec::new(),
            roots,
            tools: ToolFilter::default(),
            long_ms: limits::LONG_MS,
            short_ms: limits::SHORT_MS,
            retries: limits::RETRIES,
            retry_base_ms: limits::RETRY_BASE_MS,
        }
    }
}

/// Tools through which sessions are used; a session that used them on itself would never end.
pub const OWN_TOOLS: [&str; 3] = ["start_session", "prompt_session", "get_session"];

/// A handle to all sessions. Clones share them.
#[derive(Clone)]
pub struct Hub(Arc<Shared>);

struct Shared {
    kernel: Kernel,
    catalog: Catalog,
    settings: Settings,
    sessions: RwLock<HashMap<Tenant, Tenants>>,
    recovery: RwLock<Recovery>,
}

/// The sessions of one tenant, and how many more are about to be.
#[derive(Default)]
struct Tenants {
    sessions: BTreeMap<Arc<str>, Arc<Session>>,
    coming: usize,
}

/// Room for one more session, until it is there or this is dropped.
pub struct Room {
    hub: Hub,
    tenant: Tenant,
}

impl Hub {
    pub fn new(kernel: Kernel, catalog: Catalog, settings: Settings) -> Self {
        Self(Arc::new(Shared {
            kernel,
            catalog,
            settings,
            sessions: RwLock::default(),
            recovery: RwLock::default(),
        }))
    }

    pub fn kernel(&self) -> &Kernel {
        &self.0.kernel
    }

    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub fn now_ms(&self) -> i64 {
        self.0.kernel.ports().clock.now_ms()
    }

    pub fn recovery(&self) -> Recovery {
        self.0.recovery.read().clone()
    }

    pub(crate) fn recovered(&self, recovery: Recovery) {
        *self.0.recovery.write() = recovery;
    }

    pub(crate) fn find(&self, tenant: &Tenant, id: &str) -> Result<Arc<Session>, Fault> {
        let sessions = self.0.sessions.read();
        let found = sessions.get(tenant).and_then(|tenants| tenants.sessions.get(id));
        found.cloned().ok_or_else(|| not_found(id))
    }

    /// The session, if the principal may use it this way. One that it may not even read is as unknown as one that never was.
    pub fn open(
        &self,
        principal: &Principal,
        id: &str,
        access: SessionAccess,
    ) -> Result<Arc<Session>, Fault> {
        let session = self.find(&principal.tenant, id)?;
        let admits = |access| session.with_header(|header| header.admits(principal, access));
        match (admits(access), admits(SessionAccess::Read)) {
            (true, _) => Ok(session),
            (false, true) => Err(Fault::new(
                Code::Unauthorized,
                format!("the session '{id}' is shared with you for reading only"),
            )
            .with("sessionId", id)),
            (false, false) => Err(not_found(id)),
        }
    }

    /// The sessions that a principal may read, in order of id.
    pub fn visible_to(&self, principal: &Principal) -> Vec<Arc<Session>> {
        let mut all = self.all(&principal.tenant);
        all.retain(|session| session.with_header(|header| header.admits(principal, SessionAccess::Read)));
        all
    }

    /// The sessions of a tenant in order of id.
    fn all(&self, tenant: &Tenant) -> Vec<Arc<Session>> {
        let sessions = self.0.sessions.read();
        sessions.get(tenant).map(|tenants| tenants.sessions.values().cloned().collect()).unwrap_or_default()
    }

    /// How many there are, of all tenants.
    pub fn count(&self) -> usize {
        self.0.sessions.read().values().map(|tenants| tenants.sessions.len()).sum()
    }

    /// Stops what sessions run outside of this process, so that nothing of it is left behind.
    pub async fn close(&self) {
        let sessions: Vec<Arc<Session>> = {
            let sessions = self.0.sessions.read();
            sessions.values().flat_map(|tenants| tenants.sessions.values().cloned()).collect()
        };
        join_all(sessions.iter().map(|session| session.doing.stop(Slot::Bash))).await;
    }

    /// Room for a session of this id, if there may be one.
    pub fn room(&self, tenant: &Tenant, id: &str) -> Result<Room, Fault> {
        let max = self.0.settings.sessions;
        let mut sessions = self.0.sessions.write();
        let tenants = sessions.entry(tenant.clone()).or_default();
        if tenants.sessions.contains_key(id) {
            return Err(
                Fault::new(Code::StateConflict, format!("Session {id} already exists")).with("sessionId", id)
            );
        }
        if tenants.sessions.len() + tenants.coming >= max {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("Session limit reached ({max} sessions)"),
            ));
        }
        tenants.coming += 1;
        Ok(Room { hub: self.clone(), tenant: tenant.clone() })
    }

    pub(crate) fn put(&self, session: Arc<Session>) {
        let mut sessions = self.0.sessions.write();
        let tenants = sessions.entry(session.tenant.clone()).or_default();
        tenants.sessions.insert(session.id.clone(), session);
    }

    pub(crate) fn remove(&self, session: &Session) {
        if let Some(tenants) = self.0.sessions.write().get_mut(&session.tenant) {
            tenants.sessions.remove(&session.id);
        }
    }

    /// The model a session uses.
    pub fn model(&self, header: &Header) -> Result<Arc<dyn Model>, Fault> {
        self.model_named(&header.provider, &header.model)
    }

    pub fn model_named(&self, provider: &str, id: &str) -> Result<Arc<dyn Model>, Fault> {
        self.0
            .catalog
            .find(provider, id)
            .ok_or_else(|| Fault::new(Code::NotFound, format!("Model not found: {provider}/{id}")))
    }

    /// The model that `provider` and `modelId` name together; without both, the one that conversations begin with.
    pub fn model_asked(&self, provider: Option<&str>, id: Option<&str>) -> Result<Arc<dyn Model>, Fault> {
        match (provider, id) {
            (Some(provider), Some(id)) => self.model_named(provider, id),
            (None, None) => Ok(self.0.catalog.default()),
            (Some(_), None) | (None, Some(_)) => {
                Err(Fault::invalid("provider and modelId: give both or none").with("path", "/modelId"))
            }
        }
    }

    /// Whether the model of a session may use a tool on behalf of this caller.
    pub fn may_use(&self, session: &Session, principal: &Principal, tool: &Action) -> bool {
        let name = tool.name.as_str();
        let of_session = session.with_header(|header| {
            header.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == name))
        });
        of_session
            && matches!(tool.shown, Shown::Tool)
            && !OWN_TOOLS.contains(&name)
            && self.0.settings.tools.shows(name)
            && principal.tools.as_ref().is_none_or(|tools| tools.allows(name))
            && tool.admits(principal)
    }

    /// The tools that a session is limited to, by the settings or by its creator.
    pub fn tool_limit(&self, session: &Session) -> Option<ToolLimit> {
        let of_settings = ToolLimit::of_setting(&self.0.settings.tools.only);
        let of_session = session.with_header(|header| header.tools.as_deref().map(ToolLimit::new));
        ToolLimit::all_of([of_settings.as_ref(), of_session.as_ref()])
    }

    /// What clients are told of a session.
    pub fn info(&self, session: &Session) -> Value {
        let (mut info, provider, model) = session.with_header(|header| {
            let info = json!({
                "sessionId": &*session.id,
                "thinkingLevel": header.thinking,
                "isStreaming": session.doing.is(Slot::Turn),
                "messageCount": header.messages,
                "createdAt": iso(session.created_ms),
                "cwd": header.cwd,
                "sessionName": header.name,
                "parentSession": header.parent,
                "sessionFile": header.file,
                "owner": header.owner.as_deref().filter(|owner| *owner != "local"),
            });
            (info, header.provider.clone(), header.model.clone())
        });
        if let Some(known) = self.0.catalog.find(&provider, &model) {
            info["model"] = model_info(known.about());
        }
        if let Value::Object(members) = &mut info {
            members.retain(|_, value| !value.is_null());
        }
        info
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(tenants) = self.hub.0.sessions.write().get_mut(&self.tenant) {
            tenants.coming = tenants.coming.saturating_sub(1);
        }
    }
}

/// What clients are told of a model.
pub fn model_info(about: &About) -> Value {
    let input: &[&str] = if about.images { &["text", "image"] } else { &["text"] };
    json!({
        "id": about.id, "name": about.name, "provider": about.provider, "reasoning": about.thinking, "input": input,
        "contextWindow": about.context_window, "maxTokens": about.max_output, "cost": about.price,
    })
}

pub fn not_found(id: &str) -> Fault {
    Fault::new(Code::NotFound, format!("Session {id} not found")).with("sessionId", id)
}
