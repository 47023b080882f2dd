//! What is stored of a secret beside its value.

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::Source;
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::{Error, Link, Row};
use serde_json::{Value, json};

use crate::binding::SecretBinding;
use crate::cipher;

/// What a record is for. Only named secrets can be used in definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    Named,
    /// Signs messages that are brought to an agent.
    Callback,
    /// Signs deliveries of a webhook of knowledge.
    Webhook,
    /// Proves deliveries to a webhook trigger of workflows.
    Trigger,
    /// Of the server itself.
    Server,
}

impl RecordKind {
    const ALL: [RecordKind; 5] = [
        RecordKind::Named,
        RecordKind::Callback,
        RecordKind::Webhook,
        RecordKind::Trigger,
        RecordKind::Server,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RecordKind::Named => "named",
            RecordKind::Callback => "callback",
            RecordKind::Webhook => "webhook",
            RecordKind::Trigger => "trigger",
            RecordKind::Server => "server",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRecord {
    pub tenant: String,
    pub kind: RecordKind,
    pub name: String,
    /// Counts up with every change of value or binding.
    pub version: i64,
    pub binding: SecretBinding,
    pub created_ms: i64,
    pub rotated_ms: i64,
    /// Who created or changed it last.
    pub changed_by: String,
    /// It stands in the settings and cannot be changed at run time.
    pub declared: bool,
}

impl SecretRecord {
    /// A record and its sealed value.
    pub(crate) fn read(row: &Row) -> Result<(Self, Vec<u8>), Error> {
        let kind = row.text(1)?;
        let kind = RecordKind::ALL.into_iter().find(|known| known.as_str() == kind);
        let binding = serde_json::from_str(row.text(5)?);
        let record = Self {
            tenant: row.text(0)?.to_owned(),
            kind: kind.ok_or_else(|| Error::Corrupt(String::from("a secret has an unknown kind")))?,
            name: row.text(2)?.to_owned(),
            version: row.int(3)?,
            binding: binding
                .map_err(|_| Error::Corrupt(String::from("the binding of a secret cannot be read")))?,
            created_ms: row.int(6)?,
            rotated_ms: row.int(7)?,
            changed_by: row.text(8)?.to_owned(),
            declared: false,
        };
        Ok((record, row.blob(4)?.to_vec()))
    }

    pub(crate) fn binding_text(&self) -> Result<String, Fault> {
        serde_json::to_string(&self.binding)
            .map_err(|error| Fault::internal("a binding cannot be stored").because(error))
    }

    /// The associated data of the sealed value: a change of one of these in the store makes it unreadable.
    pub(crate) fn context(&self, binding: &str) -> Vec<u8> {
        let version = self.version.to_string();
        cipher::context(&[
            "orchestr8 secret",
            &self.tenant,
            self.kind.as_str(),
            &self.name,
            &version,
            binding,
        ])
    }

    /// Everything but the value.
    pub fn shown(&self) -> Value {
        json!({
            "name": self.name, "version": self.version, "workflows": self.binding.workflows, "agents": self.binding.agents,
            "to": self.binding.to, "createdAt": (!self.declared).then(|| iso(self.created_ms)),
            "rotatedAt": (!self.declared).then(|| iso(self.rotated_ms)), "changedBy": self.changed_by,
            "source": if self.declared { "settings" } else { "store" },
        })
    }
}

/// The audit entry of a new key for all records, which a command of the person at this machine makes.
pub(crate) fn rekeyed(key: &str, records: usize, at_ms: i64) -> Link {
    let tenant = Tenant::local();
    let change = StateChange {
        source: Source::cli(),
        principal: "local",
        detail: json!({"records": records}),
        ..StateChange::by_server("secrets.rekey", tenant.as_str(), Some(key))
    };
    change.link(at_ms)
}
