//! Agents of other programs, behind `POST /process` and `GET /health` (ADR-012).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::redact::SecretMask;
use orchestr8_outbound::{Client, client};
use orchestr8_secrets::Sink;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use serde_json::Value;

use super::http::{add_ids, body, host_of, insert, status};
use super::secrets::in_json;
use super::{Agent, Answer, Call, Usage, WorkLocation, settings, until_cancelled};
use crate::limits::{
    REFUSAL_SHOWN_BYTES, REMOTE_AGENT_CALLS, REMOTE_AGENT_MS, REMOTE_HEALTH_MS, RESPONSE_BYTES,
};

pub struct Remote(Arc<Inner>);

struct Inner {
    name: String,
    about: String,
    /// What is wrong with the settings is said when it is called: the other agents can still work.
    place: Result<Place, Fault>,
    client: Arc<Client>,
    clock: Arc<dyn Clock>,
    timeout_ms: u64,
    max_concurrent: usize,
}

#[derive(Clone)]
struct Place {
    host: String,
    process: Url,
    health: Url,
    headers: HeaderMap,
}

impl Remote {
    pub fn new(name: &str, settings: &settings::Remote, client: Arc<Client>, clock: Arc<dyn Clock>) -> Self {
        let place = Place::read(name, settings);
        let at = place.as_ref().map_or("an address that is wrong", |place| &place.host);
        let about = format!("An agent of another program, at {at}.");
        let timeout_ms = settings.timeout_ms.unwrap_or(REMOTE_AGENT_MS);
        let max_concurrent = settings.max_concurrent.unwrap_or(REMOTE_AGENT_CALLS);
        Self(Arc::new(Inner {
            name: name.to_owned(),
            about,
            place,
            client,
            clock,
            timeout_ms,
            max_concurrent,
        }))
    }
}

impl Agent for Remote {
    fn id(&self) -> &str {
        &self.0.name
    }

    fn about(&self) -> &str {
        &self.0.about
    }

    fn inserts_secrets(&self) -> bool {
        true
    }

    fn location(&self) -> WorkLocation {
        WorkLocation::Remote { limit: self.0.max_concurrent, is_per_tenant: false }
    }

    fn target(&self, _input: &Value, _config: &Value) -> Option<String> {
        self.0.place.as_ref().ok().map(|place| place.host.clone())
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let inner = self.0.clone();
        async move {
            let cancel = call.cancel.clone();
            let limit_ms = inner.timeout_ms;
            until_cancelled(&cancel, inner.within(limit_ms, inner.process(call))).await
        }
        .boxed()
    }

    fn health(&self) -> Option<BoxFuture<'static, Result<(), Fault>>> {
        let inner = self.0.clone();
        Some(async move { inner.within(REMOTE_HEALTH_MS, inner.ask_health()).await }.boxed())
    }
}

impl Inner {
    async fn process(&self, call: Call) -> Result<Answer, Fault> {
        let place = self.place.clone()?;
        let mut headers = place.headers;
        add_ids(&mut headers, &call)?;
        let (https, host, port) = insert::origin(&place.process);
        let input = call.input.to_string();
        let body = call.secrets.insert(&input, &Sink::body(https, &host, port), in_json).await?;
        let request = self.client.get()?.post(place.process).headers(headers).body(body);
        let response = request.send().await.map_err(|error| client::fault(&self.name, error))?;
        self.read(response, &call.secrets.mask(), call.answer_bytes(RESPONSE_BYTES)).await
    }

    async fn ask_health(&self) -> Result<(), Fault> {
        let place = self.place.clone()?;
        let request = self.client.get()?.get(place.health).headers(place.headers);
        let response = request.send().await.map_err(|error| client::fault(&self.name, error))?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(status::refusal(response.status(), &self.name, None)),
        }
    }

    /// `{success: true, data}` or `{success: false, error}`, whatever the status; a status alone where there is neither.
    async fn read(&self, response: Response, mask: &SecretMask, most: usize) -> Result<Answer, Fault> {
        let (status, now_ms) = (response.status(), self.clock.now_ms());
        let after_ms = status::retry_after_ms(response.headers(), now_ms);
        let bytes = body::read(response, &self.name, most).await?;
        let mut answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match answer.get("success").and_then(Value::as_bool) {
            Some(true) if status.is_success() => {
                let output = answer.get_mut("data").map(Value::take).unwrap_or_default();
                Ok(Answer { usage: usage(&output), output })
            }
            Some(false) => Err(self.failure(status, after_ms, answer.get("error"), mask)),
            Some(true) | None if !status.is_success() => Err(status::refusal(status, &self.name, after_ms)),
            Some(true) | None => Err(Fault::new(
                Code::AgentFailed,
                format!("{} answered with something other than {{success, data}}", self.name),
            )),
        }
    }

    /// The status says whether to try again; with 2xx it is the agent's own failure.
    fn failure(
        &self,
        status: StatusCode,
        after_ms: Option<u64>,
        error: Option<&Value>,
        mask: &SecretMask,
    ) -> Fault {
        let said = error.and_then(|error| error.as_str().or_else(|| error.get("message")?.as_str()));
        let said = mask.text(said.unwrap_or("it gives no reason"));
        let said = status::shorten(&said, REFUSAL_SHOWN_BYTES);
        let mut fault = match status.is_success() {
            true => Fault::new(Code::AgentFailed, format!("{} failed", self.name)),
            false => status::refusal(status, &self.name, after_ms),
        };
        fault.message = format!("{}: {said}", fault.message).into();
        fault
    }

    async fn within<T>(
        &self,
        limit_ms: u64,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        tokio::select! {
            biased;
            result = work => result,
            () = self.clock.sleep(Duration::from_millis(limit_ms)) => {
                Err(Fault::new(Code::Timeout, format!("{} took longer than {limit_ms} ms", self.name))
                    .with("timeoutMs", limit_ms))
            }
        }
    }
}

impl Place {
    fn read(name: &str, settings: &settings::Remote) -> Result<Self, Fault> {
        let broken = |what: &str| {
            Fault::new(Code::Configuration, format!("the agent {name} has {what} in its settings"))
        };
        let url = Url::parse(settings.url.trim_end_matches('/')).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.query().is_none());
        let url = url.ok_or_else(|| broken("no http or https address"))?;
        let join = |end: &str| Url::parse(&format!("{}/{end}", url.as_str().trim_end_matches('/')));
        let (Ok(process), Ok(health)) = (join("process"), join("health")) else {
            return Err(broken("no http or https address"));
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| broken("a header that is none"))?;
            let mut value = HeaderValue::from_str(value).map_err(|_| broken("a header that is none"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self { host: host_of(&url), process, health, headers })
    }
}

/// A number of tokens. Some languages have only floating-point numbers; a part of a token counts as a whole one, so that no budget is passed by.
fn tokens(number: &Value) -> Option<u64> {
    let rounded = || number.as_f64().filter(|tokens| tokens.is_finite() && *tokens > 0.0).map(f64::ceil);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive, and saturates"
    )]
    number.as_u64().or_else(|| rounded().map(|tokens| tokens as u64))
}

/// What the agent says it used, in `metadata.usage`.
fn usage(data: &Value) -> Usage {
    let usage = data.pointer("/metadata/usage");
    let cost =
        usage.and_then(|usage| usage.get("cost")?.as_f64()).filter(|cost| cost.is_finite() && *cost >= 0.0);
    Usage {
        tokens: usage.and_then(|usage| tokens(usage.get("tokens")?)).unwrap_or(0),
        cost: cost.unwrap_or(0.0),
    }
}
