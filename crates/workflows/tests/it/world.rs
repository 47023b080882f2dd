//! A kernel, a store, the built-in agents and one that does what a test tells it to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use orchestr8_contract::id::{CorrelationId, Key};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::log::{Captured, Level};
use orchestr8_kernel::ports::{clock, ids, random};
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Args, Halt, Kernel, Limits, Log, Ports, Principal, Settled, Submission};
use orchestr8_secrets::{MemoryKey, SecretVault};
use orchestr8_stores::Migration;
use orchestr8_stores::sqlite::{self, Options, Place};
use orchestr8_testing::Holding;
use orchestr8_workflows::agents::{
    Agent, Agents, Answer, Call, Parts, Usage, WorkLocation, Workers, builtin,
};
use orchestr8_workflows::{Hub, Settings, all};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What the test agent saw and is told.
#[derive(Default)]
pub struct Desk {
    /// Every call: step and idempotency key, in order.
    pub calls: Mutex<Vec<(String, String)>>,
    /// The input of every call, in order.
    pub inputs: Mutex<Vec<Value>>,
    /// Steps that wait until they are let go.
    gates: Mutex<HashMap<String, Arc<Notify>>>,
    began: Notify,
}

impl Desk {
    /// How often a step was called.
    pub fn count(&self, step: &str) -> usize {
        self.calls.lock().iter().filter(|(called, _)| called == step).count()
    }

    pub fn gate(&self, step: &str) -> Arc<Notify> {
        self.gates.lock().entry(step.to_owned()).or_default().clone()
    }

    /// Until a step has been called so often.
    pub async fn called(&self, step: &str, times: usize) {
        loop {
            let began = self.began.notified();
            if self.count(step) >= times {
                return;
            }
            began.await;
        }
    }
}

/// `@test/agent`: `{"fail": code}` fails, `{"failTimes": n}` fails at first, `{"hold": true}` waits, `{"value": v}` gives v, `{"size": n}` gives a text,
/// `{"trace": true}` gives its trace.
pub struct TestAgent(pub Arc<Desk>);

impl Agent for TestAgent {
    fn id(&self) -> &str {
        "@test/agent"
    }

    fn about(&self) -> &str {
        "Does what a test tells it to."
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let desk = self.0.clone();
        Box::pin(async move {
            let step = call.step.to_string();
            desk.inputs.lock().push(call.input.clone());
            desk.calls.lock().push((step.clone(), call.key.to_string()));
            desk.began.notify_waiters();
            let input = &call.input;
            if input["hold"] == true {
                let gate = desk.gate(&step);
                tokio::select! {
                    () = gate.notified() => {}
                    () = call.cancel.cancelled(), if input["stubborn"] != true => {
                        return Err(Fault::new(Code::Cancelled, "stopped"));
                    }
                }
            }
            assert_ne!(input["panic"], true, "told to panic");
            let failures = input["failTimes"].as_u64().unwrap_or(0);
            if u64::try_from(desk.count(&step)).unwrap() <= failures {
                return Err(Fault::new(Code::Unavailable, "not yet"));
            }
            if let Some(code) = input["fail"].as_str() {
                let code = Code::ALL.iter().find(|known| known.as_str() == code).copied().unwrap();
                return Err(Fault::new(code, "told to fail"));
            }
            if let Some(size) = input["size"].as_u64() {
                return Ok(json!("x".repeat(usize::try_from(size).unwrap())).into());
            }
            let tokens = input["tokens"].as_u64().unwrap_or(0);
            if input["trace"] == true {
                return Ok(json!(call.trace).into());
            }
            let output = input.get("value").cloned().unwrap_or_else(|| json!({"step": step, "input": input}));
            Ok(Answer { output, usage: Usage { tokens, cost: 0.0 } })
        })
    }
}

/// `@test/remote`: the same, done elsewhere, by one that takes one call at a time.
pub struct RemoteTestAgent(pub TestAgent);

impl Agent for RemoteTestAgent {
    fn id(&self) -> &str {
        "@test/remote"
    }

    fn about(&self) -> &str {
        "Does elsewhere what a test tells it to."
    }

    fn location(&self) -> WorkLocation {
        WorkLocation::Remote { limit: 1, is_per_tenant: false }
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        self.0.call(call)
    }
}

/// `@test/pure`: computes nothing, and notes its calls.
struct PureTestAgent(Arc<Desk>);

impl Agent for PureTestAgent {
    fn id(&self) -> &str {
        "@test/pure"
    }

