//! POST: one message, or a batch of the one revision that has them.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use orchestr8_contract::id::{CorrelationId, Key};
use orchestr8_edge::Caller;
use orchestr8_kernel::{Principal, Source, Transport};

use crate::connection::{Connection, Facts, Incoming, Pending, Phase, Received, Reply};
use crate::wire;

use super::body::{Events, Stop};
use super::headers::{self, Era};
use super::session::{Busy, Session, header};
use super::sessions::whole;
use super::stream::{Begun, Stream};
use super::{Endpoint, answer, event, mirror, refusal};

/// A message and what is known of it.
struct Call {
    headers: HeaderMap,
    text: Bytes,
    who: Arc<Principal>,
    elevated: Option<Arc<Principal>>,
    source: Source,
    key: Option<Key>,
}

impl Call {
    /// The id of the message: its own in the headers, or the one of its conversation.
    fn id(&self, conversation: &Connection) -> CorrelationId {
        headers::correlation(&self.headers).unwrap_or_else(|| conversation.id().clone())
    }

    fn correlation(&self, conversation: &Connection) -> HeaderValue {
        header(&self.id(conversation))
    }

    /// Gives the message to a conversation.
    fn give(&self, to: &Arc<Connection>, modern: bool, related: &Arc<Stream>) -> Received {
        let check = |facts: &Facts<'_>| mirror::check(&self.headers, facts);
        let incoming = Incoming {
            modern,
            who: self.elevated.clone(),
            source: Some(self.source),
            idempotency_key: self.key.clone(),
            correlation: headers::correlation(&self.headers),
            trace: orchestr8_edge::trace(&self.headers),
            check_headers: Some(&check),
            oversized: None,
        };
        to.receive(&self.text, &incoming, related.clone())
    }
}

