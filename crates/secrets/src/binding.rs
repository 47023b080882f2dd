//! What a secret is bound to, and whether one use is within it.

use orchestr8_contract::{Code, Fault};
use serde::{Deserialize, Serialize};

use crate::destination::{Destination, Sink};
use crate::limits::{BINDING_CHARACTERS, BINDINGS};

/// Who may use a secret, and where it may go. All of the lists that are given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretBinding {
    /// Ids of stored workflows, or hashes of definitions.
    #[serde(default)]
    pub workflows: Vec<String>,
    /// Ids of agents, such as `@orchestr8/http`.
    #[serde(default)]
    pub agents: Vec<String>,
    #[serde(default)]
    pub to: Vec<Destination>,
}

/// One attempt to use a secret.
#[derive(Debug, Clone)]
pub struct SecretUse<'u> {
    pub tenant: &'u str,
    pub name: &'u str,
    /// The id of the workflow, only if this definition is a stored revision of it: any definition can claim an id.
    pub workflow: Option<&'u str>,
    /// The hash of the definition.
    pub hash: Option<&'u str>,
    pub agent: Option<&'u str>,
    pub sink: &'u Sink,
}

impl SecretBinding {
    /// A binding must name a workflow or an agent, unless it is for providers and triggers only, and at least one destination.
    pub fn check(&self) -> Result<(), Fault> {
        let wrong = |path: &str, what: &str| {
            Err(Fault::invalid(format!("/{path}: {what}")).with("path", format!("/{path}")))
        };
        let is_of_server =
            |to: &Destination| matches!(to, Destination::Provider { .. } | Destination::Trigger { .. });
        let only_server = self.to.iter().all(is_of_server);
        if self.to.is_empty() {
            return wrong(
                "to",
                "a secret needs at least one destination, such as api.example.com:Authorization",
            );
        }
        if self.workflows.is_empty() && self.agents.is_empty() && !only_server {
            return wrong(
                "workflows",
                "a secret is bound to a workflow or to an agent; give at least one of them",
            );
        }
        for (path, names) in [("workflows", &self.workflows), ("agents", &self.agents)] {
            let sound = |name: &String| {
                !name.is_empty()
                    && name.chars().count() <= BINDING_CHARACTERS
                    && !name.chars().any(char::is_control)
            };
            if names.len() > BINDINGS || !names.iter().all(sound) {
                return wrong(
                    path,
                    &format!("there are at most {BINDINGS} names of 1 to {BINDING_CHARACTERS} characters"),
                );
            }
        }
        if self.to.len() > BINDINGS {
            return wrong("to", &format!("there are at most {BINDINGS} destinations"));
        }
        Ok(())
    }

    /// Refuses a use outside the binding, and names what does not match.
    pub fn authorize(&self, usage: &SecretUse<'_>) -> Result<(), Fault> {
        let name = usage.name;
        let is_of_server = matches!(usage.sink, Sink::Provider { .. } | Sink::Trigger { .. });
        let by_workflow =
            |own: &String| Some(own.as_str()) == usage.workflow || Some(own.as_str()) == usage.hash;
        if !is_of_server && !self.workflows.is_empty() && !self.workflows.iter().any(by_workflow) {
            return Err(denied(name, "workflow", "is not bound to this workflow: bind the id of a stored workflow, or the hash of the definition".to_owned()));
        }
        if !is_of_server
            && !self.agents.is_empty()
            && !self.agents.iter().any(|own| Some(own.as_str()) == usage.agent)
        {
            return Err(denied(
                name,
                "agent",
                format!("is not bound to the agent {}", usage.agent.unwrap_or("of this step")),
            ));
        }
        if !self.to.iter().any(|to| to.allows(usage.sink)) {
            return Err(denied(
                name,
                "destination",
                format!("is not bound to the destination {}", usage.sink),
            ));
        }
        Ok(())
    }
}

/// The fault of a use outside a binding.
pub(crate) fn denied(name: &str, reason: &'static str, what: String) -> Fault {
    Fault::new(Code::SecretNotAllowed, format!("the secret {name} {what}"))
        .with("secret", name)
        .with("reason", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(workflows: &[&str], agents: &[&str], to: &[&str]) -> SecretBinding {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        SecretBinding {
            workflows: texts(workflows),
            agents: texts(agents),
            to: to.iter().map(|to| to.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn every_part_of_a_binding_must_match() {
        let bound = binding(&["shop", "abc"], &["@orchestr8/http"], &["api.shop.example:authorization"]);
        let sink = Sink::header(true, "api.shop.example", 443, "authorization");
        let usage = SecretUse {
            tenant: "t",
            name: "S",
            workflow: Some("shop"),
            hash: None,
            agent: Some("@orchestr8/http"),
            sink: &sink,
        };
        bound.authorize(&usage).unwrap();
        bound.authorize(&SecretUse { workflow: None, hash: Some("abc"), ..usage.clone() }).unwrap();
        let reason = |usage: SecretUse<'_>| {
            let fault = bound.authorize(&usage).unwrap_err();
            assert_eq!(fault.code, Code::SecretNotAllowed);
            fault.details.unwrap()["reason"].as_str().unwrap().to_owned()
        };
        assert_eq!(reason(SecretUse { workflow: None, ..usage.clone() }), "workflow");
        assert_eq!(reason(SecretUse { workflow: Some("other"), ..usage.clone() }), "workflow");
        assert_eq!(reason(SecretUse { agent: Some("@orchestr8/exec"), ..usage.clone() }), "agent");
        let elsewhere = Sink::header(true, "evil.example", 443, "authorization");
        assert_eq!(reason(SecretUse { sink: &elsewhere, ..usage }), "destination");
    }

    #[test]
    fn a_binding_names_who_and_where() {
        binding(&["shop"], &[], &["h.example:x"]).check().unwrap();
        binding(&[], &["a"], &["h.example:x"]).check().unwrap();
        binding(&[], &[], &["provider:p"]).check().unwrap();
        for wrong in [
            binding(&["shop"], &[], &[]),
            binding(&[], &[], &["h.example:x"]),
            binding(&[""], &[], &["h.example:x"]),
        ] {
            assert_eq!(wrong.check().unwrap_err().code, Code::InvalidArgument);
        }
    }
}
