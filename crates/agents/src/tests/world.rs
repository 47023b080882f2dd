//! A kernel with a store in memory, and agents made for tests.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_contract::id::AgentId;
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::{Kernel, Log, Settled, Submission};
use orchestr8_testing::{Parts, submission};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{Agent, Coordinator, Message, Settings, Surroundings, all};

pub fn bus() -> Bus {
    Bus::new(&Config::default(), Arc::new(clock::Simulated::new()), Log::off())
}

pub fn coordinator() -> Coordinator {
    Coordinator::new(bus(), Arc::new(clock::Simulated::new()), Log::off())
}

pub fn id(text: &str) -> AgentId {
    AgentId::parse(text).unwrap()
}

pub fn message(kind: &str, payload: Value) -> Message {
    Message { kind: kind.to_owned(), payload, source: None }
}

/// An agent made of a function.
pub fn acting<F>(act: F) -> Arc<dyn Agent>
where
    F: for<'a> Fn(Message, Surroundings<'a>) -> BoxFuture<'a, Result<Value, Fault>> + Send + Sync + 'static,
{
    Arc::new(Acting(act))
}

struct Acting<F>(F);

impl<F> Agent for Acting<F>
where
    F: for<'a> Fn(Message, Surroundings<'a>) -> BoxFuture<'a, Result<Value, Fault>> + Send + Sync + 'static,
{
    fn receive<'a>(
        &'a self,
        message: Message,
        around: Surroundings<'a>,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        (self.0)(message, around)
    }
}

/// An agent that begins, then waits to be let go, once for each message.
pub struct Waiting {
    pub begun: Arc<Semaphore>,
    pub gate: Arc<Semaphore>,
}

impl Waiting {
    pub fn new() -> Self {
        Self { begun: Arc::new(Semaphore::new(0)), gate: Arc::new(Semaphore::new(0)) }
    }

    pub async fn has_begun(begun: &Semaphore) {
        begun.acquire().await.unwrap().forget();
    }
}

impl Agent for Waiting {
    fn receive<'a>(
        &'a self,
        message: Message,
        around: Surroundings<'a>,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        async move {
            self.begun.add_permits(1);
            self.gate.acquire().await.map_err(|_| Fault::internal("closed"))?.forget();
            around.state.set("last", message.kind.as_str())?;
            Ok(message.kind.into())
        }
        .boxed()
    }
}

/// A kernel with the actions of this crate.
pub struct World {
    pub kernel: Kernel,
    pub coordinator: Coordinator,
}

impl World {
    pub fn new(settings: &Settings) -> Self {
        let clock = Arc::new(clock::Simulated::new());
        let kernel = Parts { clock, ..Parts::in_memory(&[]) }.kernel();
        let coordinator = coordinator();
        for action in all(&coordinator, settings).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        Self { kernel, coordinator }
    }

    pub fn submission(&self, action: &str, args: Value) -> Submission {
        submission(action, args)
    }

    pub async fn call(&self, action: &str, args: Value) -> Settled {
        self.kernel.submit(self.submission(action, args)).await
    }
}
