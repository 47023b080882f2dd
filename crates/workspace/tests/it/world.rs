//! A workspace, a kernel that serves it, and connections to it.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::envelope::Role;
use orchestr8_contract::{Envelope, Fault, Output};
use orchestr8_kernel::action::Halt;
use orchestr8_kernel::peer::{About, Answered, Ask, Peer, Severity};
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::{Kernel, Principal};
use orchestr8_process::sandbox::{Sandbox, SandboxMode, SandboxSettings};
use orchestr8_testing::{Parts, memory, submission};
use orchestr8_workspace::plan::{Head, Status, hash_of, with_head};
use orchestr8_workspace::{Hub, ServerSigningKey, Settings, all};
use serde_json::{Value, json};

pub const GOOD: &str = include_str!("../../src/plan/good.md");

pub struct World {
    folder: Arc<tempfile::TempDir>,
    store: Arc<dyn Store>,
    kernel: Kernel,
}

/// One connection: what its calls have in common.
pub struct Connection<'a> {
    world: &'a World,
    name: Arc<str>,
    role: Role,
}

struct Client(Arc<str>);

impl Peer for Client {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: Severity, _: Option<&str>, _: Value) {}

    fn can(&self, _: About) -> bool {
        false
    }

    fn ask(&self, _: Ask) -> BoxFuture<'_, Result<Answered, Fault>> {
        Box::pin(std::future::ready(Ok(Answered::Later)))
    }

    fn conversation(&self) -> Option<Arc<str>> {
        Some(self.0.clone())
    }
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let store = Arc::new(memory(&[orchestr8_workspace::tables::MIGRATIONS]));
        Self::on(folder, store, change)
    }

    /// Another process on the same workspace and the same data.
    pub fn other_process(&self) -> Self {
        Self::on(self.folder.clone(), self.store.clone(), |_| {})
    }

    fn on(folder: Arc<tempfile::TempDir>, store: Arc<dyn Store>, change: impl FnOnce(&mut Settings)) -> Self {
        let kernel = Parts::on(store.clone()).kernel();
        let mut settings = Settings::new(ServerSigningKey::of([7; 32]));
        settings.roots.named.push(folder.path().to_owned());
        settings.base_env.insert("PATH".into(), "/usr/bin:/bin".into());
        let off = SandboxSettings { mode: SandboxMode::Off, ..SandboxSettings::default() };
        settings.sandbox = Some(Sandbox::new(off, kernel.ports().clock.clone()));
        change(&mut settings);
        let hub = Hub::new(kernel.ports().clone(), settings);
        for action in all(&hub).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        Self { folder, store, kernel }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), text).unwrap();
    }

    /// A plan in the folder that a person has approved.
    pub fn plant(&self, text: &str) -> String {
        let hash = hash_of(text);
        let head = Head { hash: hash.clone(), role: Role::Planner, status: Status::Draft };
        self.write(&format!("docs/plans/{hash}.md"), &with_head(text, &head));
        let args = json!({"id": hash, "workspace": self.folder.path(), "decision": "approve"});
        let decided = self.kernel.submit(submission("plans.decide", args));
        // In a runtime of its own, so that tests need not wait for it.
        std::thread::scope(|scope| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let settled = scope.spawn(move || runtime.block_on(decided)).join().unwrap();
            assert!(settled.result.is_ok(), "{:?}", settled.result.err());
        });
        hash
    }

    pub async fn connect(&self, name: &str, role: Role) -> Connection<'_> {
        let connection = Connection { world: self, name: name.into(), role };
        let root = self.folder.path().to_str().unwrap();
        connection.call("begin_session", json!({"workspace_root": root})).await.unwrap();
        connection
    }

    /// What governed calls left in the trail.
    pub fn entries(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("audit-log.jsonl")).unwrap();
        let all = text.lines().map(|line| serde_json::from_str(line).unwrap());
        all.filter(|entry: &Value| entry["tool_name"] != "plans.decide").collect()
    }
}

impl Connection<'_> {
    pub async fn call(&self, tool: &str, args: Value) -> Result<Value, Box<Envelope>> {
        let mut call = submission(&format!("workspace.{tool}"), args);
        let mut who = Principal { name: self.name.clone(), ..Principal::local() };
        who.roles = who.roles.with(self.role.access());
        call.principal = Arc::new(who);
        call.peer = Some(Arc::new(Client(self.name.clone())));
        match self.world.kernel.submit(call).await.result {
            Ok(Output::Json { value }) => Ok(value),
            Err(Halt::Fault(fault)) => Err(fault.envelope.expect("a canonical error")),
            other => panic!("{other:?}"),
        }
    }
}
