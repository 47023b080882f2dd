//! One call of a Qdrant server: within its time, through a breaker, so that a server that is gone costs no query its time.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Kernel;
use orchestr8_kernel::resilience::Breakers;
use orchestr8_kernel::resilience::breaker::Policy;
use orchestr8_outbound::{Client, client};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;

use super::Settings;

/// How long one call may take; whoever asks may have less time.
const TIMEOUT_MS: u64 = 10_000;

/// Bytes of an answer.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Characters of an error that are shown.
const ERROR_CHARS: usize = 300;

/// The breaker: so many failures in a row, and for how long nobody tries then.
const BREAKER: &str = "cb:knowledge:qdrant";
const POLICY: Policy = Policy { failure_threshold: 3, open_duration_ms: 2_000 };

pub struct Caller {
    client: Client,
    breakers: Arc<Breakers>,
    base: Url,
    key: Option<HeaderValue>,
}

impl Caller {
    pub fn new(kernel: &Kernel, settings: &Settings) -> Self {
        let mut base = settings.url.clone();
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        let key = settings.key.as_deref().and_then(|key| HeaderValue::from_str(key).ok()).map(|mut key| {
            key.set_sensitive(true);
            key
        });
        Self { client: Client::trusted(), breakers: kernel.breakers().clone(), base, key }
    }

    /// What it answers, or why it does not do as asked.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Fault> {
        let (status, answer) = self.send(method, path, body).await?;
        accepted(status, answer)
    }

    /// None if there is no such thing.
    pub async fn try_call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Option<Value>, Fault> {
        match self.send(method, path, body).await? {
            (StatusCode::NOT_FOUND, _) => Ok(None),
            (status, answer) => accepted(status, answer).map(Some),
        }
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), Fault> {
        let pass = self.breakers.admit(BREAKER, POLICY)?;
        match self.exchange(method, path, body).await {
            Ok((status, answer)) if !status.is_server_error() => {
                pass.succeeded();
                Ok((status, answer))
            }
            ended => {
                pass.failed();
                ended
            }
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), Fault> {
        let lost = |error| client::fault("the vector server", error);
        let url =
            self.base.join(path).map_err(|_| Fault::internal("the vector server has no such address"))?;
        let mut request = self.client.get()?.request(method, url).timeout(Duration::from_millis(TIMEOUT_MS));
        if let Some(key) = &self.key {
            request = request.header("api-key", key.clone());
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let mut response = request.send().await.map_err(lost)?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if bytes.len() + chunk.len() > ANSWER_BYTES {
                return Err(Fault::new(Code::Unavailable, "the vector server answers too much"));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }
}

/// The answer, or what the server says is wrong.
pub fn accepted(status: StatusCode, answer: Value) -> Result<Value, Fault> {
    if status.is_success() {
        return Ok(answer);
    }
    let said = answer.pointer("/status/error").and_then(Value::as_str).unwrap_or_default();
    let said: String = said.chars().take(ERROR_CHARS).collect();
    let message = format!("the vector server answered {status}: {said}");
    Err(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Fault::new(Code::Configuration, message)
            .with("hint", "give its key: knowledge.vectors.keyVariable names the environment variable"),
        _ => Fault::new(Code::Unavailable, message),
    })
}
