//! One request on its way to one action: who asks, under which ids, with what.

use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Fault, Output};
use orchestr8_edge::{Arrival, Intake, Params};
use orchestr8_kernel::refusals::RefusalSource;
use orchestr8_kernel::{Args, Halt, Principal, Settled, Source, Submission, Transport};
use serde_json::{Map, Value};

use crate::calls;
use crate::deliver::Delivery;
use crate::face::Face;
use crate::failure::Failure;
use crate::from_wire;
use crate::headers::{self, Query};
use crate::rates::Allowance;
use crate::security::keys::KeyTable;
use crate::security::{self, Kind, Who};

/// What an endpoint gives: a response, or why there is none.
pub(crate) type Outcome = Result<Response, Failure>;

/// What an action gave, and whether it is the outcome of an earlier request with the same key.
#[derive(Debug)]
pub(crate) struct Given {
    pub value: Value,
    pub replayed: bool,
}

pub(crate) struct Call {
    pub face: Arc<Face>,
    pub parts: Parts,
    pub correlation: CorrelationId,
    pub began_us: u64,
    pub body: Bytes,
    params: Params,
    allowance: Told,
}

/// What the answer tells of the caller's rate, once the caller is known.
pub(crate) type Told = Arc<OnceLock<Allowance>>;

/// An id of ours in a path: anything else cannot exist.
const ID_BYTES: usize = 256;

impl Call {
    /// Takes a request apart and its body in. The correlation id is known whatever else is wrong.
    pub async fn open(
        face: Arc<Face>,
        request: Request,
        allowance: Told,
    ) -> (Result<Self, Failure>, CorrelationId) {
        let began_us = face.elapsed_us();
        let (limit_bytes, timeout_ms) = (face.settings.body_limit_bytes, face.settings.body_timeout_ms);
        let intake = Intake { limit_bytes, timeout_ms };
        let (arrival, correlation) = Arrival::take(request, &*face.kernel.ports().ids, intake).await;
        let call = arrival.map_err(Failure::from).map(|arrival| {
            let Arrival { parts, correlation, body, params } = arrival;
            Self { face, parts, correlation, began_us, body, params, allowance }
        });
        (call, correlation)
    }

    /// The parameter of the path. What cannot be an id names nothing.
    pub fn param(&self, name: &str) -> Result<&str, Failure> {
        let nothing = || Failure::not_found("there is nothing at this path");
        self.params.id(name, ID_BYTES).filter(|id| !id.contains(char::is_whitespace)).ok_or_else(nothing)
    }

    /// How it came, if it did not come over HTTP.
    pub fn delivery(&self) -> Option<&Delivery> {
        self.parts.extensions.get()
    }

    /// From where it came. What was published before comes from the server's own queue.
    pub fn source(&self) -> Source {
        match self.delivery() {
            Some(_) => Source { face: "knowledge", ..Source::SERVER },
            None => orchestr8_edge::source("knowledge", &self.parts.extensions),
        }
    }

    /// Where it comes from, for the record of a refusal.
    pub fn refusal_source(&self) -> RefusalSource<'_> {
        RefusalSource { transport: Transport::Http, source: self.source(), correlation: &self.correlation }
    }

    /// Who sends it, and what was signed of it.
    pub async fn authenticate(&self, kind: Kind) -> Result<(Who, Bytes), Failure> {
        let keys = KeyTable::of(&self.face.kernel);
        let when = (kind, self.face.now_ms());
        security::authenticate(&self.face.settings.security, keys, &self.parts, self.body.clone(), when).await
    }

    /// Who asks without an envelope; the query names the tenant, or a header does.
    pub async fn person(&self, query: &Query) -> Result<Arc<Principal>, Failure> {
        let (who, _) = self.authenticate(Kind::Address).await?;
        let asked = match query.text("tenant_id") {
            Some(tenant) => Some(tenant),
            None => headers::tenant(&self.parts.headers)?,
        };
        let principal = who.person(asked)?;
        self.count(&principal)?;
        Ok(principal)
    }

    /// Checks an operation of this face that is no action of the kernel. Refusals are in the audit chain.
    pub async fn authorize(
        &self,
        operation: &'static str,
        principal: &Arc<Principal>,
    ) -> Result<(), Failure> {
        Ok(self.face.kernel.authorize_operation(operation, principal, self.refusal_source()).await?)
    }

    /// Counts this call as one of the caller's, or refuses it as one too many.
    pub fn count(&self, principal: &Principal) -> Result<(), Failure> {
        let (tenant, name) = (principal.tenant.as_str(), &principal.name);
        match self.face.rates.take(tenant, name, self.face.elapsed_us()) {
            None => Ok(()),
            Some(allowance) => self.allowance.get_or_init(|| allowance).check(),
        }
    }

    /// The parameters of the query, among them the tenant.
    pub fn query(&self, known: &[&str]) -> Result<Query, Failure> {
        Query::read(&self.parts.uri, &[known, &["tenant_id"]].concat())
    }

    /// A body of JSON that must be there.
    pub fn json(&self) -> Result<Map<String, Value>, Failure> {
        from_wire::object(&self.body).map_err(|wrong| Failure::invalid("/", format!("the body: {}", wrong.0)))
    }

    /// Runs an action for a person, once per Idempotency-Key if the request has one.
    pub async fn ask(
        &self,
        principal: &Arc<Principal>,
        action: &'static str,
        args: Map<String, Value>,
    ) -> Result<Given, Failure> {
        let args = Args::new(args);
        let mut submission = Submission::new(action, args, principal.clone(), self.correlation.clone());
        submission.transport = Transport::Http;
        submission.source = self.source();
        submission.trace = orchestr8_edge::trace(&self.parts.headers);
        if let Some(key) = headers::idempotency_key(&self.parts.headers)? {
            let ttl_ms = self.face.settings.key_ttl_ms;
            submission.identities.push(calls::key(action, &principal.name, key, ttl_ms));
        }
        given(self.face.kernel.submit(submission).await)
    }
}

/// What an action gave, or why it gave nothing.
pub(crate) fn given(settled: Settled) -> Result<Given, Failure> {
    let replayed = settled.replayed;
    match settled.result {
        Ok(Output::Json { value }) => Ok(Given { value, replayed }),
        Ok(Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. }) => {
            Err(Fault::internal("the action gave something that is no JSON").into())
        }
        Err(Halt::Asks(_)) => {
            Err(Fault::internal("the action asks a question nobody can answer here").into())
        }
        Err(Halt::Fault(fault)) => Err(Failure::of_action(fault).replayed(replayed)),
    }
}
