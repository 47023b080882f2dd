//! The shapes this face writes itself; everything else is what the actions give.

use serde::Serialize;
use serde_json::{Map, Value};

/// The body of every refusal; that of the edge has the same first members.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorBody<'a> {
    pub error: Error<'a>,
    pub correlation_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Error<'a> {
    pub code: &'static str,
    pub message: &'a str,
    pub hint: &'static str,
    pub is_retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<&'a Map<String, Value>>,
}
