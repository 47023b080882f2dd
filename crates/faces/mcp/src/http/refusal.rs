//! What the transport itself refuses, as JSON-RPC errors with the HTTP status that fits.

use http::StatusCode;
use orchestr8_contract::{Code, Fault, Kind};
use orchestr8_edge::body;
use serde_json::{Map, Value};

use crate::face::Eras;
use crate::wire::{self, INTERNAL, INVALID_REQUEST, NOT_INITIALIZED, VERSION_UNSUPPORTED};

use super::headers;

/// What servers say of a session that is unknown or over; the specification leaves the number to them.
const SESSION_NOT_FOUND: i64 = -32001;

fn refusal(status: StatusCode, number: i64, code: Code, message: impl Into<String>) -> wire::Error {
    let message = message.into();
    let error = wire::Error::new(number, message.clone()).status(status.as_u16());
    error.with("code", code.as_str()).with("message", message)
}

/// What the edge refuses before it comes to us.
pub(super) fn edge(status: StatusCode, code: Code, message: impl Into<String>) -> wire::Error {
    refusal(status, INVALID_REQUEST, code, message)
}

pub(super) fn internal(code: Code, message: impl Into<String>) -> wire::Error {
    refusal(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL, code, message)
}

fn invalid(status: StatusCode, message: impl Into<String>) -> wire::Error {
    refusal(status, INVALID_REQUEST, Code::InvalidArgument, message)
}

pub(super) fn media_type() -> wire::Error {
    invalid(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Unsupported Media Type: Content-Type must be application/json",
    )
}

pub(super) fn not_acceptable(what: &str) -> wire::Error {
    invalid(StatusCode::NOT_ACCEPTABLE, format!("Not Acceptable: the client must accept {what}"))
}

pub(super) fn method() -> wire::Error {
    invalid(
        StatusCode::METHOD_NOT_ALLOWED,
        "Method not allowed: the Allow header lists the methods taken here",
    )
}

pub(super) fn header(name: &str, rule: &str) -> wire::Error {
    invalid(StatusCode::BAD_REQUEST, format!("Bad Request: the {name} header must be {rule}"))
}

/// Where only the legacy era is spoken, the answer must not look like one of the modern era, or clients would not fall back.
pub(super) fn version(requested: &str, eras: Eras) -> wire::Error {
    const SHOWN_CHARACTERS: usize = 64;
    let requested: String = requested.chars().take(SHOWN_CHARACTERS).collect();
    let spoken = headers::spoken(eras);
    let message = format!("Unsupported protocol version: this server speaks {}", spoken.join(", "));
    if !eras.modern {
        return invalid(StatusCode::BAD_REQUEST, message);
    }
    let error = wire::Error::new(VERSION_UNSUPPORTED, message).status(StatusCode::BAD_REQUEST.as_u16());
    error.with("supported", spoken).with("requested", requested)
}

/// MCP-INIT-5: without a session only `initialize` is taken.
pub(super) fn no_session() -> wire::Error {
    let error = wire::Error::new(NOT_INITIALIZED, "Not initialized").status(StatusCode::BAD_REQUEST.as_u16());
    let code = Code::NotInitialized;
    error
        .with("code", code.as_str())
        .with("message", "there is no session: send initialize, then its Mcp-Session-Id")
}

pub(super) fn unknown_session() -> wire::Error {
    let message = "Session not found: it has ended or never was; send initialize without a session id";
    refusal(StatusCode::NOT_FOUND, SESSION_NOT_FOUND, Code::NotFound, message)
}

pub(super) fn unknown_event() -> wire::Error {
    let message = "Bad Request: what followed this Last-Event-ID is no longer kept; send the request again";
    refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, Code::NotFound, message)
}

pub(super) fn full(limit: usize) -> wire::Error {
    let message = format!("Service Unavailable: {limit} sessions are open");
    refusal(StatusCode::SERVICE_UNAVAILABLE, INTERNAL, Code::ResourceExhausted, message)
}

pub(super) fn tenant() -> wire::Error {
    let message = "Forbidden: the tenant of this token is no tenant name";
    refusal(StatusCode::FORBIDDEN, INVALID_REQUEST, Code::Unauthorized, message)
}

pub(super) fn body(error: &body::Error) -> wire::Error {
    match error {
        body::Error::TooLarge { limit_bytes } => {
            let message = format!("Payload too large: the body is larger than {limit_bytes} bytes");
            let error =
                refusal(StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, Code::ResourceExhausted, message);
            error.with("limitBytes", *limit_bytes)
        }
        body::Error::Slow => refusal(
            StatusCode::REQUEST_TIMEOUT,
            INVALID_REQUEST,
            Code::Timeout,
            "Request Timeout: the body came too slowly",
        ),
        body::Error::Broken(_) => invalid(StatusCode::BAD_REQUEST, "Bad Request: the body broke off"),
    }
}

/// A fault of the session store, or no room for one more session.
pub(super) fn fault(fault: &Fault) -> wire::Error {
    let status = match fault.kind() {
        Kind::Exhausted | Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Invalid
        | Kind::NotFound
        | Kind::Unauthenticated
        | Kind::Forbidden
        | Kind::Conflict
        | Kind::Timeout
        | Kind::Cancelled
        | Kind::Dependency
        | Kind::State
        | Kind::Unknown
        | Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut error = refusal(status, INTERNAL, fault.code, fault.message.clone());
    if let Some(details) = &fault.details {
        error.data.insert("details".into(), Value::Object(Map::clone(details)));
    }
    error
}