impl Endpoint {
    pub(super) async fn post(self: Arc<Self>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let timeout = Duration::from_millis(self.settings.body_timeout_ms);
        let text = match orchestr8_edge::body::read(body, self.settings.body_limit_bytes, timeout).await {
            Ok(text) => text,
            Err(error) => return self.refuse(&refusal::body(&error), None, &parts.headers),
        };
        let admitted = self.admit(&parts.headers).and_then(|modern| {
            let caller = Caller::of(&parts.extensions).map(|caller| &**caller);
            let who = self.gate.principal(caller).ok_or_else(refusal::tenant)?;
            let rule = "1 to 255 of A-Z a-z 0-9 _ -";
            let key = headers::idempotency_key(&parts.headers)
                .map_err(|_| refusal::header("Idempotency-Key", rule))?;
            Ok((modern, who, key))
        });
        let (modern, who, key) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => return self.refuse(&error, Some(&text), &parts.headers),
        };
        let elevated = self.gate.elevated(&parts.headers, &who);
        let is_wrong = elevated.is_none() && self.gate.is_wrong(&parts.headers);
        let source = orchestr8_edge::source("mcp", &parts.extensions);
        let call = Call { headers: parts.headers, text, who, elevated, source, key };
        let mut response = if modern { self.post_modern(call).await } else { self.post_legacy(call).await };
        if is_wrong {
            // Answered as without it, and counted as a failed login.
            response.extensions_mut().insert(orchestr8_edge::WrongCredentials);
        }
        response
    }

    /// Whether the request is of the modern era; or what is wrong with its headers.
    fn admit(&self, headers: &HeaderMap) -> Result<bool, wire::Error> {
        if !headers::is_json(headers) {
            return Err(refusal::media_type());
        }
        let accepts = headers::accepts(headers);
        if !accepts.json || !accepts.events {
            return Err(refusal::not_acceptable("both application/json and text/event-stream"));
        }
        match headers::era(headers, self.eras) {
            Ok(Era::Modern) => Ok(true),
            Ok(Era::Legacy) => Ok(false),
            Ok(Era::Unsupported(version)) => Err(refusal::version(version, self.eras)),
            Err(headers::Unreadable) => Err(refusal::header("MCP-Protocol-Version", "given once, in ASCII")),
        }
    }

    async fn post_modern(self: Arc<Self>, call: Call) -> Response {
        let who = call.elevated.as_ref().unwrap_or(&call.who).clone();
        let connection = self.face.connect(who, Transport::Http, self.nowhere.clone());
        let related = Stream::new(&self.budget, false);
        let mut correlation = call.correlation(&connection);
        let pending = match call.give(&connection, true, &related) {
            Received::Nothing => return answer::empty(StatusCode::ACCEPTED, correlation),
            Received::Reply(reply) if !related.has_begun() => return answer::json(reply),
            Received::Reply(reply) => {
                correlation = header(&reply.correlation);
                related.finish(Some(reply));
                None
            }
            Received::Pending(pending) => {
                correlation = header(pending.correlation());
                Some(pending)
            }
        };
        Box::pin(async move {
            // Dropped with this future or with the body, it tells the work that the client has left.
            let (begun, pending) = begin(&related, pending, self.keep_alive()).await;
            match begun {
                Begun::Reply(Some(reply)) => answer::json(reply),
                Begun::Reply(None) => answer::silence(correlation),
                Begun::Events => {
                    let events = Events::new(related.attach(0), event::COMMENT, self.keep_alive());
                    answer::events(
                        events.with_pending(pending).with_stop(self.stop(Some(connection))).into_body(),
                        correlation,
                    )
                }
            }
        })
        .await
    }

    async fn post_legacy(self: Arc<Self>, call: Call) -> Response {
        let id = match headers::one(&call.headers, &headers::SESSION) {
            Ok(Some(id)) => id,
            Ok(None) => return Box::pin(self.post_first(call)).await,
            Err(headers::Unreadable) => {
                return self.refuse(&refusal::unknown_session(), Some(&call.text), &call.headers);
            }
        };
        let session = match self.sessions.known(id, &call.who) {
            Some(session) => session,
            None => match Box::pin(self.sessions.restore(id, &call.who)).await {
                Ok(Some(session)) => session,
                Ok(None) => return self.refuse(&refusal::unknown_session(), Some(&call.text), &call.headers),
                Err(fault) => return self.refuse(&refusal::fault(&fault), Some(&call.text), &call.headers),
            },
        };
        let related = Stream::new(&self.budget, session.primed);
        let received = call.give(&session.connection, false, &related);
        if session.has_unsaved()
            && let Err(fault) = Box::pin(self.sessions.save(&session)).await
        {
            return answer::refuse(&refusal::fault(&fault), Some(&call.text), &call.id(&session.connection));
        }
        match received {
            Received::Reply(reply) if !related.has_begun() => answer::json(reply),
            // It ended between our finding it and its taking the message.
            Received::Nothing if session.connection.phase() == Phase::Closed => {
                answer::refuse(&refusal::unknown_session(), Some(&call.text), &call.id(&session.connection))
            }
            Received::Nothing => answer::empty(StatusCode::ACCEPTED, call.correlation(&session.connection)),
            Received::Reply(reply) => {
                let correlation = header(&reply.correlation);
                related.finish(Some(reply));
                Box::pin(self.answer_later(session, related, correlation)).await
            }
            Received::Pending(pending) => {
                let correlation = header(pending.correlation());
                finish_later(&session, &related, pending);
                Box::pin(self.answer_later(session, related, correlation)).await
            }
        }
    }

    /// The answer of a call that takes its time: one body, or a stream the client can come back to.
    async fn answer_later(
        self: Arc<Self>,
        session: Arc<Session>,
        related: Arc<Stream>,
        correlation: HeaderValue,
    ) -> Response {
        let busy = Busy::new(&session);
        let (begun, _) = begin(&related, None, self.keep_alive()).await;
        let name = match begun {
            Begun::Reply(Some(reply)) => return answer::json(reply),
            Begun::Reply(None) => return answer::silence(correlation),
            Begun::Events => session.streams.register(&related),
        };
        let Some(name) = name else { return answer::silence(correlation) };
        let first = match session.primed {
            true => event::priming(&name, 0, self.settings.retry_ms),
            false => event::COMMENT,
        };
        let events = Events::new(related.attach(0), first, self.keep_alive()).with_busy(busy);
        answer::events(events.into_body(), correlation)
    }

    /// A message outside any session: `initialize` begins one, anything else is refused.
    async fn post_first(self: Arc<Self>, call: Call) -> Response {
        let streams = self.sessions.streams();
        let connection = self.face.connect(call.who.clone(), Transport::Http, streams.clone());
        let reply = match call.give(&connection, false, &Stream::new(&self.budget, false)) {
            Received::Reply(reply) => Some(reply),
            Received::Pending(pending) => pending.await,
            Received::Nothing => None,
        };
        let Some(reply) = reply else {
            return answer::refuse(&refusal::no_session(), Some(&call.text), &call.id(&connection));
        };
        let Some(saved) = connection.saved() else {
            // Nothing that fails here is a success of HTTP, whatever it would be within a session.
            let status = if reply.status < 400 { StatusCode::BAD_REQUEST.as_u16() } else { reply.status };
            return answer::json(Reply { status, ..reply });
        };
        let opening = self.sessions.clone().open(connection.clone(), streams, call.who.clone(), saved);
        match whole(opening).await {
            Ok(session) => {
                let mut response = answer::json(reply);
                if let Ok(id) = HeaderValue::from_str(session.id.as_str()) {
                    response.headers_mut().insert(headers::SESSION, id);
                }
                response
            }
            Err(fault) => answer::refuse(&refusal::fault(&fault), Some(&call.text), &call.id(&connection)),
        }
    }

    /// What ends a stream that has no end of its own.
    pub(super) fn stop(&self, connection: Option<Arc<Connection>>) -> Stop {
        Stop { fires: Box::pin(self.settings.shutdown.clone().cancelled_owned()), connection }
    }
}

/// In the legacy era a client that leaves has not cancelled: the work goes on, and its answer waits on the stream.
fn finish_later(session: &Arc<Session>, related: &Arc<Stream>, pending: Pending) {
    let (busy, related) = (Busy::new(session), related.clone());
    tokio::spawn(async move {
        related.finish(pending.await);
        drop(busy);
    });
}

/// Waits until the form of the answer is known. After a while without a word it is a stream, so that comments can keep the
/// connection alive.
async fn begin(
    related: &Stream,
    mut pending: Option<Pending>,
    patience: Duration,
) -> (Begun, Option<Pending>) {
    let mut silence = pin!(tokio::time::sleep(patience));
    let begun = poll_fn(|context| {
        if let Some(waited) = &mut pending
            && let Poll::Ready(reply) = Pin::new(waited).poll(context)
        {
            pending = None;
            related.finish(reply);
        }
        match related.poll_begun(context) {
            Poll::Ready(begun) => Poll::Ready(begun),
            Poll::Pending => silence.as_mut().poll(context).map(|()| Begun::Events),
        }
    });
    let begun = begun.await;
    (begun, pending)
}
