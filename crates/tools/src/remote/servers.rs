//! The registry of other servers and of their instances.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Action, Kernel, schema};
use parking_lot::RwLock;
use reqwest::Url;
use serde_json::json;
use tokio::sync::OnceCell;

use super::desk::{Desk, InstanceUse, Seen};
use super::entry::ServerEntry;
use super::manage::TenantRights;
use super::served_server::{ServedServer, ServerKey};
use super::stored_servers::{self, StoredServer};
use super::supervise::Surroundings;
use super::{
    Server, Settings, accept_tool, catalogue, limits, list_quarantined, list_servers, manage, proxy,
};

/// All other servers. Dropped, it ends them; `stop` also waits for their end.
pub struct RemoteServers(Arc<ServerRegistry>);

/// What faces and actions use of it.
pub struct ServerRegistry {
    around: Arc<Surroundings>,
    pub(super) rights: TenantRights,
    /// Whether servers are started at all: not by a command that only looks at records.
    is_starting: bool,
    loaded: OnceCell<()>,
    table: RwLock<BTreeMap<ServerKey, Arc<ServedServer>>>,
}

impl RemoteServers {
    /// Starts the instances that run as long as the program, all at the same time, and returns at once. Needs a tokio runtime around
    /// it.
    pub fn start(kernel: &Kernel, settings: Settings) -> Self {
        let around = Arc::new(Surroundings::new(kernel.clone(), &settings));
        let (rights, is_starting) = (settings.tenant_rights, settings.starts_servers);
        let registry =
            ServerRegistry { around, rights, is_starting, loaded: OnceCell::new(), table: RwLock::default() };
        for server in settings.servers.into_iter().filter(|server| !server.disabled) {
            let served = registry.insert(server, None);
            registry.start_permanent(&served);
        }
        Self(Arc::new(registry))
    }

    /// Takes up the servers that were added at run time, once. What they are is checked with the key of row seals, so that comes first.
    pub async fn load(&self) -> Result<(), Fault> {
        self.0.loaded.get_or_try_init(|| self.read_stored()).await.map(|_| ())
    }

    async fn read_stored(&self) -> Result<(), Fault> {
        for stored in stored_servers::load(&self.0.around.kernel).await? {
            if self.0.is_of_settings(&stored.name) {
                let fields = json!({"server": stored.name, "tenant": stored.tenant});
                let log = self.0.around.kernel.log();
                log.warn("an added MCP server is not used, because the settings name another one so", fields);
                continue;
            }
            let served = self.0.insert_stored(stored);
            self.0.start_permanent(&served);
        }
        Ok(())
    }

    /// Offers the tools of all servers as they were last accepted, before their servers have started.
    pub async fn offer_pinned(&self) {
        for served in self.0.all() {
            if let Err(error) = catalogue::offer_pinned(&self.0.around, &served).await {
                let fields = json!({"server": served.server.name, "error": error.to_string()});
                self.0
                    .around
                    .kernel
                    .log()
                    .warn("the accepted tools of an MCP server cannot be offered", fields);
            }
        }
    }

    /// Waits until each server that is started with the program has come up or failed to; each has its own time limit for that.
    pub async fn started(&self) {
        for served in self.0.all() {
            for desk in self.0.around.pool.instances_of(&served) {
                desk.tried().await;
            }
        }
    }

    /// The actions with which faces ask how the servers are, and with which owners accept what has changed. Models do not see
    /// them: a tool must not let itself out of quarantine.
    pub fn actions(&self) -> Result<Vec<Action>, schema::Error> {
        let mut actions = vec![
            list_servers::action(&self.0)?,
            list_quarantined::action("tools.quarantined")?.hidden(),
            accept_tool::action("tools.accept")?.hidden(),
        ];
        actions.extend(manage::all(&self.0)?);
        actions.extend(proxy::actions(&self.0)?);
        Ok(actions)
    }

    pub fn registry(&self) -> &Arc<ServerRegistry> {
        &self.0
    }

    /// How the instances are.
    pub fn seen(&self) -> Vec<Seen> {
        let all = self.0.all().into_iter();
        all.flat_map(|served| self.0.around.pool.instances_of(&served)).map(|desk| desk.seen()).collect()
    }

    /// Ends all servers and waits for it. Takes no longer than `limits::END_MS`.
    pub async fn stop(self) {
        let around = self.0.around.clone();
        around.stop.cancel();
        around.tasks.close();
        // A supervisor that panicked has dropped its server, which ends it too.
        around.tasks.wait().await;
    }
}

impl Drop for RemoteServers {
    fn drop(&mut self) {
        self.0.around.stop.cancel();
    }
}

impl ServerRegistry {
    /// The servers whose tools a tenant sees, in order of name.
    pub fn visible(&self, tenant: &Tenant) -> Vec<Arc<ServedServer>> {
        let table = self.table.read();
        let mut visible: Vec<Arc<ServedServer>> =
            table.values().filter(|served| served.is_for(tenant)).cloned().collect();
        visible.sort_by(|a, b| a.server.name.cmp(&b.server.name));
        visible
    }

    /// A server by its name, of the settings or of this tenant.
    pub fn find(&self, tenant: &Tenant, name: &str) -> Result<Arc<ServedServer>, Fault> {
        let found = self.visible(tenant).into_iter().find(|served| served.server.name == name);
        found.ok_or_else(|| {
            Fault::new(Code::NotFound, format!("there is no MCP server named '{name}'")).with("server", name)
        })
    }

