//! One request on its way to one action: who asks, under which ids, with what.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_edge::ask::{self, Query};
use orchestr8_edge::{Arrival, Intake, Params};
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Args, Halt, Principal, Settled, Submission, Transport};
use serde_json::{Map, Value};

use crate::face::Face;
use crate::failure::Failure;
use crate::headers::{self, Media};

/// What an endpoint gives: a response, or why there is none.
pub(crate) type Outcome = Result<Response, Failure>;

/// A request without credentials where tokens are configured: the edge lets through only links to approvals, whose token says
/// whose they are.
fn link_holder(arrival: &Arrival) -> Result<Arc<Principal>, Failure> {
    let Some(token) = arrival.params.id("token", ID_BYTES) else {
        return Err(Fault::new(Code::Unauthenticated, "this needs a bearer token").into());
    };
    let tenant = match token.split_once('.') {
        Some((_, tenant)) => {
            Tenant::parse(tenant).map_err(|_| Failure::not_found("nothing waits under this token"))?
        }
        None => Tenant::local(),
    };
    Ok(Arc::new(Principal::approval_link(tenant)))
}

/// The parameter of the path of deliveries. It names the tenant; the signature is the only credential.
pub(crate) const HOOK: &str = "hook";

/// The sender of a delivery, whatever other credentials it shows: the name of another tenant's trigger ends with its tenant. What names no tenant is
/// answered as a wrong signature is.
fn hook_sender(arrival: &Arrival) -> Arc<Principal> {
    let named = arrival.params.id(HOOK, HOOK_BYTES).and_then(|name| name.split_once('.'));
    let tenant = named.and_then(|(_, tenant)| Tenant::parse(tenant).ok()).unwrap_or_else(Tenant::local);
    Arc::new(Principal::webhook_sender(tenant))
}

/// The id of a trigger and the name of a tenant.
const HOOK_BYTES: usize = 512;

/// The keys of one principal do not meet those of another. Those of the local principal have the plain scope that data files of
/// earlier versions have.
fn key_scope(action: &str, principal: &Principal) -> Scope {
    match *principal.name == *orchestr8_edge::LOCAL_NAME {
        true => Scope(action.into()),
        false => Scope(format!("{action}:{}", principal.name).into()),
    }
}

/// What an action gave, and whether it is the outcome of an earlier request with the same key.
pub(crate) struct Given {
    pub value: Map<String, Value>,
    pub replayed: bool,
}

pub(crate) struct Call {
    pub face: Arc<Face>,
    pub parts: Parts,
    pub principal: Arc<Principal>,
    pub correlation: CorrelationId,
    body: Bytes,
    params: Params,
}

/// An id of ours in a path: anything else cannot exist.
const ID_BYTES: usize = 128;

impl Call {
    /// Takes a request apart and its body in. The correlation id is known whatever else is wrong.
    pub async fn open(face: Arc<Face>, request: Request) -> (Result<Self, Failure>, CorrelationId) {
        let (limit_bytes, timeout_ms) = (face.settings.body_limit_bytes, face.settings.body_timeout_ms);
        let intake = Intake { limit_bytes, timeout_ms };
        let (arrival, correlation) = Arrival::take(request, &*face.kernel.ports().ids, intake).await;
        let call = arrival.map_err(Failure::from).and_then(|arrival| {
            let principal = match arrival.principal()? {
                _ if arrival.params.has(HOOK) => hook_sender(&arrival),
                Some(principal) => principal,
                None if arrival.is_anonymous() => link_holder(&arrival)?,
                None => face.local.clone(),
            };
            let Arrival { parts, correlation, body, params } = arrival;
            Ok(Self { face, parts, principal, correlation, body, params })
        });
        (call, correlation)
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// The parameter of the path. What cannot be an id names nothing.
    pub fn param(&self, name: &str) -> Result<&str, Failure> {
        let nothing = || Failure::not_found("there is nothing at this path");
        self.params.id(name, ID_BYTES).filter(|id| !id.contains(char::is_whitespace)).ok_or_else(nothing)
    }

    /// The id of the trigger in the path, without its tenant; what cannot be one names nothing.
    pub fn hook(&self) -> &str {
        let name = self.params.id(HOOK, HOOK_BYTES).unwrap_or_default();
        name.split_once('.').map_or(name, |(id, _)| id)
    }

    pub fn query(&self, known: &[&str]) -> Result<Query, Failure> {
        Ok(Query::read(&self.parts.uri, known)?)
    }

    /// The same with names that may be given several times.
    pub fn query_with_lists(&self, known: &[&str], lists: &[&str]) -> Result<Query, Failure> {
        Ok(Query::read_with_lists(&self.parts.uri, known, lists)?)
    }

    /// The prefix the client calls us under; what we point to keeps it.
    pub fn prefix(&self) -> &'static str {
        if self.parts.uri.path().starts_with("/api/") { "/api/v1" } else { "/v1" }
    }

