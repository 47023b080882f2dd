//! One message in, one answer out: the way of a message through a connection.

use std::sync::{Arc, OnceLock};

use orchestr8_contract::Code;
use orchestr8_contract::id::CorrelationId;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Cancel, Why};
use serde_json::json;
use serde_json::value::RawValue;

use crate::connection::{Connection, Incoming, Pending, Phase, Received, Reply};
use crate::era::{Era, Revision};
use crate::face::Outlet;
use crate::from_wire::Params;
use crate::handshake::{self, admit_legacy, admit_modern};
use crate::methods::Serve;
use crate::oversized;
use crate::request::{Answer, Outcome, Request};
use crate::wire::{self, Error, Id, Message, Raw, Refused};

/// A request in flight. Dropped unanswered, its client is gone.
struct Ticket {
    connection: Arc<Connection>,
    id: Id,
    cancel: Cancel,
    is_answered: bool,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.connection.in_flight.lock().remove(&self.id);
        if !self.is_answered {
            self.cancel.fire(Why::Disconnect);
        }
    }
}

/// What an answer needs beside its outcome.
struct Envelope {
    id: Id,
    era: Era,
    /// The client's id for the request, or the one that was made for it, once one was needed (MCP-CORR-1, MCP-CORR-2).
    correlation: OnceLock<CorrelationId>,
}

impl Connection {
    /// One JSON-RPC message, or a batch where the revision allows it. `related` carries what belongs to this request:
    /// progress, log messages, questions. Needs a tokio runtime around it.
    pub fn receive(
        self: &Arc<Self>,
        text: &[u8],
        incoming: &Incoming<'_>,
        related: Arc<dyn Outlet>,
    ) -> Received {
        if self.phase() == Phase::Closed {
            return Received::Nothing;
        }
        match wire::read(text) {
            Err(Refused { id, error }) => Received::Reply(self.refuse(id.as_ref(), &error)),
            Ok(Message::Batch(messages)) => self.receive_batch(&messages, incoming, &related),
            Ok(message) => self.receive_one(message, incoming, &related),
        }
    }

    /// An error outside any method. Its correlation id is the connection's: nothing else is known (MCP-CORR-4).
    pub(crate) fn refuse(&self, id: Option<&Id>, error: &Error) -> Reply {
        self.face.kernel().log().debug("refused a message", || {
            json!({"correlationId": self.id.as_str(), "outcome": "protocol_error", "code": error.code, "reason": error.message})
        });
        let text = wire::response(id, "error", &error.to_json(&self.id));
        Reply { text, status: error.status, correlation: self.id.clone(), is_replay: false }
    }

    fn receive_one(
        self: &Arc<Self>,
        message: Message<'_>,
        incoming: &Incoming<'_>,
        related: &Arc<dyn Outlet>,
    ) -> Received {
        match message {
            Message::Request { id, method, params } => self.serve(id, &method, params, incoming, related),
            Message::Notification { method, params } => {
                self.note(&method, params);
                Received::Nothing
            }
            Message::Response { id, result, error } => {
                self.asks.answered(id.as_ref(), result, error);
                Received::Nothing
            }
            Message::Batch(_) => {
                let error = Error::new(wire::INVALID_REQUEST, "Invalid Request: a batch cannot hold a batch");
                Received::Reply(self.refuse(None, &error))
            }
        }
    }

