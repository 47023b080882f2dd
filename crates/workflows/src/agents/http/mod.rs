//! `@orchestr8/http`: one request to a server out there, with a guard against reaching in here.

pub mod body;
pub mod insert;
mod request;
pub mod status;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_contract::trace::TRACEPARENT;
use orchestr8_kernel::ports::Clock;
use orchestr8_outbound::{Allowed, Client, Guard, client};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};
use serde_json::{Map, Value, json};

use super::members::Members;
use super::{Agent, Answer, Call, settings, until_cancelled};
use crate::limits::RESPONSE_BYTES;
use request::{Expect, Request};

/// Says which of several tries of one step a request belongs to.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
const EXECUTION_ID: HeaderName = HeaderName::from_static("x-execution-id");

pub struct Http(Arc<Inner>);

struct Inner {
    client: Client,
    guard: Arc<Guard>,
    clock: Arc<dyn Clock>,
}

impl Http {
    pub fn new(settings: &settings::Http, clock: Arc<dyn Clock>) -> Self {
        let (hosts, private) = (settings.allowed_hosts.clone(), settings.allow_private);
        let guard = Arc::new(Guard::new(&Allowed { hosts, private, setting: "workflows.http" }));
        Self(Arc::new(Inner { client: Client::guarded(guard.clone()), guard, clock }))
    }
}

impl Agent for Http {
    fn id(&self) -> &str {
        "@orchestr8/http"
    }

    fn about(&self) -> &str {
        "Sends one HTTP request: {url, method?, headers?, query?, body?, expect?, maxBytes?} gives {status, headers, body}."
    }

    fn inserts_secrets(&self) -> bool {
        true
    }

    fn target(&self, input: &Value, config: &Value) -> Option<String> {
        let url = Members::peek(input, config).text("url").ok()??;
        Url::parse(url).ok().map(|url| host_of(&url))
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let inner = self.0.clone();
        async move {
            let cancel = call.cancel.clone();
            until_cancelled(&cancel, inner.send(call)).await
        }
        .boxed()
    }
}

impl Inner {
    async fn send(&self, call: Call) -> Result<Answer, Fault> {
        let most = call.answer_bytes(RESPONSE_BYTES);
        let mut request = Request::read(&call.input, &call.config, most)?;
        self.guard.check_url(&request.url)?;
        insert::insert(&mut request, &call.secrets).await?;
        let (what, secrets) = (request.name(), request.secrets());
        add_ids(&mut request.headers, &call)?;
        let (expect, max_bytes) = (request.expect, request.max_bytes);
        let sent = request.send(self.client.get()?).await;
        let response = sent.map_err(|error| client::fault(&what, error))?;
        let response =
            status::accept(response, &what, self.clock.now_ms(), &secrets, &call.secrets.mask()).await?;
        answer(response, &what, expect, max_bytes).await.map(Answer::from)
    }
}

/// The ids by which the other side can tell repeats and find the execution. What the author has set stays.
pub fn add_ids(headers: &mut HeaderMap, call: &Call) -> Result<(), Fault> {
    let ids: [(HeaderName, &str); 3] = [
        (IDEMPOTENCY_KEY, &call.key),
        (CORRELATION_ID, call.correlation.as_str()),
        (EXECUTION_ID, &call.execution),
    ];
    let trace = call.trace.map(|trace| trace.to_string());
    let trace = trace.as_deref().map(|trace| (HeaderName::from_static(TRACEPARENT), trace));
    for (name, id) in ids.into_iter().chain(trace) {
        if !headers.contains_key(&name) {
            let value = HeaderValue::from_bytes(id.as_bytes()).map_err(|_| {
                Fault::invalid(format!("the id for {name} has characters that no header may hold"))
            })?;
            headers.insert(name, value);
        }
    }
    Ok(())
}

/// `host` or `host:port`, which is what circuits are counted by and what messages name: the rest may hold secrets.
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

async fn answer(
    response: Response,
    what: &str,
    expect: Option<Expect>,
    max_bytes: usize,
) -> Result<Value, Fault> {
    let (status, headers) = (response.status().as_u16(), shown(response.headers()));
    let says_json = is_json(response.headers());
    let bytes = body::read(response, what, max_bytes).await?;
    let body = match expect {
        Some(Expect::Json) => body::json(&bytes, what)?,
        None if says_json => body::json(&bytes, what)?,
        Some(Expect::Text) | None => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
    };
    Ok(json!({"status": status, "headers": headers, "body": body}))
}

/// `application/json` and everything that ends in `+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

/// Names in lower case; a header that comes several times as one text with commas.
fn shown(headers: &HeaderMap) -> Map<String, Value> {
    let mut map = Map::new();
    for name in headers.keys() {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        map.insert(name.as_str().to_owned(), Value::String(values.join(", ")));
    }
    map
}
