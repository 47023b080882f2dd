//! Embedders on the network: OpenAI and all who speak as it does, Voyage, and Ollama.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::resilience::{self, breaker};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use serde_json::{Value, json};
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::{Embedder, Kind, Purpose, Settings, dimensions, to_length_one};
use crate::catalog::Ports;
use crate::limits::{DIMENSIONS, EMBED_ANSWER_BYTES, EMBED_BATCH_MAX, EMBED_CHARS};
use crate::openai::bearer;
use crate::refusal::{self, Said};
use crate::remote::{Client, beginning};
use crate::settings::{Key, address, wrong};

/// A model of somebody else. Clones share it.
#[derive(Clone)]
pub struct Remote(Arc<Shared>);

struct Shared {
    settings: Settings,
    /// What vectors remember: who made them and with what.
    name: String,
    url: Url,
    headers: HeaderMap,
    breaker: String,
    client: Client,
    ports: Ports,
}

impl Remote {
    /// Refuses an address that is none, a key that is missing, and vectors that are too long.
    pub fn new(settings: Settings, ports: Ports) -> Result<Self, Fault> {
        let (who, path) = match settings.kind {
            Kind::OpenAi => ("openai", "/embeddings"),
            Kind::Voyage => ("voyage", "/embeddings"),
            Kind::Ollama => ("ollama", "/api/embed"),
        };
        if settings.model.trim().is_empty() || settings.dimensions == 0 || settings.dimensions > DIMENSIONS {
            return Err(wrong(format!("an embedder has a model, and vectors of 1 to {DIMENSIONS} numbers")));
        }
        if matches!(settings.key, Key::Missing) {
            return Err(wrong(format!("the embedder {who} needs a key, and there is none")));
        }
        let headers = bearer(settings.key.secret());
        let headers =
            headers.ok_or_else(|| wrong(format!("the key of {who} has characters that no key has")))?;
        let url = address(who, &settings.base_url, path)?;
        let name = format!("{who}/{}/{}", settings.model, settings.dimensions);
        let breaker = breaker::key("embedder", Some(who));
        Ok(Self(Arc::new(Shared { settings, name, url, headers, breaker, client: Client::default(), ports })))
    }