    /// A notification is never answered; one that says nothing to us is ignored.
    fn note(self: &Arc<Self>, method: &str, params: Option<Raw<'_>>) {
        match method {
            "notifications/initialized" | "initialized" => handshake::initialized(self),
            "notifications/cancelled" => {
                let Ok(params) = Params::read(params) else { return };
                let id = params.get("requestId").and_then(|raw| Id::read(raw.get()));
                let cancel = id.and_then(|id| self.in_flight.lock().get(&id).cloned());
                if let Some(cancel) = cancel {
                    cancel.fire(Why::Client);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn serve(
        self: &Arc<Self>,
        id: Id,
        method: &str,
        params: Option<Raw<'_>>,
        incoming: &Incoming<'_>,
        related: &Arc<dyn Outlet>,
    ) -> Received {
        let params = Params::read(params);
        let given =
            params.as_ref().ok().and_then(Params::correlation).or_else(|| incoming.correlation.clone());
        let correlation = given.map_or_else(OnceLock::new, OnceLock::from);
        let says_modern = incoming.modern || params.as_ref().is_ok_and(Params::is_modern);
        let is_modern = says_modern && self.face.settings().eras.modern;
        let era = if is_modern { Era::Modern } else { Era::Legacy(Revision::NEWEST) };
        let mut envelope = Envelope { id, era, correlation };
        let admitted = if is_modern {
            admit_modern(self, method, params, incoming)
        } else {
            admit_legacy(self, method, params)
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(outcome) => return Received::Reply(self.reply(&envelope, outcome)),
        };
        envelope.era = admitted.era;
        let ticket = match self.enter(&envelope.id) {
            Ok(ticket) => ticket,
            Err(error) => return Received::Reply(self.reply(&envelope, Err(error).into())),
        };
        let request = Request {
            connection: self,
            era: admitted.era,
            id: &envelope.id,
            method: admitted.method,
            params: &admitted.params,
            incoming,
            related,
            capabilities: admitted.capabilities,
            log_level: admitted.log_level,
            cancel: &ticket.cancel,
            correlation: &envelope.correlation,
        };
        let answer = match (incoming.oversized, &admitted.method.serve) {
            (Some(bytes), _) => oversized::answer(&request, bytes),
            (None, Serve::Now(serve)) => serve(&request).into(),
            (None, Serve::Any(serve)) => serve(&request),
        };
        self.answer(answer, envelope, ticket)
    }

    /// Notes a request as in flight. An id that is in flight already is refused; the first request is not affected.
    fn enter(self: &Arc<Self>, id: &Id) -> Result<Ticket, Error> {
        let max = self.face.kernel().limits().in_flight;
        let cancel = Cancel::new();
        let mut in_flight = self.in_flight.lock();
        if in_flight.len() >= max {
            return Err(Error::new(
                wire::INTERNAL,
                format!("{max} requests are in flight; send again shortly"),
            )
            .with("code", Code::ResourceExhausted.as_str()));
        }
        match in_flight.entry(id.clone()) {
            std::collections::hash_map::Entry::Occupied(_) => {
                Err(Error::new(wire::INVALID_REQUEST, "Invalid Request: a request with this id is in flight"))
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(cancel.clone());
                drop(in_flight);
                Ok(Ticket { connection: self.clone(), id: id.clone(), cancel, is_answered: false })
            }
        }
    }

    fn answer(self: &Arc<Self>, answer: Answer, envelope: Envelope, mut ticket: Ticket) -> Received {
        match answer {
            Answer::Now(outcome) => {
                ticket.is_answered = true;
                Received::Reply(self.reply(&envelope, outcome))
            }
            Answer::Later(mut later) => {
                let connection = self.clone();
                let correlation = self.fresh_unless(&envelope.correlation).clone();
                let reply = Box::pin(async move {
                    let cancel = ticket.cancel.clone();
                    let outcome = tokio::select! {
                        biased;
                        () = cancel.fired() => match cancel.why() {
                            // There is no answer after a cancel, nor to a client that is gone.
                            Some(Why::Client | Why::Disconnect) => None,
                            Some(Why::Deadline) | None => Some(later.await),
                        },
                        outcome = &mut later => Some(outcome),
                    };
                    ticket.is_answered = true;
                    drop(ticket);
                    let is_wanted = connection.phase() != Phase::Closed;
                    outcome.filter(|_| is_wanted).map(|outcome| connection.reply(&envelope, outcome))
                });
                Received::Pending(Pending { reply, correlation })
            }
        }
    }

    fn reply(&self, envelope: &Envelope, outcome: Outcome) -> Reply {
        let Outcome { result, correlation } = outcome;
        let correlation = correlation.or_else(|| envelope.correlation.get().cloned());
        match result {
            Ok(body) => {
                let correlation = correlation.unwrap_or_else(|| self.id.clone());
                let is_replay = body.is_replay;
                let text = body.respond(&envelope.id, envelope.era, self.face.server());
                Reply { text, status: 200, correlation, is_replay }
            }
            Err(error) => {
                let correlation =
                    correlation.unwrap_or_else(|| self.fresh_unless(&envelope.correlation).clone());
                self.face.kernel().log().debug("answered with an error", || {
                    json!({"correlationId": correlation.as_str(), "outcome": "protocol_error", "code": error.code, "reason": error.message})
                });
                let text = wire::response(Some(&envelope.id), "error", &error.to_json(&correlation));
                Reply { text, status: error.status, correlation, is_replay: false }
            }
        }
    }

    /// The id of a request; made now if there is none yet.
    pub(crate) fn fresh_unless<'a>(&self, correlation: &'a OnceLock<CorrelationId>) -> &'a CorrelationId {
        let ids = &self.face.kernel().ports().ids;
        correlation.get_or_init(|| CorrelationId::from_uuid(ids.fresh(For::Correlation)))
    }

    /// Several messages at once, which only one revision has. The answers come together, in the order of the messages.
    fn receive_batch(
        self: &Arc<Self>,
        messages: &[&RawValue],
        incoming: &Incoming<'_>,
        related: &Arc<dyn Outlet>,
    ) -> Received {
        let has_batches = {
            let state = self.state.lock();
            state.phase == Phase::Running && state.revision.has_batches()
        };
        let refuse = |why: String| {
            Received::Reply(
                self.refuse(None, &Error::new(wire::INVALID_REQUEST, format!("Invalid Request: {why}"))),
            )
        };
        if !has_batches {
            return refuse("this protocol revision has no batches".into());
        }
        if messages.is_empty() || messages.len() > wire::BATCH {
            return refuse(format!("a batch holds 1 to {} messages", wire::BATCH));
        }
        let mut answers = Vec::new();
        for message in messages {
            let received = match wire::read(message.get().as_bytes()) {
                Err(Refused { id, error }) => Received::Reply(self.refuse(id.as_ref(), &error)),
                Ok(message) => self.receive_one(message, incoming, related),
            };
            match received {
                Received::Nothing => {}
                Received::Reply(_) | Received::Pending(_) => answers.push(received),
            }
        }
        if answers.is_empty() {
            return Received::Nothing;
        }
        let (connection, correlation) = (self.id.clone(), self.id.clone());
        let reply = Box::pin(async move {
            let mut texts = Vec::with_capacity(answers.len());
            for answer in answers {
                match answer {
                    Received::Nothing => {}
                    Received::Reply(reply) => texts.push(reply.text),
                    Received::Pending(pending) => texts.extend(pending.await.map(|reply| reply.text)),
                }
            }
            (!texts.is_empty()).then(|| Reply {
                text: format!("[{}]", texts.join(",")),
                status: 200,
                correlation: connection,
                is_replay: false,
            })
        });
        Received::Pending(Pending { reply, correlation })
    }
}
