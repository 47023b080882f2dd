//! GET and DELETE: what the legacy era has beside POST.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use orchestr8_edge::Caller;

use crate::wire;

use super::body::Events;
use super::event::{self, Name, Place};
use super::headers::{self, Era};
use super::session::{Busy, Session};
use super::sessions::whole;
use super::stream::Reader;
use super::streams::Found;
use super::{Endpoint, answer, refusal};

impl Endpoint {
    /// Opens a stand-alone stream, or goes on with one where the client says it was.
    pub(super) async fn get(self: Arc<Self>, request: Parts) -> Response {
        let session = match self.session_of(&request).await {
            Ok(session) => session,
            Err(response) => return *response,
        };
        if !headers::accepts(&request.headers).events {
            return refuse(&session, &refusal::not_acceptable("text/event-stream"));
        }
        let (name, position, reader) = match self.resume(&session, &request) {
            Ok(resumed) => resumed,
            Err(error) => return refuse(&session, &error),
        };
        let first = match session.primed {
            true => event::priming(&name, position, self.settings.retry_ms),
            false => event::COMMENT,
        };
        // The answer to a call ends by itself; what is said unasked would go on for ever.
        let endless = name.kind == event::Kind::Listening;
        let events = Events::new(reader, first, self.keep_alive()).with_busy(Busy::new(&session));
        let events = if endless { events.with_stop(self.stop(None)) } else { events };
        answer::events(events.into_body(), session.correlation.clone())
    }

    pub(super) async fn delete(self: Arc<Self>, request: Parts) -> Response {
        let session = match self.session_of(&request).await {
            Ok(session) => session,
            Err(response) => return *response,
        };
        match whole(self.sessions.clone().end(session.clone())).await {
            Ok(()) => answer::empty(StatusCode::NO_CONTENT, session.correlation.clone()),
            Err(fault) => refuse(&session, &refusal::fault(&fault)),
        }
    }

    fn resume(&self, session: &Session, request: &Parts) -> Result<(Name, u64, Reader), wire::Error> {
        let last = headers::one(&request.headers, &headers::LAST_EVENT);
        let found = match last.map_err(|_| refusal::unknown_event())? {
            None => Found::Listen,
            Some(id) => {
                let place = Place::parse(id).ok_or_else(refusal::unknown_event)?;
                match session.streams.find(&place) {
                    Found::Stream(stream) => {
                        return Ok((place.name, place.position, stream.attach(place.position)));
                    }
                    found => found,
                }
            }
        };
        match found {
            Found::Listen => {
                let (name, stream) =
                    session.streams.listen(session.primed).ok_or_else(refusal::unknown_session)?;
                Ok((name, 0, stream.attach(0)))
            }
            Found::Stream(_) | Found::Gone => Err(refusal::unknown_event()),
        }
    }

    async fn session_of(&self, request: &Parts) -> Result<Arc<Session>, Box<Response>> {
        let refuse = |error: &wire::Error| Box::new(self.refuse(error, None, &request.headers));
        let headers = &request.headers;
        match headers::era(headers, self.eras) {
            Ok(Era::Legacy) => {}
            // The modern era knows nothing but POST.
            Ok(Era::Modern) => return Err(Box::new(self.refuse_method("POST", &request.headers))),
            Ok(Era::Unsupported(_)) if !self.eras.legacy => {
                return Err(Box::new(self.refuse_method("POST", &request.headers)));
            }
            Ok(Era::Unsupported(version)) => return Err(refuse(&refusal::version(version, self.eras))),
            Err(headers::Unreadable) => {
                return Err(refuse(&refusal::header("MCP-Protocol-Version", "given once, in ASCII")));
            }
        }
        let caller = Caller::of(&request.extensions).map(|caller| &**caller);
        let who = self.gate.principal(caller).ok_or_else(|| refuse(&refusal::tenant()))?;
        let id = match headers::one(headers, &headers::SESSION) {
            Ok(Some(id)) => id,
            Ok(None) => return Err(refuse(&refusal::no_session())),
            Err(headers::Unreadable) => return Err(refuse(&refusal::unknown_session())),
        };
        if let Some(session) = self.sessions.known(id, &who) {
            return Ok(session);
        }
        match self.sessions.restore(id, &who).await {
            Ok(Some(session)) => Ok(session),
            Ok(None) => Err(refuse(&refusal::unknown_session())),
            Err(fault) => Err(refuse(&refusal::fault(&fault))),
        }
    }
}

fn refuse(session: &Session, error: &wire::Error) -> Response {
    answer::refuse(error, None, session.connection.id())
}
