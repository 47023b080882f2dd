//! Who published an envelope, as it is kept beside it. A proof is shown once; what it proved holds for every delivery.

use orchestr8_contract::{Fault, RoleSet};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::security::{Proven, Who};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sender {
    pub who: Who,
    /// The key of the envelope, or of the header it came with.
    pub key: Option<String>,
}

impl Sender {
    pub fn to_text(&self) -> String {
        let mut members = match &self.who {
            Who::Stated => Map::new(),
            Who::Proven(proven) => Map::from_iter([(
                "proven".to_owned(),
                json!({"sub": proven.sub, "tenant": proven.tenant, "roles": proven.roles}),
            )]),
        };
        if let Some(key) = &self.key {
            members.insert("key".to_owned(), key.as_str().into());
        }
        Value::Object(members).to_string()
    }

    pub fn read(text: &str) -> Result<Self, Fault> {
        let damaged = || Fault::internal("what is kept of the sender of a message cannot be read");
        let members: Value = serde_json::from_str(text).map_err(|error| damaged().because(error))?;
        let who = match members.get("proven") {
            None => Who::Stated,
            Some(proven) => Who::Proven(read_proven(proven).ok_or_else(damaged)?),
        };
        Ok(Self { who, key: members.get("key").and_then(Value::as_str).map(str::to_owned) })
    }
}

fn read_proven(value: &Value) -> Option<Proven> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let roles = RoleSet::deserialize(value.get("roles")?).ok()?;
    Some(Proven { sub: text("sub")?, tenant: text("tenant")?, roles, grant: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_reads_back_as_written_and_damage_is_nobody() {
        let roles = RoleSet::named(["owner"]);
        let proven = Proven { sub: "svc:a".into(), tenant: "acme".into(), roles, grant: None };
        for who in [Who::Stated, Who::Proven(proven)] {
            for key in [None, Some("k".to_owned())] {
                let sender = Sender { who: who.clone(), key };
                assert_eq!(Sender::read(&sender.to_text()).unwrap(), sender);
            }
        }
        for damaged in ["", "{", r#"{"proven":{}}"#, r#"{"proven":{"sub":"a","tenant":"b","roles":[1]}}"#] {
            assert!(Sender::read(damaged).is_err(), "{damaged}");
        }
    }
}