    fn about(&self) -> &str {
        "Computes nothing."
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        self.0.calls.lock().push((call.step.to_string(), call.key.to_string()));
        Box::pin(std::future::ready(Ok(json!(1).into())))
    }
}

pub struct World {
    pub kernel: Kernel,
    pub hub: Hub,
    pub desk: Arc<Desk>,
    /// What the kernel asks.
    pub asked: Arc<Holding>,
    /// What the log says.
    pub log: Captured,
    store: orchestr8_stores::Sqlite,
}

pub fn settings() -> Settings {
    Settings::default()
}

impl World {
    pub async fn new() -> Self {
        Self::with(Place::Memory, settings(), Arc::default()).await
    }

    pub async fn at(folder: &Path, desk: Arc<Desk>) -> Self {
        let path: PathBuf = folder.join("data.sqlite3");
        Self::with(Place::File(path), settings(), desk).await
    }

    pub async fn with(place: Place, settings: Settings, desk: Arc<Desk>) -> Self {
        Self::prepared(place, settings, desk, |_| ()).await.0
    }

    /// With something done to its store before anything is started.
    pub async fn prepared<T>(
        place: Place,
        settings: Settings,
        desk: Arc<Desk>,
        prepare: impl FnOnce(&Holding) -> T,
    ) -> (Self, T) {
        Self::built(place, settings, desk, (prepare, false)).await
    }

    /// Beside documents and messages, whose events start workflows.
    pub async fn with_neighbours(place: Place, desk: Arc<Desk>) -> Self {
        Self::built(place, settings(), desk, (|_: &Holding| (), true)).await.0
    }

    async fn built<T>(
        place: Place,
        settings: Settings,
        desk: Arc<Desk>,
        (prepare, has_neighbours): (impl FnOnce(&Holding) -> T, bool),
    ) -> (Self, T) {
        let lists = [
            orchestr8_kernel::tables::MIGRATIONS,
            orchestr8_sessions::tables::MIGRATIONS,
            orchestr8_knowledge::tables::MIGRATIONS,
            orchestr8_agents::tables::MIGRATIONS,
            orchestr8_workflows::tables::MIGRATIONS,
            orchestr8_secrets::tables::MIGRATIONS,
        ]
        .concat();
        let migrations = lists.into_iter().map(|(name, sql)| Migration { name, sql }).collect();
        let store = open(place, migrations).await;
        let asked = Holding::on(Arc::new(store.clone()));
        let done = prepare(&asked);
        let clock = Arc::new(clock::Real::new());
        let log = Captured::default();
        let ports = Ports {
            clock: clock.clone(),
            ids: Arc::new(ids::Random),
            random: Arc::new(random::Seeded::new(1)),
            store: asked.clone(),
            log: Log::new(Level::Info, log.clone(), Arc::default(), clock.clone()),
            redactor: Arc::default(),
        };
        let kernel = Kernel::new(ports, Limits::default(), Bus::new(&Config::default(), clock, Log::off()));
        let vault = SecretVault::new(kernel.ports(), Arc::new(MemoryKey::new().unwrap()), Vec::new());
        let workers = Workers::new(kernel.ports().clock.clone(), kernel.ports().ids.clone());
        let parts = Parts { kernel: kernel.clone(), workers: workers.clone() };
        let mut agents = builtin(&orchestr8_workflows::agents::Settings::default(), &parts);
        agents.push(Arc::new(TestAgent(desk.clone())));
        agents.push(Arc::new(PureTestAgent(desk.clone())));
        agents.push(Arc::new(RemoteTestAgent(TestAgent(desk.clone()))));
        let hub = Hub::new(kernel.clone(), Agents::new(agents), vault, settings);
        for action in all(&hub, &workers).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        let sessions = crate::neighbours::sessions(&kernel);
        for action in orchestr8_sessions::all(&sessions).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        sessions.start().await.unwrap();
        if has_neighbours {
            crate::neighbours::register(&kernel);
        }
        hub.start().await.unwrap();
        (Self { kernel, hub, desk, asked, log, store }, done)
    }

    /// As if the process died: nothing more is written, nothing more is heard of what ran.
    pub async fn die(self) {
        self.hub.stop();
        self.store.close().await;
        // Actions hold the hub and the hub holds the kernel: without this the file would stay locked.
        self.kernel.registry().replace(|_| true, Vec::new()).unwrap();
    }