    /// The instance of a server that serves a tenant, in use until the answer is dropped. One that does not run is started.
    pub fn instance(&self, served: &Arc<ServedServer>, tenant: &Tenant) -> Result<InstanceUse, Fault> {
        self.check_start(served)?;
        self.around.instance(served, tenant)
    }

    pub(super) fn check_start(&self, served: &ServedServer) -> Result<(), Fault> {
        match self.is_starting {
            true => Ok(()),
            false => {
                let what = format!(
                    "the MCP server '{}' is not started by this command; start orchestr8 serve",
                    served.server.name
                );
                Err(Fault::new(Code::Unavailable, what))
            }
        }
    }

    /// Whether a tenant may add this server.
    pub(super) fn check_addition(
        &self,
        tenant: &Tenant,
        name: &str,
        entry: &ServerEntry,
    ) -> Result<(), Fault> {
        let table = self.table.read();
        if table.values().any(|served| served.server.name == name && served.is_for(tenant)) {
            let what = format!(
                "there is an MCP server named '{name}' already; remove it first, or choose another name"
            );
            return Err(Fault::new(Code::StateConflict, what).with("server", name));
        }
        let added = table.keys().filter_map(|key| key.owner.as_ref());
        let (all, own) =
            added.fold((0, 0), |(all, own), owner| (all + 1, own + usize::from(owner == tenant)));
        drop(table);
        if own >= limits::ADDED_PER_TENANT || all >= limits::ADDED {
            let what = format!(
                "a tenant adds at most {} MCP servers, and all tenants {}",
                limits::ADDED_PER_TENANT,
                limits::ADDED
            );
            return Err(Fault::new(Code::ResourceExhausted, what));
        }
        match (self.around.guard_for(Some(tenant)), entry.url.as_deref().map(Url::parse)) {
            (Some(guard), Some(Ok(url))) => guard.check_url(&url),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Takes up a server that was added, and starts it to learn its tools.
    pub(super) fn add(&self, stored: StoredServer) {
        let served = self.insert_stored(stored);
        if self.is_starting {
            // At the limit of instances it is started by its first call.
            drop(self.around.instance(&served, &served.home()));
        }
    }

    pub(super) fn remove(&self, served: &Arc<ServedServer>) {
        self.table.write().remove(&served.key);
        self.around.pool.remove(served);
        if let Err(error) = catalogue::withdraw(&self.around, served) {
            let fields = json!({"server": served.server.name, "error": error.to_string()});
            self.around.kernel.log().warn("the tools of a removed MCP server are still listed", fields);
        }
    }

    /// Restarts the instance of a tenant, or all of them. One that does not run is started.
    pub(super) fn restart(&self, served: &Arc<ServedServer>, tenant: &Tenant, is_everywhere: bool) {
        for desk in self.around.pool.instances_of(served) {
            let is_own = desk.tenant == served.instance_tenant(tenant);
            if desk.is_live() && (is_everywhere || is_own) {
                desk.request_restart();
            }
        }
        if !self.around.pool.find(served, tenant).is_some_and(|desk| desk.is_live()) {
            drop(self.around.instance(served, tenant));
        }
    }

    /// What the instance that serves a tenant wrote to stderr last.
    pub(super) fn stderr_lines(&self, served: &ServedServer, tenant: &Tenant) -> Vec<String> {
        let desk = self.around.pool.find(served, tenant);
        desk.map(|desk| desk.stderr.lines()).unwrap_or_default()
    }

    /// All instances of a server, for those who administer the machine.
    pub(super) fn seen_everywhere(&self, served: &ServedServer) -> Vec<Seen> {
        self.around.pool.instances_of(served).iter().map(|desk| desk.seen()).collect()
    }

    fn is_of_settings(&self, name: &str) -> bool {
        self.table.read().contains_key(&ServerKey { owner: None, name: name.to_owned() })
    }

    fn insert_stored(&self, stored: StoredServer) -> Arc<ServedServer> {
        let server = stored.entry.server(&stored.name);
        let stop = self.around.stop.child_token();
        let mut served = ServedServer::new(server, Some(stored.tenant), stop);
        served.added = Some((stored.created_by, stored.created_ms));
        let served = Arc::new(served);
        self.table.write().insert(served.key.clone(), served.clone());
        served
    }

    /// The instance that serves a tenant, if there was one, whether it runs or not.
    pub(super) fn known_instance(&self, served: &ServedServer, tenant: &Tenant) -> Option<Arc<Desk>> {
        self.around.pool.find(served, tenant)
    }

    /// How the instance that serves a tenant is, if there is one.
    pub fn seen(&self, served: &ServedServer, tenant: &Tenant) -> Option<Seen> {
        self.around.pool.find(served, tenant).map(|desk| desk.seen())
    }

    fn all(&self) -> Vec<Arc<ServedServer>> {
        self.table.read().values().cloned().collect()
    }

    fn insert(&self, server: Server, owner: Option<Tenant>) -> Arc<ServedServer> {
        let served = Arc::new(ServedServer::new(server, owner, self.around.stop.child_token()));
        self.table.write().insert(served.key.clone(), served.clone());
        served
    }

    /// Starts the instance that runs as long as the program, if there is to be one.
    fn start_permanent(&self, served: &Arc<ServedServer>) {
        let home = served.home();
        if self.is_starting && served.is_permanent(&home) {
            // There is no limit for these, and nothing else to fail.
            drop(self.around.instance(served, &home));
        }
    }
}
