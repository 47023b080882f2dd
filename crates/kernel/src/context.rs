//! What the work of an action gets beside its arguments: who asks, when to stop, and the way to everything else.

use std::sync::Arc;

use futures::future::try_join_all;
use orchestr8_contract::id::{CorrelationId, RunId};
use orchestr8_contract::trace::TRACEPARENT;
use orchestr8_contract::{Code, Fault, TraceParent};
use serde_json::{Value, json};

use crate::action::{Action, Halt};
use crate::cancel::Cancel;
use crate::kernel::Kernel;
use crate::log::Log;
use crate::outcome::Settled;
use crate::peer::{About, Answered, Ask, Peer, Severity};
use crate::source::Source;
use crate::submission::{Args, Principal, Submission, Transport};

#[derive(Clone)]
pub struct Context {
    pub run: RunId,
    pub correlation: CorrelationId,
    /// What to pass on to whomever the work calls: the trace of the submission, with this run as the parent.
    pub trace: Option<TraceParent>,
    pub principal: Arc<Principal>,
    pub transport: Transport,
    pub source: Source,
    /// The workflow whose step submitted it.
    pub workflow: Option<Arc<str>>,
    /// Work stops promptly when it fires (MCP-TIMEOUT-3).
    pub cancel: Cancel,
    pub kernel: Kernel,
    pub(crate) peer: Option<Arc<dyn Peer>>,
}

impl Context {
    /// A log whose entries carry the ids of this run.
    pub fn log(&self) -> Log {
        let mut fields = json!({"correlationId": self.correlation, "runId": self.run});
        if let Some(trace) = self.trace {
            fields[TRACEPARENT] = trace.to_string().into();
        }
        self.kernel.log().child(fields)
    }

    /// An error if the work should stop; for use between steps and inside loops.
    pub fn check(&self) -> Result<(), Fault> {
        match self.cancel.is_fired() {
            true => Err(Fault::new(Code::Cancelled, "stopped on request")),
            false => Ok(()),
        }
    }

    /// Tells the client how far the work has come, if it asked to know.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(peer) = &self.peer {
            peer.progress(done, total, message);
        }
    }

    /// Sends a log message to the client, if it wants such.
    pub fn tell(&self, severity: Severity, data: Value) {
        if let Some(peer) = &self.peer {
            peer.log(severity, Some("orchestr8"), data);
        }
    }

    /// Passes on a log message of another program, under its own name.
    pub fn relay_log(&self, severity: Severity, logger: Option<&str>, data: Value) {
        if let Some(peer) = &self.peer {
            peer.log(severity, logger, data);
        }
    }

    /// Whether the client hears log messages that belong to no call.
    pub fn hears_broadcasts(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.hears_broadcasts())
    }

    /// From which level on the client wants log messages.
    pub fn log_level(&self) -> Option<Severity> {
        self.peer.as_ref()?.log_level()
    }

    /// What the calls of this client have in common, if it is known.
    pub fn conversation(&self) -> Option<Arc<str>> {
        self.peer.as_ref()?.conversation()
    }

    /// Whether the client has this call as a task, and asks after it.
    pub fn in_task(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.in_task())
    }

    /// Says in words where the work stands, if the client asks after it.
    pub fn status(&self, message: &str) {
        if let Some(peer) = &self.peer {
            peer.status(message);
        }
    }

    pub fn close_stream(&self) {
        if let Some(peer) = &self.peer {
            peer.close_stream();
        }
    }

    /// Whether the client can be asked such a thing.
    pub fn can_ask(&self, about: About) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.can(about))
    }

    /// Whether the caller gets to see this action: it has a role for it, and nothing hides it from its client.
    pub fn sees(&self, action: &Action) -> bool {
        let is_within_limit =
            self.principal.tools.as_ref().is_none_or(|tools| tools.allows(action.name.as_str()));
        is_within_limit
            && action.admits(&self.principal)
            && self.peer.as_ref().is_none_or(|peer| peer.sees(action))
    }

    /// Asks the client. Where the protocol has no way back to it, this ends the run with the question, and the client
    /// sends the call again with the answer; so ask before changing anything.
    pub async fn ask(&self, ask: Ask) -> Result<Value, Halt> {
        let answers = self.ask_all(vec![ask]).await?;
        answers
            .into_iter()
            .next()
            .ok_or_else(|| Halt::Fault(Fault::internal("a question was left unanswered")))
    }

    /// Asks several things at once; the answers come in the order of the questions.
    pub async fn ask_all(&self, asks: Vec<Ask>) -> Result<Vec<Value>, Halt> {
        let Some(peer) = &self.peer else {
            return Err(Halt::Fault(Fault::new(Code::Unavailable, "nobody is there to be asked")));
        };
        let answered = try_join_all(asks.iter().map(|ask| peer.ask(ask.clone()))).await?;
        let mut answers = Vec::with_capacity(asks.len());
        let mut open = Vec::new();
        for (ask, answered) in asks.into_iter().zip(answered) {
            match answered {
                Answered::With(value) => answers.push(value),
                Answered::Later => open.push(ask),
            }
        }
        if open.is_empty() { Ok(answers) } else { Err(Halt::Asks(open)) }
    }

    /// Runs another action on behalf of this one: same caller, same correlation, stops with it.
    pub async fn submit(&self, action: impl Into<Arc<str>>, args: Args) -> Settled {
        let mut child = Submission::new(action, args, self.principal.clone(), self.correlation.clone());
        child.source = self.source;
        child.trace = self.trace;
        child.cancel = self.cancel.child();
        child.peer = self.peer.clone();
        self.kernel.submit(child).await
    }
}
