//! A request that may be served, and what serving it gives.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use orchestr8_contract::TraceParent;
use orchestr8_contract::id::{CorrelationId, RunId};
use orchestr8_contract::trace::TRACEPARENT;
use orchestr8_kernel::action::Action;
use orchestr8_kernel::authorize::authorize;
use orchestr8_kernel::peer::Severity;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::principals::Standing;
use orchestr8_kernel::refusals::RefusalSource;
use orchestr8_kernel::{Args, Cancel, Kernel, Principal, Source, Submission};

use crate::body::Body;
use crate::connection::{Connection, Incoming};
use crate::era::Era;
use crate::face::{Outlet, Settings};
use crate::from_wire::{Capabilities, Params};
use crate::methods::Method;
use crate::to_wire;
use crate::wire::{Error, Id, text_of};

/// A request that has passed the gate of its era.
pub struct Request<'a> {
    pub connection: &'a Arc<Connection>,
    pub era: Era,
    pub id: &'a Id,
    pub method: &'static Method,
    pub params: &'a Params<'a>,
    pub incoming: &'a Incoming<'a>,
    pub related: &'a Arc<dyn Outlet>,
    pub capabilities: Capabilities,
    pub log_level: Option<Severity>,
    pub cancel: &'a Cancel,
    /// Its id in the log, once it has one.
    pub correlation: &'a OnceLock<CorrelationId>,
}

impl Request<'_> {
    pub fn kernel(&self) -> &Kernel {
        self.connection.face.kernel()
    }

    pub fn settings(&self) -> &Settings {
        self.connection.face.settings()
    }

    /// Who asks.
    pub fn who(&self) -> &Arc<Principal> {
        self.incoming.who.as_ref().unwrap_or(&self.connection.who)
    }

    /// From where it asks.
    pub fn source(&self) -> Source {
        self.incoming.source.unwrap_or(Source::stdio("mcp"))
    }

    /// The wish that an action run for this request.
    pub fn submission(&self, action: Arc<str>, args: Args) -> Submission {
        // Written out, since `Submission::new` would make a cancel token and a scope that are thrown away at once.
        Submission {
            action,
            args,
            principal: self.connection.face.limited(self.who()),
            transport: self.connection.transport,
            source: self.source(),
            workflow: None,
            correlation: self.correlation(),
            trace: self.trace(),
            id: None,
            id_scope: self.connection.face.id_scope().clone(),
            identities: Vec::new(),
            fingerprint: None,
            lane: None,
            depends_on: Vec::new(),
            version: None,
            timeout_ms: None,
            timeout_is_final: false,
            cancel: self.cancel.clone(),
            peer: None,
            follow: None,
            audit_subject: None,
        }
    }

    /// The refusal of a caller that may not run this action, for methods that tell of an action without running it. It is in
    /// the audit chain before it is answered.
    pub fn refuse(&self, action: &Action) -> Option<Answer> {
        let (who, transport) = (self.who().clone(), self.connection.transport);
        let fault = authorize(action, &who, transport, Standing::Unknown).err()?;
        let (kernel, name, correlation) = (self.kernel().clone(), action.name.clone(), self.correlation());
        let source = self.source();
        Some(Answer::Later(Box::pin(async move {
            let source = RefusalSource { transport, source, correlation: &correlation };
            kernel.record_refusal(name.as_str(), &who, source, &fault).await;
            let error = to_wire::protocol_error(&fault, RunId(kernel.ports().ids.fresh(For::Run)));
            Outcome { result: Err(error), correlation: Some(correlation) }
        })))
    }

    /// The trace it is a part of: its own word for it, or the transport's. What is not well formed is ignored.
    fn trace(&self) -> Option<TraceParent> {
        let own = self.params.meta(TRACEPARENT).and_then(text_of);
        own.and_then(|text| TraceParent::parse(&text)).or(self.incoming.trace)
    }

    /// MCP-CORR-1 and MCP-CORR-2: the client's id, or a fresh one.
    pub fn correlation(&self) -> CorrelationId {
        self.connection.fresh_unless(self.correlation).clone()
    }
}

/// What serving a request gives.
pub struct Outcome {
    pub result: Result<Body, Error>,
    /// The id it has in the log, if it is not simply the one of the request or the connection.
    pub correlation: Option<CorrelationId>,
}

impl From<Result<Body, Error>> for Outcome {
    fn from(result: Result<Body, Error>) -> Self {
        Self { result, correlation: None }
    }
}

/// An outcome, now or later.
pub enum Answer {
    Now(Outcome),
    Later(BoxFuture<'static, Outcome>),
}

impl From<Result<Body, Error>> for Answer {
    fn from(result: Result<Body, Error>) -> Self {
        Answer::Now(result.into())
    }
}
