//! The HTTP transport of revision 2024-11-05: a GET opens the stream of a session, whose first event names the address that
//! messages are sent to. Every answer comes on the stream.
//!
//! Such a session lives as long as its stream; there is nothing to come back to. Host, Origin, credentials and the number of
//! streams are checked by the edge as for any other request.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use http_body::Frame;
use orchestr8_edge::Caller;
use orchestr8_kernel::{Principal, Transport};
use parking_lot::Mutex;

use crate::connection::{Connection, Incoming, Received};
use crate::face::Outlet;

use super::body::Events;
use super::session::{SessionId, header};
use super::stream::Stream;
use super::{Endpoint, SESSIONS, answer, headers, refusal};

/// Where clients of that revision find us, and where they send messages.
pub const SSE_PATH: &str = "/sse";
pub(super) const MESSAGES_PATH: &str = "/sse/messages";

/// The parameter of the address that names a session.
const SESSION: &str = "sessionId=";

/// The sessions whose streams are open.
#[derive(Default)]
pub(super) struct SseSessions(Mutex<HashMap<SessionId, Arc<SseSession>>>);

struct SseSession {
    connection: Arc<Connection>,
    owner: Arc<Principal>,
    stream: Arc<Stream>,
}

/// The stream of a session, which ends with it.
struct SessionBody {
    events: Events,
    _session: OpenSession,
}

/// An open session; dropped, it is over.
struct OpenSession {
    table: Weak<SseSessions>,
    id: SessionId,
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        let session = self.table.upgrade().and_then(|table| table.0.lock().remove(self.id.as_str()));
        if let Some(session) = session {
            session.connection.close();
        }
    }
}

impl http_body::Body for SessionBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.events).poll_frame(context)
    }
}

impl Endpoint {
    /// Opens a session and its stream.
    pub(super) fn open_sse(self: Arc<Self>, request: &Parts) -> Response {
        let refuse = |error| self.refuse(&error, None, &request.headers);
        if !self.eras.legacy {
            return self.refuse_method("", &request.headers);
        }
        if !headers::accepts(&request.headers).events {
            return refuse(refusal::not_acceptable("text/event-stream"));
        }
        let caller = Caller::of(&request.extensions).map(|caller| &**caller);
        let Some(owner) = self.gate.principal(caller) else { return refuse(refusal::tenant()) };
        let stream = Stream::new(&self.budget, false);
        let connection = self.face.connect(owner.clone(), Transport::Http, stream.clone());
        let id = SessionId::fresh(&*self.face.kernel().ports().ids);
        {
            let mut open = self.sse.0.lock();
            if open.len() >= SESSIONS {
                return refuse(refusal::full(SESSIONS));
            }
            let session = SseSession { connection: connection.clone(), owner, stream: stream.clone() };
            open.insert(id.clone(), Arc::new(session));
        }
        let first = format!("event: endpoint\ndata: {MESSAGES_PATH}?{SESSION}{}\n\n", id.as_str());
        let events =
            Events::new(stream.attach(0), first.into(), self.keep_alive()).with_stop(self.stop(None));
        let session = OpenSession { table: Arc::downgrade(&self.sse), id };
        answer::events(Body::new(SessionBody { events, _session: session }), header(connection.id()))
    }

    /// Takes a message; what it leads to is said on the stream of its session.
    pub(super) async fn take_sse(self: Arc<Self>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let refuse = |error| self.refuse(&error, None, &parts.headers);
        let timeout = Duration::from_millis(self.settings.body_timeout_ms);
        let text = match orchestr8_edge::body::read(body, self.settings.body_limit_bytes, timeout).await {
            Ok(text) => text,
            Err(error) => return refuse(refusal::body(&error)),
        };
        if !headers::is_json(&parts.headers) {
            return refuse(refusal::media_type());
        }
        let caller = Caller::of(&parts.extensions).map(|caller| &**caller);
        let Some(who) = self.gate.principal(caller) else { return refuse(refusal::tenant()) };
        let Some(session) = self.sse.find(parts.uri.query(), &who) else {
            return refuse(refusal::unknown_session());
        };
        let Ok(key) = headers::idempotency_key(&parts.headers) else {
            return refuse(refusal::header("Idempotency-Key", "1 to 255 of A-Z a-z 0-9 _ -"));
        };
        let incoming = Incoming {
            who: self.gate.elevated(&parts.headers, &who),
            source: Some(orchestr8_edge::source("mcp", &parts.extensions)),
            idempotency_key: key,
            correlation: headers::correlation(&parts.headers),
            trace: orchestr8_edge::trace(&parts.headers),
            ..Incoming::default()
        };
        let related: Arc<dyn Outlet> = session.stream.clone();
        let received = session.connection.receive(&text, &incoming, related);
        let correlation = match received {
            Received::Nothing => header(session.connection.id()),
            Received::Reply(reply) => {
                session.stream.reply(reply.text);
                header(&reply.correlation)
            }
            Received::Pending(pending) => {
                let correlation = header(pending.correlation());
                tokio::spawn(async move {
                    if let Some(reply) = pending.await {
                        session.stream.reply(reply.text);
                    }
                });
                correlation
            }
        };
        answer::empty(StatusCode::ACCEPTED, correlation)
    }
}

impl SseSessions {
    /// The session that an address names, if it is one of this principal with the same rights.
    fn find(&self, query: Option<&str>, who: &Principal) -> Option<Arc<SseSession>> {
        let id = query?.split('&').find_map(|pair| pair.strip_prefix(SESSION))?;
        let session = self.0.lock().get(id)?.clone();
        let owner = &session.owner;
        let is_its = owner.name == who.name
            && owner.tenant == who.tenant
            && owner.roles == who.roles
            && owner.grant == who.grant;
        is_its.then_some(session)
    }

    #[cfg(test)]
    pub fn open(&self) -> usize {
        self.0.lock().len()
    }
}
