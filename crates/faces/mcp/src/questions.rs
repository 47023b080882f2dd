//! Questions of the modern era: put into a result, answered when the client sends the request again.

use std::sync::Arc;

use orchestr8_contract::canonical;
use orchestr8_kernel::Principal;
use orchestr8_kernel::peer::Ask;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::body::{Body, ResultType};
use crate::era::Era;
use crate::face::Face;
use crate::from_wire::Capabilities;
use crate::peer::Client;
use crate::request::Request;
use crate::seal::{LIFETIME_MS, State};
use crate::to_wire::{ask_impossible, input_request, special_error};
use crate::wire::Error;

/// What a request brought of answers, and what a retry of it needs.
pub struct Questions {
    /// None in the legacy era, which asks in another way.
    pub retry: Option<Arc<Retry>>,
}

/// Enough about a request to recognise it when it comes again.
pub struct Retry {
    face: Face,
    who: Arc<Principal>,
    method: &'static str,
    name: Arc<str>,
    /// The arguments as they were written.
    arguments: Option<String>,
    capabilities: Capabilities,
    pub answers: Map<String, Value>,
}

impl Questions {
    /// Reads `inputResponses` and `requestState`, which only the modern era has.
    pub fn of(request: &Request<'_>, name: &Arc<str>, arguments: Option<String>) -> Result<Self, Error> {
        if !request.era.is_modern() {
            return Ok(Self { retry: None });
        }
        let connection = request.connection;
        let mut retry = Retry {
            face: connection.face.clone(),
            who: request.who().clone(),
            method: request.method.name,
            name: name.clone(),
            arguments,
            capabilities: request.capabilities,
            answers: Map::new(),
        };
        let given = request.params.map("inputResponses")?;
        let state = request.params.text("requestState")?;
        if let Some(sealed) = state {
            let now_ms = request.kernel().ports().clock.now_ms();
            retry.answers = connection.face.seal().open(&sealed, &retry.state(now_ms), now_ms)?;
        }
        for (key, value) in given.into_iter().flatten() {
            if !value.is_object() {
                return Err(Error::params(format!("inputResponses.{key} must be an object")));
            }
            retry.answers.insert(key, value);
        }
        Ok(Self { retry: Some(Arc::new(retry)) })
    }

    /// Whether these questions have been answered.
    pub fn has(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.retry.as_ref().is_some_and(|retry| retry.answers.contains_key(*key)))
    }

    /// The client as the work of the action sees it.
    pub fn client(&self, request: &Request<'_>) -> Client {
        Client {
            connection: request.connection.clone(),
            related: request.related.clone(),
            era: request.era,
            capabilities: request.capabilities,
            log_level: request.log_level,
            progress_token: request.params.progress_token().map(Into::into),
            cancel: request.cancel.clone(),
            task: None,
            retry: self.retry.clone(),
            done: Mutex::new(None),
        }
    }
}

impl Retry {
    /// The result that asks. A client is never asked for what it has not declared.
    pub fn input_required(&self, asks: &[Ask]) -> Result<Body, Error> {
        let impossible = asks.iter().find(|ask| !self.capabilities.can(ask.about, &ask.params));
        if let Some(error) = impossible.and_then(|ask| special_error(&ask_impossible(ask.about), Era::Modern))
        {
            return Err(error);
        }
        let requests: Map<String, Value> =
            asks.iter().map(|ask| (ask.key.clone(), input_request(ask))).collect();
        let now_ms = self.face.kernel().ports().clock.now_ms();
        let sealed = self.face.seal().close(&self.state(now_ms));
        let body = Body::with_capacity(512).value("inputRequests", &requests).text("requestState", &sealed);
        Ok(body.of(ResultType::InputRequired))
    }

    fn state(&self, now_ms: i64) -> State {
        let arguments = self.arguments.as_deref().and_then(|text| serde_json::from_str(text).ok());
        State {
            method: self.method.to_owned(),
            name: self.name.to_string(),
            arguments: canonical::sha256_hex(&arguments.unwrap_or_else(|| json!({}))),
            tenant: self.who.tenant.as_str().to_owned(),
            principal: self.who.name.to_string(),
            expires_ms: now_ms + LIFETIME_MS,
            answers: self.answers.clone(),
        }
    }
}
