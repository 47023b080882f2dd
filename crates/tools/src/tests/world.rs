//! A kernel with the tools of this crate and a store in memory.

use std::sync::Arc;

use orchestr8_contract::id::Key;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::peer::About;
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Action, Args, Halt, Kernel, Limits, Policy, Settled, Submission};
use orchestr8_testing::{Parts, Person, submission};
use serde_json::{Value, json};

use crate::{Settings, all, changed, tables};

pub struct World {
    pub kernel: Kernel,
}

pub fn settings() -> Settings {
    Settings::new("test-server", "1.2.3")
}

/// A client of the modern era that can be asked anything.
pub fn able(answers: Value) -> Arc<Person> {
    Person::by_key(&[About::Sample, About::Elicit, About::Roots], answers)
}

impl World {
    pub fn new(settings: &Settings) -> Self {
        Self::with_limits(settings, Limits::default())
    }

    pub fn with_limits(settings: &Settings, limits: Limits) -> Self {
        let kernel = Parts { limits, ..Parts::in_memory(&[tables::MIGRATIONS]) }.kernel();
        for action in all(settings).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        changed(&kernel, settings.search_above).unwrap();
        Self { kernel }
    }

    /// Stands in for the agents crate: gives back what it was sent.
    pub fn with_agent(self) -> Self {
        let input = json!({"type": "object", "required": ["targetAgentId", "message"]});
        let action =
            Action::tool("agent.sendMessage", "for tests", input, Policy::read(), |args: Args, _| {
                let reply = match args.text("targetAgentId") {
                    Some("echo") => Ok(Output::json(args.get("message").cloned().unwrap_or_default()).into()),
                    _ => Err(Halt::Fault(Fault::new(Code::NotFound, "no such agent"))),
                };
                std::future::ready(reply)
            });
        self.kernel.registry().register(action.unwrap()).unwrap();
        self
    }

    pub fn submission(&self, action: &str, args: Value) -> Submission {
        submission(action, args)
    }

    pub async fn call(&self, action: &str, args: Value) -> Settled {
        self.kernel.submit(submission(action, args)).await
    }

    pub async fn call_with(&self, peer: &Arc<Person>, action: &str, args: Value) -> Settled {
        let mut submission = submission(action, args);
        submission.peer = Some(peer.clone());
        self.kernel.submit(submission).await
    }

    pub async fn call_keyed(&self, key: &str, action: &str, args: Value) -> Settled {
        let mut submission = submission(action, args);
        let key = Key::parse(key).unwrap();
        submission.identities.push(Identity { scope: Scope("test".into()), key, ttl_ms: 60_000 });
        self.kernel.submit(submission).await
    }

    pub fn listed(&self) -> Vec<String> {
        self.kernel.registry().table().tools().map(|action| action.name.as_str().to_owned()).collect()
    }
}
