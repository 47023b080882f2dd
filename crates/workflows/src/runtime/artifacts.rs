//! Results of steps that are kept as artifacts: too large for the record of an execution, which refers to them.

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, canonical, json as measure};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::Statement;
use serde_json::{Value, json};

use super::{Hub, fault, tables};
use crate::limits::{ARTIFACT_BYTES, ARTIFACTS_BYTES};

/// The result of a step, on its way into the store.
pub struct NewArtifact {
    id: String,
    content_type: &'static str,
    sha256: String,
    body: String,
}

impl NewArtifact {
    /// A text as it is, anything else as JSON. Fails beyond the limit of one artifact and of the tenant.
    pub async fn of(hub: &Hub, tenant: &Tenant, result: Value) -> Result<Self, Fault> {
        let bytes = measure::bytes(&result);
        if bytes > ARTIFACT_BYTES {
            return Err(too_large("the result", bytes, ARTIFACT_BYTES));
        }
        let rows = hub.0.ports.store.query(tables::artifacts_size(tenant.as_str())).await.map_err(fault)?;
        let kept = rows.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)?;
        let total = usize::try_from(kept).unwrap_or(usize::MAX).saturating_add(bytes);
        if total > ARTIFACTS_BYTES {
            return Err(too_large("all artifacts of the tenant, with this one,", total, ARTIFACTS_BYTES)
                .with("reason", "artifact_quota"));
        }
        let (content_type, body) = match result {
            Value::String(text) => ("text/plain; charset=utf-8", text),
            other => ("application/json", other.to_string()),
        };
        let id = hub.0.ports.ids.fresh(For::Record).simple().to_string();
        Ok(Self { id, content_type, sha256: canonical::sha256_hex_of(&body), body })
    }

    /// What the step gives instead of the result.
    pub fn reference(&self) -> Value {
        json!({"$artifact": self.id, "size": self.body.len(), "sha256": self.sha256, "contentType": self.content_type})
    }

    /// Keeps it with its execution, which it is deleted with.
    pub fn keep(self, execution: i64, tenant: &Tenant) -> Statement {
        let Self { id, content_type, sha256, body } = self;
        tables::artifact_put(tables::ArtifactRow {
            execution,
            id,
            tenant: tenant.as_str(),
            content_type,
            sha256,
            body,
        })
    }
}

fn too_large(what: &str, bytes: usize, limit: usize) -> Fault {
    Fault::new(Code::PayloadTooLarge, format!("{what} would take more than {limit} bytes"))
        .with("bytes", bytes)
        .with("limit", limit)
}
