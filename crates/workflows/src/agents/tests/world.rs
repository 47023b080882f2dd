//! A kernel with its store in memory, the built-in agents, and calls to them.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Fault, TraceParent};
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::ports::{clock, ids, random};
use orchestr8_kernel::{Kernel, Limits, Log, Ports, Principal};
use orchestr8_secrets::{DeclaredSecret, MemoryKey, SecretVault};
use orchestr8_stores::Migration;
use orchestr8_stores::sqlite::{self, Options, Place};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::super::{Agent, Agents, Call, Heartbeat, Parts, SecretAccess, Settings, Workers, builtin};

pub struct World {
    pub kernel: Kernel,
    pub agents: Agents,
    pub workers: Workers,
    pub secrets: SecretAccess,
}

impl World {
    pub fn new() -> Self {
        Self::with(&Settings::default(), Vec::new())
    }

    /// Where servers on this machine may be called.
    pub fn open() -> Self {
        let mut settings = Settings::default();
        settings.http.allow_private = true;
        Self::with(&settings, Vec::new())
    }

    pub fn with(settings: &Settings, secrets: Vec<DeclaredSecret>) -> Self {
        let kernel = kernel();
        let vault = SecretVault::new(kernel.ports(), Arc::new(MemoryKey::new().unwrap()), secrets);
        let secrets = SecretAccess::new(vault, kernel.ports(), kernel.row_seal().clone());
        let workers = Workers::new(kernel.ports().clock.clone(), kernel.ports().ids.clone());
        let parts = Parts { kernel: kernel.clone(), workers: workers.clone() };
        Self { agents: Agents::new(builtin(settings, &parts)), kernel, workers, secrets }
    }

    pub fn agent(&self, id: &str) -> Arc<dyn Agent> {
        self.agents.find(id).unwrap_or_else(|| panic!("no agent {id}")).clone()
    }

    pub fn call(&self, agent: &str, input: Value) -> Call {
        Call {
            execution: "exec-1".into(),
            workflow: "flow".into(),
            step: "step".into(),
            attempt: 1,
            key: "exec-1:step".into(),
            agent: agent.into(),
            input,
            config: Value::Null,
            correlation: CorrelationId::parse("corr-1").unwrap(),
            trace: TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            principal: Arc::new(Principal::local()),
            secrets: self.secrets.of_call(&Tenant::local(), &"flow".into(), &"hash".into(), &agent.into()),
            cancel: CancellationToken::new(),
            heartbeat: Heartbeat::default(),
            recorded: CancellationToken::new(),
            keeps_artifact: false,
        }
    }

    pub async fn output(&self, agent: &str, input: Value) -> Result<Value, Fault> {
        self.agent(agent).call(self.call(agent, input)).await.map(|answer| answer.output)
    }
}

pub fn kernel() -> Kernel {
    let lists = orchestr8_kernel::tables::MIGRATIONS;
    let migrations = lists.iter().map(|(name, sql)| Migration { name, sql }).collect();
    let clock = Arc::new(clock::Real::new());
    let ports = Ports {
        clock: clock.clone(),
        ids: Arc::new(ids::Random),
        random: Arc::new(random::Seeded::new(1)),
        store: Arc::new(sqlite::open(Options::new(Place::Memory, migrations)).unwrap()),
        log: Log::off(),
        redactor: Arc::default(),
    };
    let bus = Bus::new(&Config::default(), clock, Log::off());
    Kernel::new(ports, Limits::default(), bus)
}
