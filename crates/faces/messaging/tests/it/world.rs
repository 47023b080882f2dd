//! A server in memory: the real domain behind the real face, with a clock that tests move.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Method;
use orchestr8_agents::aacp::{Backoff, Hub, Settings};
use orchestr8_agents::{Coordinator, Echo, of_messages, tables};
use orchestr8_contract::id::AgentId;
use orchestr8_edge::Caller;
use orchestr8_kernel::ports::clock;
use orchestr8_messaging_face as face;
use orchestr8_secrets::{MemoryKey, SecretVault};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Answer, Parts, memory, request, within};
use serde_json::Value;
use tower::ServiceExt;

pub struct World {
    pub store: Sqlite,
    pub clock: Arc<clock::Simulated>,
    pub hub: Hub,
    router: Router,
    settings: Settings,
}

/// Timeouts of a second, three attempts, and no waits that a test would have to guess.
pub fn settings() -> Settings {
    let policy = Backoff { max_attempts: 3, base_delay_ms: 0, max_delay_ms: 0 };
    Settings { timeout_ms: 1000, policy: Arc::new(policy), ..Settings::default() }
}

impl World {
    pub fn new() -> Self {
        Self::with(settings())
    }

    pub fn with(settings: Settings) -> Self {
        Self::on(
            memory(&[tables::MIGRATIONS, orchestr8_secrets::tables::MIGRATIONS]),
            Arc::new(clock::Simulated::new()),
            settings,
        )
    }

    fn on(store: Sqlite, clock: Arc<clock::Simulated>, settings: Settings) -> Self {
        let parts = Parts { clock: clock.clone(), ..Parts::on(Arc::new(store.clone())) };
        let kernel = parts.kernel();
        let ports = kernel.ports();
        let coordinator = Coordinator::new(kernel.bus().clone(), ports.clock.clone(), ports.log.clone());
        coordinator.register(AgentId::parse(Echo::ID).unwrap(), Arc::new(Echo)).unwrap();
        let vault = SecretVault::new(ports, Arc::new(MemoryKey::new().unwrap()), Vec::new());
        let kept = Settings { vault: Some(vault), ..settings.clone() };
        let hub = Hub::new(kernel.clone(), coordinator, kept);
        for action in of_messages(&hub).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        let router = face::router(kernel, face::Settings::default());
        Self { store, clock, hub, router, settings }
    }

    /// Another server over the same store, that takes up what this one has left.
    pub async fn restart(self) -> Self {
        let world = Self::on(self.store, self.clock, self.settings);
        world.hub.resume().await.unwrap();
        world
    }

    /// Lets time pass, and what is due happen.
    pub async fn pass(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
        self.hub.take_up_due().await.unwrap();
    }

    pub async fn ask(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        Answer::read(self.open(method, target, headers, body, None).await).await
    }

    /// The same as somebody whom the edge has verified.
    pub async fn ask_as(&self, caller: Caller, method: Method, target: &str, body: Option<&Value>) -> Answer {
        let body = body.map(Value::to_string);
        Answer::read(self.open(method, target, &[], body.as_deref(), Some(caller)).await).await
    }

    pub async fn post(&self, target: &str, body: Value) -> Answer {
        self.ask(Method::POST, target, &[], Some(&body.to_string())).await
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.ask(Method::GET, target, &[], None).await
    }

    /// What is told at a path, once it is so.
    pub async fn until(&self, target: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        within(async {
            loop {
                let told = self.get(target).await.json();
                if is_so(&told) {
                    return told;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    pub async fn open(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
        caller: Option<Caller>,
    ) -> axum::response::Response {
        let unsaid = body.is_some() && !headers.iter().any(|(name, _)| *name == "content-type");
        let json: &[_] = if unsaid { &[("content-type", "application/json")] } else { &[] };
        let body = body.unwrap_or_default().to_owned();
        let mut request = request(method, target, &[headers, json].concat(), body);
        if let Some(caller) = caller {
            request.extensions_mut().insert(Arc::new(caller));
        }
        self.router.clone().oneshot(request).await.unwrap()
    }
}
