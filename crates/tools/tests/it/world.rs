//! A kernel with other servers, each a real child process.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_kernel::log::{Captured, Level};
use orchestr8_kernel::{Kernel, Log, Principal, Settled, Submission};
use orchestr8_outbound::Allowed;
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Parts, memory, submission, within};
use orchestr8_tools::remote::{
    InstanceLimits, Link, NameSources, RemoteServers, Seen, Server, Settings, TenantRights, admin_tools,
};
use orchestr8_tools::{AdminMode, all, tables};
use serde_json::Value;

/// The tools of the fixture that can be used; one more has a broken schema.
pub const TOOLS: usize = 19;

pub struct World {
    pub kernel: Kernel,
    pub remote: RemoteServers,
    pub log: Captured,
}

/// The fixture as a server named `other`.
pub fn fixture(flags: &[&str]) -> Server {
    let link = Link::Stdio {
        command: env!("CARGO_BIN_EXE_mcp-fixture").to_owned(),
        args: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        env: BTreeMap::from([("OWN".into(), "given".into())]),
        cwd: None,
    };
    Server::new("other", link)
}

pub fn store() -> Sqlite {
    memory(&[tables::MIGRATIONS])
}

impl World {
    /// With this server, once it is up or has failed to come up.
    pub async fn with(server: Server) -> Self {
        Self::on(store(), vec![server]).await
    }

    pub async fn on(store: Sqlite, servers: Vec<Server>) -> Self {
        let world = Self::starting(store, servers, |_| ()).await;
        within(world.remote.started()).await;
        world
    }

    /// The same, before any server has come up.
    pub async fn starting(store: Sqlite, servers: Vec<Server>, change: impl FnOnce(&mut Settings)) -> Self {
        let (log, mut parts) = (Captured::default(), Parts::on(Arc::new(store)));
        parts.log = Log::new(Level::Debug, log.clone(), Arc::default(), parts.clock.clone());
        let kernel = parts.kernel();
        let settings = orchestr8_tools::Settings::new("test", "1");
        let tools =
            all(&settings).unwrap().into_iter().chain(admin_tools(AdminMode::LocalStdioOnly).unwrap());
        for action in tools {
            kernel.registry().register(action).unwrap();
        }
        let mut settings = Settings {
            servers,
            base_env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into()), ("LANG".into(), "C".into())]),
            client_name: "test".into(),
            client_version: "1".into(),
            search_above: 1000,
            instances: InstanceLimits::default(),
            names: NameSources::default(),
            starts_servers: true,
            allowed: Allowed::default(),
            tenant_rights: TenantRights::default(),
        };
        change(&mut settings);
        let remote = RemoteServers::start(&kernel, settings);
        for action in remote.actions().unwrap() {
            kernel.registry().register(action).unwrap();
        }
        remote.offer_pinned().await;
        Self { kernel, remote, log }
    }

    pub fn submission(&self, action: &str, args: Value) -> Submission {
        submission(action, args)
    }

    pub async fn call(&self, action: &str, args: Value) -> Settled {
        within(self.kernel.submit(self.submission(action, args))).await
    }

    /// A call by a member of this tenant.
    pub async fn call_as(&self, tenant: &str, action: &str, args: Value) -> Settled {
        within(self.kernel.submit(self.submission_as(tenant, action, args))).await
    }

    pub fn submission_as(&self, tenant: &str, action: &str, args: Value) -> Submission {
        let mut submission = self.submission(action, args);
        let tenant = Tenant::parse(tenant).unwrap();
        submission.principal = Arc::new(Principal { tenant, ..Principal::clone(&submission.principal) });
        submission
    }

    /// The instance of a tenant, if there is one.
    pub fn seen_of(&self, server: &str, tenant: &str) -> Option<Seen> {
        let is_it = |seen: &Seen| seen.server == server && seen.tenant.as_str() == tenant;
        self.remote.seen().into_iter().find(is_it)
    }

    pub fn seen(&self) -> Seen {
        self.remote.seen().into_iter().next().unwrap()
    }

    pub fn listed(&self) -> Vec<String> {
        let table = self.kernel.registry().table();
        table
            .tools()
            .map(|action| action.name.to_string())
            .filter(|name| name.starts_with("other."))
            .collect()
    }
}

pub fn is_alive(pid: u32) -> bool {
    // A process that has ended and was not reaped is still listed, as a zombie.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

pub fn was_reaped(pid: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}
