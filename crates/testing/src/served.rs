//! A face as its clients see it: one request to its router, one whole answer.

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value;
use tower::ServiceExt;

/// What came back, all of it.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    /// Asks a router.
    pub async fn of(router: &Router, request: Request<Body>) -> Self {
        Self::read(router.clone().oneshot(request).await.unwrap()).await
    }

    /// Reads a response to its end.
    pub async fn read(response: http::Response<Body>) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let text = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        Self { status, headers, text: String::from_utf8(text.to_vec()).unwrap() }
    }

    /// A header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {:?}", self.text))
    }

    /// The code of a refusal, or nothing.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The methods that it says a path takes, sorted.
    pub fn allowed(&self) -> Vec<&str> {
        let mut taken: Vec<&str> = self.header("allow").split(',').collect();
        taken.sort_unstable();
        taken
    }
}

/// A request with these headers.
pub fn request(
    method: Method,
    target: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Request<Body> {
    let named =
        headers.iter().fold(Request::builder().method(method).uri(target), |request, (name, value)| {
            request.header(*name, *value)
        });
    named.body(body.into()).unwrap()
}
