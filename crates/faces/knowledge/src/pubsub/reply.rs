//! The answer to a published envelope: the same envelope, from us, with the response in its payload (KNO-2).

use bytes::Bytes;
use orchestr8_kernel::ports::clock;
use serde_json::{Map, Value, json};

use crate::envelope::Envelope;
use crate::versions;

/// Who answers.
const OURSELVES: &str = "svc:orchestr8";

pub(crate) fn reply(envelope: &Envelope, status: u16, response: Value, now_ms: i64) -> Bytes {
    let correlation = envelope.correlation.as_ref().map_or(envelope.request_id.as_str(), |id| id.as_str());
    let mut members = Map::from_iter(
        [
            ("envelope_version", json!(versions::ENVELOPES[0])),
            ("request_id", json!(envelope.request_id)),
            ("correlation_id", json!(correlation)),
            ("tenant_id", json!(envelope.tenant.as_str())),
            ("principal", json!({"sub": OURSELVES, "roles": []})),
            ("timestamp", json!(clock::iso(now_ms))),
            ("action", json!(envelope.action)),
            ("action_version", json!(envelope.action_version)),
            (
                "payload",
                json!({"schema_version": versions::SCHEMAS[0], "status": status, "response": response}),
            ),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    for (name, given) in [("trace_id", &envelope.trace_id), ("context_id", &envelope.context_id)] {
        if let Some(given) = given {
            members.insert(name.to_owned(), given.as_str().into());
        }
    }
    Bytes::from(Value::Object(members).to_string())
}
