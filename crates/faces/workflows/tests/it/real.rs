//! The face over the real domain: everything from the socket's side of the router to the store.

use std::sync::Arc;

use axum::Router;
use futures::future::BoxFuture;
use http::Method;
use orchestr8_contract::Fault;
use orchestr8_contract::id::CorrelationId;
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::ports::{clock, ids, random};
use orchestr8_kernel::{Args, Kernel, Limits, Log, Ports, Principal, Submission};
use orchestr8_secrets::{MemoryKey, SecretVault};
use orchestr8_stores::Migration;
use orchestr8_stores::sqlite::{self, Options, Place};
use orchestr8_testing::request;
use orchestr8_workflows::agents::workers::Worker;
use orchestr8_workflows::agents::{self, Agent, Agents, Answer as Output, Call, Parts, Workers, builtin};
use orchestr8_workflows::{Hub, all};
use orchestr8_workflows_face::Settings;

use crate::world::Answer;

/// A whole program without a socket. Ids count and the clock moves only by waiting, so answers can be written down.
pub struct Real {
    pub router: Router,
    hub: Hub,
}

impl Real {
    pub async fn start() -> Self {
        Self::with(Settings::new("1.2.3")).await
    }

    pub async fn with(settings: Settings) -> Self {
        Self::whole(settings, orchestr8_workflows::Settings::default()).await
    }

    pub async fn whole(settings: Settings, domain: orchestr8_workflows::Settings) -> Self {
        let kernel = kernel();
        let workers = Workers::new(kernel.ports().clock.clone(), kernel.ports().ids.clone());
        let vault = SecretVault::new(kernel.ports(), Arc::new(MemoryKey::new().unwrap()), Vec::new());
        let parts = Parts { kernel: kernel.clone(), workers: workers.clone() };
        let mut agents = builtin(&agents::Settings::default(), &parts);
        agents.push(Arc::new(Here(Worker::new(workers.clone()))));
        let agents = Agents::new(agents);
        let hub = Hub::new(kernel.clone(), agents, vault, domain);
        for action in all(&hub, &workers).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        register_neighbours(&kernel).await;
        hub.start().await.unwrap();
        Self { router: orchestr8_workflows_face::router(kernel, settings), hub }
    }

    pub async fn ask(
        &self,
        method: Method,
        target: &str,
        headers: &[(String, String)],
        body: Option<String>,
    ) -> Answer {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let request = request(method, target, &headers, body.unwrap_or_default());
        Answer(orchestr8_testing::Answer::of(&self.router, request).await)
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        self.hub.stop();
    }
}

/// Documents and messages, whose events start workflows, with one agent that comes for its messages.
async fn register_neighbours(kernel: &Kernel) {
    let documents = orchestr8_knowledge::Hub::new(kernel.clone(), orchestr8_knowledge::Settings::default());
    let ports = kernel.ports();
    let coordinator =
        orchestr8_agents::Coordinator::new(kernel.bus().clone(), ports.clock.clone(), ports.log.clone());
    let settings = orchestr8_agents::aacp::Settings::default();
    let messages = orchestr8_agents::aacp::Hub::new(kernel.clone(), coordinator, settings);
    let actions = orchestr8_knowledge::actions::all(&documents).unwrap();
    for action in actions.into_iter().chain(orchestr8_agents::of_messages(&messages).unwrap()) {
        kernel.registry().register(action).unwrap();
    }
    let args = serde_json::json!({"agentId": "front-desk"}).as_object().cloned().unwrap();
    let correlation = CorrelationId::parse("test").unwrap();
    let registering =
        Submission::new("agents.register", Args::new(args), Arc::new(Principal::local()), correlation);
    assert!(kernel.submit(registering).await.result.is_ok());
}

fn kernel() -> Kernel {
    let migrations = [
        orchestr8_kernel::tables::MIGRATIONS,
        orchestr8_workflows::tables::MIGRATIONS,
        orchestr8_knowledge::tables::MIGRATIONS,
        orchestr8_agents::tables::MIGRATIONS,
        orchestr8_secrets::tables::MIGRATIONS,
    ]
    .concat();
    let migrations = migrations.iter().map(|(name, sql)| Migration { name, sql }).collect();
    let store = sqlite::open(Options::new(Place::Memory, migrations)).unwrap();
    let clock: Arc<dyn clock::Clock> = Arc::new(clock::Simulated::new());
    let ports = Ports {
        clock: clock.clone(),
        ids: Arc::new(ids::Counted::default()),
        random: Arc::new(random::Seeded::new(1)),
        store: Arc::new(store),
        log: Log::off(),
        redactor: Arc::default(),
    };
    Kernel::new(ports, Limits::default(), Bus::new(&Config::default(), clock, Log::off()))
}

/// `@here/<queue>`: work of this process, which takes a slot, and ends as a worker of the queue says.
struct Here(Worker);

const FAMILY: &str = "@here/";

impl Agent for Here {
    fn id(&self) -> &str {
        FAMILY
    }

    fn about(&self) -> &str {
        "Works here for as long as a worker of the queue says."
    }

    fn answers_to(&self, id: &str) -> bool {
        id.starts_with(FAMILY)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Output, Fault>> {
        let agent = format!("@worker/{}", call.agent.strip_prefix(FAMILY).unwrap_or_default()).into();
        self.0.call(Call { agent, ..call })
    }
}
