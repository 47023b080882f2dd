//! Keeps secrets out of what an agent says when it fails: faults are shown, stored and logged.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_kernel::redact::Redactor;
use serde_json::Value;

use super::{Agent, Answer, Call, Capability, WorkLocation};

/// Knows what must not be shown: named secrets, which the redactor knows, and what looks like one.
#[derive(Clone)]
pub struct Discretion {
    pub redactor: Arc<Redactor>,
}

impl Discretion {
    pub fn text(&self, text: &str) -> String {
        self.redactor.text(text).into_owned()
    }

    pub fn fault(&self, mut fault: Fault) -> Fault {
        fault.message = self.text(&fault.message).into();
        if let Some(details) = fault.details.take() {
            let details = Value::Object(*details);
            if let Value::Object(details) = self.redactor.value(&details).into_owned() {
                fault.details = Some(Box::new(details));
            }
        }
        fault
    }
}

/// An agent whose faults hold no secrets.
pub struct Discreet {
    agent: Arc<dyn Agent>,
    discretion: Discretion,
}

impl Discreet {
    pub fn around(agent: Arc<dyn Agent>, discretion: Discretion) -> Arc<dyn Agent> {
        Arc::new(Self { agent, discretion })
    }
}

impl Agent for Discreet {
    fn id(&self) -> &str {
        self.agent.id()
    }

    fn about(&self) -> &str {
        self.agent.about()
    }

    fn is_pure(&self) -> bool {
        self.agent.is_pure()
    }

    fn location(&self) -> WorkLocation {
        self.agent.location()
    }

    fn is_usable(&self) -> bool {
        self.agent.is_usable()
    }

    fn inserts_secrets(&self) -> bool {
        self.agent.inserts_secrets()
    }

    fn capability(&self, input: &Value, config: &Value) -> Capability {
        self.agent.capability(input, config)
    }

    fn target(&self, input: &Value, config: &Value) -> Option<String> {
        self.agent.target(input, config)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let discretion = self.discretion.clone();
        self.agent.call(call).map(move |result| result.map_err(|fault| discretion.fault(fault))).boxed()
    }

    fn health(&self) -> Option<BoxFuture<'static, Result<(), Fault>>> {
        let discretion = self.discretion.clone();
        let health = self.agent.health()?;
        Some(health.map(move |result| result.map_err(|fault| discretion.fault(fault))).boxed())
    }

    fn answers_to(&self, id: &str) -> bool {
        self.agent.answers_to(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_lose_named_secrets_and_what_looks_like_one() {
        let discretion = Discretion { redactor: Arc::default() };
        discretion.redactor.set_secrets(orchestr8_kernel::redact::SecretMask::new(["canary-1"]));
        let fault = Fault::invalid("bad canary-1 and password=hunter2").with("body", "see canary-1");
        let fault = discretion.fault(fault.with("status", 400));
        assert_eq!(fault.message, "bad [REDACTED] and password=[REDACTED]");
        let details = fault.details.unwrap();
        assert_eq!((&details["body"], &details["status"]), (&"see [REDACTED]".into(), &400.into()));
    }
}
