//! The shapes this face writes itself; everything else is what the actions give, translated.

use orchestr8_contract::FailureCategory;
use serde::Serialize;
use serde_json::{Map, Value};

/// The body of every refusal.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorBody<'a> {
    pub error: Error<'a>,
    pub timestamp: String,
    pub correlation_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Error<'a> {
    pub code: &'static str,
    pub message: &'a str,
    pub is_retryable: bool,
    pub category: FailureCategory,
    /// How often what failed was attempted; 0 for a request that was refused.
    pub attempts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<&'a Map<String, Value>>,
    /// The code of docs/errors.md, where this face has another word for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
}

/// The answer to an asynchronous execution (ADR-015).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accepted<'a> {
    pub execution_id: &'a str,
    pub status: &'a str,
    pub message: &'static str,
    pub check_url: &'a str,
}

/// The answer to a synchronous execution that completed (ADR-015).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Completed<'a> {
    pub execution_id: &'a str,
    pub status: &'static str,
    pub outputs: &'a Value,
    pub duration: &'a Value,
    pub timestamp: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Health<'a> {
    pub healthy: bool,
    pub name: &'static str,
    pub version: &'a str,
    pub pid: u32,
    pub started_at: &'a str,
}

/// What a live connection is told first.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Established<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub timestamp: String,
    pub data: Connection<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Connection<'a> {
    pub connection_id: &'a str,
    /// Where the stream begins: what it tells comes after this id.
    pub last_event_id: u64,
    pub heartbeat_ms: u64,
}
