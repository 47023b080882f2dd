//! A refusal: one answer of the edge itself, in the envelope `{"error":{"code","message","hint"}}`.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use orchestr8_contract::Code;
use serde_json::json;

use crate::correlation::CORRELATION;
use crate::guard::SECURITY;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What is wrong, what to do, and the one header that status asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub status: StatusCode,
    pub code: Code,
    pub message: Cow<'static, str>,
    hint: Option<&'static str>,
    header: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    /// Without a hint of its own a refusal gives the advice of its code.
    pub fn new(status: StatusCode, code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into(), hint: None, header: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The header its status asks for, to go with whatever words a face puts it in.
    pub(crate) fn own_header(&self) -> Option<(HeaderName, HeaderValue)> {
        self.header.as_ref().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
    }

    #[must_use]
    fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    pub(crate) fn host() -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::Unauthorized, "the Host header does not name this server")
            .hint("call it as localhost or 127.0.0.1, or add the name to the allowed hosts")
    }

    pub(crate) fn origin() -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::Unauthorized, "pages of this Origin may not call this server")
            .hint("add the origin to the allowed origins if you trust the page")
    }

    pub(crate) fn page() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            Code::Unauthorized,
            "only the pages of this server may change things here",
        )
        .hint("load the page again; a page of another server needs to be among the allowed origins")
    }

    pub(crate) fn no_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, Code::Unauthenticated, "this server asks for a token")
            .header(WWW_AUTHENTICATE, "Bearer realm=\"orchestr8\"")
    }

    pub(crate) fn other_user() -> Self {
        let message = "this server belongs to another user of this machine: show a token of it";
        Self::new(StatusCode::UNAUTHORIZED, Code::Unauthenticated, message)
            .header(WWW_AUTHENTICATE, "Bearer realm=\"orchestr8\"")
    }

    pub(crate) fn wrong_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, Code::Unauthenticated, "the token is not one this server knows")
            .header(WWW_AUTHENTICATE, "Bearer realm=\"orchestr8\", error=\"invalid_token\"")
    }

    /// For a request that was waiting when its token ended.
    pub(crate) fn revoked_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, Code::Unauthenticated, "this token was revoked or has expired")
            .header(WWW_AUTHENTICATE, "Bearer realm=\"orchestr8\", error=\"invalid_token\"")
    }

    pub(crate) fn too_many_logins() -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            Code::ResourceExhausted,
            "too many wrong tokens came from your address or were tried for this token",
        )
        .hint("wait a minute, then send the right token")
        .header(RETRY_AFTER, "60")
    }

    pub(crate) fn out_of_scope() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            Code::Unauthorized,
            "the scope of this token does not include this API",
        )
        .hint("create a token whose scope names this face, as in --scope face:workflows")
    }

    pub(crate) fn too_many_streams() -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            Code::ResourceExhausted,
            "you have too many WebSockets and event streams open",
        )
        .hint("close some, or raise http.maxStreamsPerPrincipal")
        .header(RETRY_AFTER, "1")
    }

    pub(crate) fn plain_http() -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::InvalidArgument, "this port speaks HTTPS")
            .hint("call it with https://")
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, Code::NotFound, "there is nothing at this path")
            .hint("check the path")
    }

    pub(crate) fn method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            Code::InvalidArgument,
            "this path does not take this method",
        )
        .hint("the Allow header lists the methods it takes")
    }

    /// Also what a face answers to `body::Error::Slow`.
    pub(crate) fn slow_body() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, Code::Timeout, "the body came too slowly")
            .hint("nothing was done; send it again")
    }

    pub(crate) fn slow_head() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, Code::Timeout, "the request head came too slowly")
            .hint("nothing was done; send it again")
    }

    pub(crate) fn body_too_large(limit_bytes: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            Code::PayloadTooLarge,
            format!("the body is larger than {limit_bytes} bytes"),
        )
        .hint("send less at once, or raise the body limit")
    }

    pub(crate) fn broken_body() -> Self {
        Self::malformed("the body ended early or is not framed as HTTP says")
    }

    pub(crate) fn encoding() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::InvalidArgument,
            "encoded request bodies are not taken",
        )
        .hint("send the body as it is, without Content-Encoding")
        .header(ACCEPT_ENCODING, "identity")
    }

    pub(crate) fn uri_too_long() -> Self {
        Self::new(StatusCode::URI_TOO_LONG, Code::PayloadTooLarge, "the request target is too long")
            .hint("send large values in the body")
    }

    pub(crate) fn malformed(message: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::InvalidArgument, message).hint("speak HTTP/1.1")
    }

    pub(crate) fn panicked() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, "the server failed while answering")
    }

    pub(crate) fn full() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::ResourceExhausted, "too many connections are open")
            .hint("try again shortly, keep fewer connections open, or raise the connection limit")
            .header(RETRY_AFTER, "1")
    }

    pub(crate) fn crowded() -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            Code::ResourceExhausted,
            "too many connections are open from your address",
        )
        .hint("keep fewer connections open, or raise the limit per address")
        .header(RETRY_AFTER, "1")
    }

    /// What we say when the HTTP parser itself gave up with `status`.
    pub(crate) fn unparsed(status: u16) -> Self {
        match status {
            414 => Self::uri_too_long(),
            431 => Self::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                Code::PayloadTooLarge,
                "the request head is too large or has too many headers",
            )
            .hint("send at most 100 headers and 32 KiB of head"),
            _ => Self::malformed("this is not an HTTP/1 request"),
        }
    }

    /// The whole answer as bytes, for a connection that has no HTTP state any more. It always closes.
    pub(crate) fn raw(&self, correlation: &HeaderValue) -> Vec<u8> {
        let body = self.body();
        let mut out = format!("HTTP/1.1 {}\r\n", self.status).into_bytes();
        let mut line = |name: &HeaderName, value: &[u8]| {
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        };
        line(&CONTENT_TYPE, JSON.as_bytes());
        line(&http::header::CONTENT_LENGTH, body.len().to_string().as_bytes());
        line(&http::header::CONNECTION, b"close");
        line(&CORRELATION, correlation.as_bytes());
        for (name, value) in &SECURITY {
            line(name, value.as_bytes());
        }
        if let Some((name, value)) = &self.header {
            line(name, value.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body.as_bytes());
        out
    }

    fn body(&self) -> String {
        let hint = self.hint.unwrap_or_else(|| self.code.advice());
        json!({"error": {"code": self.code.as_str(), "message": self.message, "hint": hint}}).to_string()
    }
}

impl IntoResponse for Refusal {
    /// The guard adds the correlation id and the security headers, as to every answer.
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
