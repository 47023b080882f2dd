//! The shapes this face writes itself (KNO-4, Appendix D); everything else is what the actions give.

use serde::Serialize;
use serde_json::{Map, Value};

/// The body of every success.
#[derive(Serialize)]
pub(crate) struct Success<'a> {
    pub ok: bool,
    pub data: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<&'a Map<String, Value>>,
    /// The outcome of an earlier request with the same key.
    #[serde(skip_serializing_if = "is_false")]
    pub replayed: bool,
    /// It came out of order and had no effect (KNO-9).
    #[serde(skip_serializing_if = "is_false")]
    pub ignored: bool,
}

/// The body of every failure.
#[derive(Serialize)]
pub(crate) struct ErrorBody<'a> {
    pub ok: bool,
    pub error: Error<'a>,
    #[serde(skip_serializing_if = "is_false")]
    pub replayed: bool,
}

#[derive(Serialize)]
pub(crate) struct Error<'a> {
    pub code: &'static str,
    pub message: &'a str,
    pub details: &'a Map<String, Value>,
}

/// What we can do and how we are reached (Appendix D).
#[derive(Serialize)]
pub(crate) struct Capabilities {
    pub envelope_versions: Vec<&'static str>,
    pub actions: Vec<Capability>,
    pub transports: Vec<&'static str>,
    /// The notices of this quarter (KNO-3), for whoever did not hear them on the bus.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deprecations: Vec<Value>,
}

#[derive(Serialize)]
pub(crate) struct Capability {
    pub action: String,
    pub action_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_payload_bytes: Option<usize>,
    pub max_concurrent: usize,
}

/// A call that is looked at after it was acknowledged.
#[derive(Serialize)]
pub(crate) struct RequestState<'a> {
    pub request_id: &'a str,
    pub state: &'static str,
    pub action: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acked_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// The whole answer the client would have got, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

#[derive(Serialize)]
pub(crate) struct Acked<'a> {
    pub state: &'static str,
    pub request_id: &'a str,
    pub check_url: &'a str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_false(value: &bool) -> bool {
    !value
}
