//! The registry of other servers and of their instances.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Action, Kernel, schema};
use parking_lot::RwLock;
use serde_json::json;

use super::desk::{InstanceUse, Seen};
use super::served_server::{ServedServer, ServerKey};
use super::supervise::Surroundings;
use super::{Server, Settings, accept_tool, catalogue, list_quarantined, list_servers};

/// All other servers. Dropped, it ends them; `stop` also waits for their end.
pub struct RemoteServers(Arc<ServerRegistry>);

/// What faces and actions use of it.
pub struct ServerRegistry {
    around: Arc<Surroundings>,
    table: RwLock<BTreeMap<ServerKey, Arc<ServedServer>>>,
}

impl RemoteServers {
    /// Starts the instances that run as long as the program, all at the same time, and returns at once. Needs a tokio runtime around
    /// it.
    pub fn start(kernel: &Kernel, settings: Settings) -> Self {
        let around = Arc::new(Surroundings::new(kernel.clone(), &settings));
        let registry = ServerRegistry { around, table: RwLock::default() };
        for server in settings.servers.into_iter().filter(|server| !server.disabled) {
            let served = registry.insert(server, None);
            registry.start_permanent(&served);
        }
        Self(Arc::new(registry))
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
        Ok(vec![
            list_servers::action(&self.0)?,
            list_quarantined::action("tools.quarantined")?.hidden(),
            accept_tool::action("tools.accept")?.hidden(),
        ])
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
        self.around.instance(served, tenant)
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
        if served.is_permanent(&home) {
            // There is no limit for these, and nothing else to fail.
            drop(self.around.instance(served, &home));
        }
    }
}