    pub fn submission(&self, action: &str, args: Value) -> Submission {
        let Value::Object(map) = args else { panic!("arguments are an object") };
        let correlation = CorrelationId::parse("test").unwrap();
        Submission::new(action, Args::new(map), Arc::new(Principal::local()), correlation)
    }

    pub async fn settle(&self, action: &str, args: Value) -> Settled {
        self.kernel.submit(self.submission(action, args)).await
    }

    /// The answer of an action that must succeed.
    pub async fn ask(&self, action: &str, args: Value) -> Value {
        value(self.settle(action, args).await)
    }

    pub async fn refused(&self, action: &str, args: Value) -> Fault {
        match self.settle(action, args).await.result {
            Err(Halt::Fault(fault)) => fault,
            other => panic!("{action} was not refused: {other:?}"),
        }
    }

    pub async fn keyed(&self, key: &str, args: Value) -> Settled {
        let mut submission = self.submission("workflows.execute", args);
        submission.identities.push(Identity {
            scope: Scope("workflows.execute".into()),
            key: Key::parse(key).unwrap(),
            ttl_ms: 86_400_000,
        });
        self.kernel.submit(submission).await
    }

    /// Starts a workflow of these steps and gives its id.
    pub async fn start(&self, steps: Value) -> String {
        self.start_whole(flow(steps), json!({})).await
    }

    pub async fn start_whole(&self, workflow: Value, inputs: Value) -> String {
        let answer = self.ask("workflows.execute", json!({"workflow": workflow, "inputs": inputs})).await;
        answer["executionId"].as_str().unwrap().to_owned()
    }

    /// The execution once it has ended.
    pub async fn end(&self, id: &str) -> Value {
        let resource =
            self.ask("executions.get", json!({"executionId": id, "waitMs": 20_000, "until": "final"})).await;
        assert!(
            matches!(resource["status"].as_str(), Some("completed" | "failed" | "cancelled" | "compensated")),
            "it has not ended: {resource:#}"
        );
        resource
    }

    /// Starts a workflow of these steps and waits for its end.
    pub async fn run(&self, steps: Value) -> Value {
        let id = self.start(steps).await;
        self.end(&id).await
    }

    /// The execution once its status is this.
    pub async fn until(&self, id: &str, status: &str) -> Value {
        self.until_true(id, |resource| resource["status"] == status).await
    }

    pub async fn until_true(&self, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut after = 0;
        for _ in 0..200 {
            let args = json!({"executionId": id, "waitMs": 100, "until": "change", "after": after});
            let resource = self.ask("executions.get", args).await;
            if holds(&resource) {
                return resource;
            }
            after = resource["lastSequence"].as_u64().unwrap();
        }
        panic!("it never came so far: {:#}", self.ask("executions.get", json!({"executionId": id})).await);
    }

    /// All entries of the journal; their numbers have no gaps.
    pub async fn journal(&self, id: &str) -> Vec<Value> {
        let page = self.ask("executions.journal", json!({"executionId": id, "limit": 1000})).await;
        let entries = page["entries"].as_array().unwrap().clone();
        for (at, entry) in entries.iter().enumerate() {
            assert_eq!(entry["sequence"], at + 1, "the journal has a gap");
        }
        entries
    }

    pub async fn kinds(&self, id: &str) -> Vec<String> {
        let entries = self.journal(id).await;
        entries.iter().map(|entry| entry["type"].as_str().unwrap().to_owned()).collect()
    }
}

/// Opens the store once whoever had it before has let go of it.
async fn open(place: Place, migrations: Vec<Migration>) -> orchestr8_stores::Sqlite {
    loop {
        match sqlite::open(Options::new(place.clone(), migrations.clone())) {
            Ok(store) => return store,
            Err(sqlite::Error::Held { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

pub fn value(settled: Settled) -> Value {
    match settled.result {
        Ok(Output::Json { value }) => value,
        other => panic!("it did not succeed: {other:?}"),
    }
}

/// A workflow of these steps, in the engine's form.
pub fn flow(steps: Value) -> Value {
    json!({"id": "flow", "version": "1.0.0", "name": "Flow", "steps": steps})
}

/// A step that calls the test agent, without waiting between retries.
pub fn step(id: &str, after: &[&str], input: Value) -> Value {
    json!({"id": id, "type": "agent", "agentId": "@test/agent", "dependsOn": after, "input": input,
           "resilience": {"maxAttempts": 3, "baseDelayMs": 0}})
}

/// The same with more members.
pub fn with(mut step: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        step[name] = value.clone();
    }
    step
}