    pub fn execution_url(&self, execution: &str) -> String {
        format!("{}/executions/{execution}", self.prefix())
    }

    /// The whole body, as it came.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// A body of JSON that must be there.
    pub fn read(&self, known: &[&str]) -> Result<ask::Body, Failure> {
        self.expect_json()?;
        Ok(ask::object(&self.body, known)?)
    }

    /// The same of a body that may be large: it is read beside the other requests, in turns by tenant.
    pub async fn read_large(&self, known: &'static [&'static str]) -> Result<ask::Body, Failure> {
        self.expect_json()?;
        let body = self.body.clone();
        let read = move || ask::object(&body, known);
        Ok(self.face.kernel.heavy().run(&self.principal, self.body.len(), read).await??)
    }

    /// A body of JSON that may be left out.
    pub fn read_if_any(&self, known: &[&str]) -> Result<ask::Body, Failure> {
        match self.body.is_empty() {
            true => Ok(ask::Body { members: Map::new(), text_bytes: 0 }),
            false => self.read(known),
        }
    }

    fn expect_json(&self) -> Result<(), Failure> {
        let message = match headers::media(self.headers()) {
            Media::Json => return Ok(()),
            Media::XmlOrYaml => "Workflows must use JSON format (ADR-002)",
            Media::Form | Media::Other | Media::Unsaid => {
                "send JSON, and say so: Content-Type: application/json"
            }
        };
        Err(Failure::invalid("Content-Type", message).status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
    }

    /// Runs an action that reads or that may be repeated.
    pub async fn ask(
        &self,
        action: &'static str,
        args: Map<String, Value>,
    ) -> Result<Map<String, Value>, Failure> {
        Ok(given(self.face.kernel.submit(self.submission(action, Args::new(args))?).await)?.value)
    }

    /// Runs an action once per Idempotency-Key, if the request has one (ADR-003, WF-19.9).
    pub async fn once(&self, action: &'static str, args: Args) -> Result<Given, Failure> {
        let mut submission = self.submission(action, args)?;
        if let Some(key) = headers::idempotency_key(self.headers())? {
            let scope = key_scope(action, &self.principal);
            submission.identities.push(Identity { scope, key, ttl_ms: self.face.settings.key_ttl_ms });
        }
        given(self.face.kernel.submit(submission).await)
    }

    /// Runs an action that waits; it stops waiting when the client leaves.
    pub async fn wait(
        &self,
        action: &'static str,
        args: Map<String, Value>,
    ) -> Result<Map<String, Value>, Failure> {
        let submission = self.submission(action, Args::new(args))?;
        Ok(self.face.wait(submission).await?.value)
    }

    fn submission(&self, action: &'static str, args: Args) -> Result<Submission, Failure> {
        let limit = self.face.kernel.limits().payload_bytes;
        if let Err(bytes) = args.fits(limit) {
            let message = format!("the body has {bytes} bytes as compact JSON; the limit is {limit}");
            return Err(Fault::new(Code::PayloadTooLarge, message).with("limitBytes", limit).into());
        }
        let mut submission = Submission::new(action, args, self.principal.clone(), self.correlation.clone());
        submission.transport = Transport::Http;
        submission.source = orchestr8_edge::source("workflows", &self.parts.extensions);
        submission.trace = orchestr8_edge::trace(self.headers());
        Ok(submission)
    }
}

/// The object an action gave, or why it gave none.
pub(crate) fn given(settled: Settled) -> Result<Given, Failure> {
    let replayed = settled.replayed;
    match settled.result {
        Ok(Output::Json { value: Value::Object(value) }) => Ok(Given { value, replayed }),
        Ok(Output::Json { .. } | Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. }) => {
            Err(Fault::internal("the action gave something that is no object").into())
        }
        Err(Halt::Asks(_)) => {
            Err(Fault::internal("the action asks a question nobody can answer here").into())
        }
        Err(Halt::Fault(fault)) if replayed => {
            Err(Failure::from(fault).header(crate::answer::REPLAYED, http::HeaderValue::from_static("true")))
        }
        Err(Halt::Fault(fault)) => Err(fault.into()),
    }
}
