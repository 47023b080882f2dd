//! Secrets in the calls of steps: the engine carries opaque references, and the value is inserted at the socket or at exec.
//!
//! ```text
//! ${secrets.NAME} -> SecretMarker::reference -> input of a call -> CallSecrets::insert (binding checked) -> socket
//!                                            -> any other agent: [REDACTED]
//! ```

use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Ports;
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::redact::{REDACTED, SecretMask};
use orchestr8_kernel::row_seal::RowSeal;
use orchestr8_secrets::{SecretUse, SecretVault, Sink};
use serde_json::Value;

use crate::stored;

/// What environment variables that hold secrets are called; the rest of the name is the name of the secret.
pub const ENV_PREFIX: &str = "ORCHESTR8_SECRET_";

const OPEN: &str = "{{secret:";
const CLOSE: &str = "}}";

/// What executions need of secrets: the vault, and the marker of this process.
#[derive(Clone)]
pub struct SecretAccess {
    pub vault: SecretVault,
    pub marker: SecretMarker,
    store: Arc<dyn Store>,
    seal: RowSeal,
}

impl SecretAccess {
    pub fn new(vault: SecretVault, ports: &Ports, seal: RowSeal) -> Self {
        Self { vault, marker: SecretMarker::new(ports), store: ports.store.clone(), seal }
    }

    pub fn mask(&self, tenant: &Tenant) -> SecretMask {
        self.vault.mask(tenant.as_str())
    }

    /// For one call of an agent.
    pub fn of_call(
        &self,
        tenant: &Tenant,
        workflow: &Arc<str>,
        hash: &Arc<str>,
        agent: &Arc<str>,
    ) -> CallSecrets {
        CallSecrets {
            access: self.clone(),
            tenant: tenant.clone(),
            workflow: workflow.clone(),
            hash: hash.clone(),
            agent: agent.clone(),
        }
    }
}

/// What expressions see of the secrets of a tenant: references, never values.
#[derive(Clone, Copy)]
pub struct SecretView<'s> {
    pub access: &'s SecretAccess,
    pub tenant: &'s Tenant,
}

impl SecretView<'_> {
    /// The reference to a secret that exists.
    pub fn reference(&self, name: &str) -> Option<String> {
        self.access.vault.has(self.tenant.as_str(), name).then(|| self.access.marker.reference(name))
    }
}

/// Makes references that no data can imitate: they hold a number that this process drew at its start.
#[derive(Clone)]
pub struct SecretMarker(Arc<str>);

impl SecretMarker {
    fn new(ports: &Ports) -> Self {
        Self(
            format!("{}{}", ports.ids.fresh(For::Record).simple(), ports.ids.fresh(For::Record).simple())
                .into(),
        )
    }

    fn reference(&self, name: &str) -> String {
        format!("{OPEN}{}:{name}{CLOSE}", self.0)
    }

    /// Whether a reference, or a piece of one, is in the text.
    pub fn is_in(&self, text: &str) -> bool {
        text.contains(&*self.0)
    }

    /// The first reference: what is before it, the name, what is after it.
    fn first<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str, &'t str)> {
        let (before, rest) = text.split_once(&format!("{OPEN}{}:", self.0))?;
        let (name, after) = rest.split_once(CLOSE)?;
        Some((before, name, after))
    }

    /// The value with `[REDACTED]` in the place of references, for agents that take none.
    pub fn mask(&self, value: Value) -> Value {
        match value {
            Value::String(text) if self.is_in(&text) => Value::String(self.mask_text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.mask(item)).collect(),
            Value::Object(map) => {
                let masked = |(name, value): (String, Value)| (self.mask_text(&name), self.mask(value));
                Value::Object(map.into_iter().map(masked).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
        }
    }

    fn mask_text(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, _, after)) = self.first(rest) {
            out.push_str(before);
            out.push_str(REDACTED);
            rest = after;
        }
        out.push_str(rest);
        out.replace(&*self.0, REDACTED)
    }
}

/// The secrets that one call may insert, each only within its binding.
#[derive(Clone)]
pub struct CallSecrets {
    access: SecretAccess,
    tenant: Tenant,
    workflow: Arc<str>,
    hash: Arc<str>,
    agent: Arc<str>,
}

impl CallSecrets {
    pub fn is_in(&self, text: &str) -> bool {
        self.access.marker.is_in(text)
    }

    /// The text with the values in the place of references, spelled as the destination needs it. Fails with
    /// `SECRET_NOT_ALLOWED` if one of them is not bound to this tenant, workflow, agent and destination.
    pub async fn insert(&self, text: &str, sink: &Sink, spell: fn(&str) -> String) -> Result<String, Fault> {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, name, after)) = self.access.marker.first(rest) {
            out.push_str(before);
            out.push_str(&spell(self.reveal(name, sink).await?.expose()));
            rest = after;
        }
        self.refuse_in(rest, "a place where its reference was cut")?;
        out.push_str(rest);
        Ok(out)
    }

    /// Masks the secrets of the tenant. To be used before a text is cut: a half of a value cannot be recognised.
    pub fn mask(&self) -> SecretMask {
        self.access.mask(&self.tenant)
    }

    /// Refuses references where no secret may stand.
    pub fn refuse_in(&self, text: &str, place: &str) -> Result<(), Fault> {
        if !self.is_in(text) {
            return Ok(());
        }
        let name = self.access.marker.first(text).map_or("of this step", |(_, name, _)| name);
        let what = format!("the secret {name} cannot be used in {place}");
        Err(Fault::new(Code::SecretNotAllowed, what).with("secret", name).with("reason", "place"))
    }

    async fn reveal(&self, name: &str, sink: &Sink) -> Result<orchestr8_secrets::SecretText, Fault> {
        let tenant = self.tenant.as_str();
        let record = self.access.vault.record(tenant, name);
        let by_id =
            record.is_some_and(|record| record.binding.workflows.iter().any(|own| **own == *self.workflow));
        // Any definition can claim an id; a binding to an id means the workflow that is stored under it.
        let own = (&self.access.store, &self.access.seal);
        let is_stored = by_id && stored::has_revision(own, tenant, &self.workflow, &self.hash).await?;
        self.access.vault.reveal(&SecretUse {
            tenant,
            name,
            workflow: is_stored.then_some(&*self.workflow),
            hash: Some(&self.hash),
            agent: Some(&self.agent),
            sink,
        })
    }
}

/// As it is.
pub fn plain(value: &str) -> String {
    value.to_owned()
}

/// As the inside of a JSON text.
pub fn in_json(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_masked_wherever_they_are() {
        let marker = SecretMarker("0123456789abcdef".into());
        let reference = marker.reference("SHOP");
        let masked = marker.mask(json!({"a": [format!("Bearer {reference}!"), 1], reference.clone(): null}));
        assert_eq!(masked, json!({"a": ["Bearer [REDACTED]!", 1], "[REDACTED]": null}));
        let cut = &reference[..reference.len() - 4];
        assert_eq!(marker.mask(json!(cut)), json!("{{secret:[REDACTED]:SH"));
        assert_eq!(marker.first(&reference), Some(("", "SHOP", "")));
        assert!(marker.first("{{secret:other:SHOP}}").is_none());
    }

    #[test]
    fn json_texts_stay_whole() {
        assert_eq!(in_json("a\"b\n"), "a\\\"b\\n");
        assert_eq!(plain("a\"b"), "a\"b");
    }
}
