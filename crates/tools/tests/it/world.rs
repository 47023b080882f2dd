//! A kernel with other servers, each a real child process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::log::{Captured, Level};
use orchestr8_kernel::ports::{clock, ids, random};
use orchestr8_kernel::{Args, Halt, Kernel, Limits, Log, Ports, Principal, Settled, Submission, Transport};
use orchestr8_stores::sqlite::{self, Options, Place};
use orchestr8_stores::{Migration, Sqlite};
use orchestr8_tools::remote::{Link, Remote, Seen, Server, Settings, admin_tools};
use orchestr8_tools::{AdminMode, all, tables};
use serde_json::Value;

/// Nothing here takes this long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The tools of the fixture that can be used; one more has a broken schema.
pub const TOOLS: usize = 16;

pub struct World {
    pub kernel: Kernel,
    pub remote: Remote,
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
    let lists = [orchestr8_kernel::tables::MIGRATIONS, tables::MIGRATIONS].concat();
    let migrations = lists.into_iter().map(|(name, sql)| Migration { name, sql }).collect();
    sqlite::open(Options::new(Place::Memory, migrations)).unwrap()
}

impl World {
    /// With this server, once it is up or has failed to come up.
    pub async fn with(server: Server) -> Self {
        Self::on(store(), vec![server]).await
    }

    pub async fn on(store: Sqlite, servers: Vec<Server>) -> Self {
        let (clock, log) = (Arc::new(clock::Real::new()), Captured::default());
        let ports = Ports {
            clock: clock.clone(),
            ids: Arc::new(ids::Random),
            random: Arc::new(random::Seeded::new(1)),
            store: Arc::new(store),
            log: Log::new(Level::Debug, log.clone(), Arc::default(), clock.clone()),
            redactor: Arc::default(),
        };
        let bus = Bus::new(&Config::default(), clock, Log::off());
        let kernel = Kernel::new(ports, Limits::default(), bus);
        let settings = orchestr8_tools::Settings::new("test", "1");
        let tools =
            all(&settings).unwrap().into_iter().chain(admin_tools(AdminMode::LocalStdioOnly).unwrap());
        for action in tools {
            kernel.registry().register(action).unwrap();
        }
        let settings = Settings {
            servers,
            base_env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into()), ("LANG".into(), "C".into())]),
            client_name: "test".into(),
            client_version: "1".into(),
            search_above: 1000,
        };
        let remote = Remote::start(&kernel, settings);
        within(remote.started()).await;
        Self { kernel, remote, log }
    }

    pub fn submission(&self, action: &str, args: Value) -> Submission {
        let Value::Object(map) = args else { panic!("arguments are an object") };
        let correlation = CorrelationId::parse("test").unwrap();
        let mut submission =
            Submission::new(action, Args::new(map), Arc::new(Principal::local()), correlation);
        submission.transport = Transport::Stdio;
        submission
    }

    pub async fn call(&self, action: &str, args: Value) -> Settled {
        within(self.kernel.submit(self.submission(action, args))).await
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

/// Waits for a condition of another process, which nobody tells us of.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it takes too long")
}

pub fn is_alive(pid: u32) -> bool {
    // A process that has ended and was not reaped is still listed, as a zombie.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

pub fn was_reaped(pid: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

pub fn text(settled: Settled) -> String {
    match settled.result {
        Ok(Output::Blocks { blocks, .. }) => {
            let value = serde_json::to_value(blocks).unwrap();
            value[0]["text"].as_str().unwrap_or_else(|| panic!("no text in {value}")).to_owned()
        }
        other => panic!("expected blocks, found {other:?}"),
    }
}

pub fn json(settled: Settled) -> Value {
    match settled.result {
        Ok(Output::Json { value }) => value,
        other => panic!("expected JSON, found {other:?}"),
    }
}

pub fn fault(settled: Settled) -> Fault {
    match settled.result {
        Err(Halt::Fault(fault)) => fault,
        other => panic!("expected a fault, found {other:?}"),
    }
}