    async fn embed_all(self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Vec<f32>>, Fault> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.0.settings.batch.clamp(1, EMBED_BATCH_MAX)) {
            vectors.extend(self.ask(batch, purpose).await?);
        }
        Ok(vectors)
    }

    /// One request, tried as often as the settings say.
    async fn ask(&self, texts: &[String], purpose: Purpose) -> Result<Vec<Vec<f32>>, Fault> {
        let shared = &self.0;
        let body = serde_json::to_vec(&shared.settings.body(texts, purpose))
            .map_err(|cause| Fault::internal("the request could not be written").because(cause))?;
        let (body, count) = (Bytes::from(body), texts.len());
        let ports = &shared.ports;
        resilience::run(
            &shared.settings.resilience,
            &shared.breaker,
            |_| self.attempt(body.clone(), count),
            &CancellationToken::new(),
            &ports.breakers,
            &*ports.clock,
            &*ports.random,
        )
        .await
    }

    async fn attempt(&self, body: Bytes, count: usize) -> Result<Vec<Vec<f32>>, Fault> {
        let shared = &self.0;
        let limit = Duration::from_millis(shared.settings.resilience.timeout_ms.max(1));
        let sent = shared
            .client
            .get()?
            .post(shared.url.clone())
            .headers(shared.headers.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body)
            .send();
        let answered = async {
            let response = sent.await.map_err(|error| self.unreachable(error))?;
            if !response.status().is_success() {
                return Err(self.refused(response).await);
            }
            let body = self.whole(response).await?;
            self.read(&body, count)
        };
        tokio::select! {
            answer = answered => answer,
            () = shared.ports.clock.sleep(limit) => {
                Err(self.failed(format!("took longer than {} ms", limit.as_millis())))
            }
        }
    }

    async fn refused(&self, response: Response) -> Fault {
        let shared = &self.0;
        let status = response.status().as_u16();
        let wait_ms = refusal::retry_after_ms(response.headers(), shared.ports.clock.now_ms());
        let body = beginning(response).await;
        let said = Said::read(&String::from_utf8_lossy(&body));
        let fault = refusal::of_status(status, &said, self.who(), shared.settings.key.secret());
        refusal::after(fault, wait_ms)
    }

    /// The whole answer, unless it is too long to be one.
    async fn whole(&self, response: Response) -> Result<Vec<u8>, Fault> {
        let mut body = response.bytes_stream();
        let mut read = Vec::new();
        while let Some(bytes) = body.next().await {
            let bytes = bytes.map_err(|error| self.unreachable(error))?;
            if read.len() + bytes.len() > EMBED_ANSWER_BYTES {
                let what = format!("{} answered with more than {EMBED_ANSWER_BYTES} bytes", self.who());
                return Err(Fault::new(Code::PayloadTooLarge, what));
            }
            read.extend_from_slice(&bytes);
        }
        Ok(read)
    }

    fn read(&self, body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, Fault> {
        let settings = &self.0.settings;
        let value: Value = serde_json::from_slice(body)
            .map_err(|cause| self.failed("answered with no JSON").because(cause))?;
        let mut vectors = match settings.kind {
            Kind::OpenAi | Kind::Voyage => indexed(&value),
            Kind::Ollama => value["embeddings"].as_array().and_then(|list| list.iter().map(vector).collect()),
        }
        .ok_or_else(|| self.failed("answered with something that is no list of vectors"))?;
        if vectors.len() != count {
            return Err(self.failed(format!("gave {} vectors for {count} texts", vectors.len())));
        }
        if let Some(other) = vectors.iter().find(|vector| vector.len() != settings.dimensions) {
            let what = format!(
                "the vectors of {} have {} numbers, and the settings say {}",
                self.0.name,
                other.len(),
                settings.dimensions
            );
            return Err(wrong(what));
        }
        vectors.iter_mut().for_each(|vector| to_length_one(vector));
        Ok(vectors)
    }

    fn who(&self) -> &str {
        self.0.name.split('/').next().unwrap_or_default()
    }

    fn failed(&self, what: impl std::fmt::Display) -> Fault {
        Fault::new(Code::Unavailable, format!("{} {what}", self.who())).with("provider", self.who())
    }

    /// Why nothing came back. The address is left out: it may hold what is nobody's business.
    fn unreachable(&self, error: reqwest::Error) -> Fault {
        let why = if error.is_connect() { "cannot be reached" } else { "broke the connection" };
        self.failed(why).because(error.without_url())
    }
}

impl Embedder for Remote {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn dimensions(&self) -> usize {
        self.0.settings.dimensions
    }

    fn is_multilingual(&self) -> bool {
        self.0.settings.multilingual
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, Fault>> {
        Box::pin(self.clone().embed_all(texts, purpose))
    }
}

impl Settings {
    fn body(&self, texts: &[String], purpose: Purpose) -> Value {
        let input: Vec<String> = texts.iter().map(|text| text.chars().take(EMBED_CHARS).collect()).collect();
        let mut body = json!({"model": self.model, "input": input});
        // Said only where it differs: many servers do not know the word.
        let shortened = dimensions(&self.model).is_some_and(|usual| usual != self.dimensions);
        match self.kind {
            Kind::OpenAi => {
                body["encoding_format"] = json!("float");
                if shortened {
                    body["dimensions"] = json!(self.dimensions);
                }
            }
            Kind::Voyage => {
                body["input_type"] = json!(match purpose {
                    Purpose::Query => "query",
                    Purpose::Passage => "document",
                });
                if shortened {
                    body["output_dimension"] = json!(self.dimensions);
                }
            }
            Kind::Ollama => body["truncate"] = json!(true),
        }
        body
    }
}

/// `{"data": [{"index", "embedding"}]}`, in the order of the indexes.
fn indexed(value: &Value) -> Option<Vec<Vec<f32>>> {
    let mut found = Vec::new();
    for (place, item) in value["data"].as_array()?.iter().enumerate() {
        let index = item["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(place);
        found.push((index, vector(&item["embedding"])?));
    }
    found.sort_by_key(|(index, _)| *index);
    Some(found.into_iter().map(|(_, vector)| vector).collect())
}

fn vector(value: &Value) -> Option<Vec<f32>> {
    let numbers = value.as_array()?.iter().map(|number| number.as_f64().map(|number| number as f32));
    numbers.map(|number| number.filter(|number| number.is_finite())).collect()
}
