//! The streamable HTTP transport's way to the network: every answer has a limit, in whichever form it comes.
//!
//! The library's own client bounds the events of a stream, and reads a plain JSON body of any size into memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use orchestr8_contract::trace::TRACEPARENT;
use orchestr8_kernel::ports::Clock;
use orchestr8_outbound::Guard;
use orchestr8_outbound::guard::Resolver;
use reqwest::{RequestBuilder, Response, Url};
use rmcp::ServiceError;
use rmcp::model::{ClientJsonRpcMessage, GetMeta, JsonRpcError, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::http_refusal::{HttpRefusal, outweighs_message, retry_after_ms};
use super::http_session::HttpSessions;
use super::incoming::IncomingText;

/// How long a TCP connection to a server may take.
const CONNECT_MS: u64 = 10_000;

/// What is told of the body of a refusal.
const SHOWN_CHARACTERS: usize = 200;

/// Why nothing usable came back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("it answered with more than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("it {0}")]
    Refused(HttpRefusal),
}

impl Error {
    /// The error of ours inside one of the library's, if there is one.
    pub fn within(error: &ServiceError) -> Option<&Self> {
        let ServiceError::TransportSend(failed) = error else { return None };
        Self::inside(&*failed.error)
    }

    /// The same, of an error of the transport.
    pub fn inside<'e>(error: &'e (dyn std::error::Error + Send + Sync + 'static)) -> Option<&'e Self> {
        match error.downcast_ref::<Failure>() {
            Some(StreamableHttpError::Client(own)) => Some(own),
            Some(_) | None => None,
        }
    }

    /// Whether the server refused a request because of its session, after which the library tries no more.
    pub fn is_about_session(error: &ServiceError) -> bool {
        let ServiceError::TransportSend(failed) = error else { return false };
        let failure = failed.error.downcast_ref::<Failure>();
        matches!(
            failure,
            Some(StreamableHttpError::SessionExpired | StreamableHttpError::ReinitializationFailed(_))
        )
    }

    /// Not even a connection was made.
    pub fn was_never_sent(&self) -> bool {
        matches!(self, Error::Http(error) if error.is_connect())
    }
}

type Failure = StreamableHttpError<Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
pub type Events = BoxStream<'static, Result<Sse, SseError>>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        StreamableHttpError::Client(error)
    }
}

/// A client of one server.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    incoming: IncomingText,
    sessions: HttpSessions,
    clock: Arc<dyn Clock>,
    /// One message, in bytes.
    limit: usize,
}

impl Client {
    /// No redirects, since they would carry our headers elsewhere, and no proxy from the environment.
    pub fn new(
        incoming: IncomingText,
        sessions: HttpSessions,
        clock: Arc<dyn Clock>,
        limit: usize,
        guard: Option<Arc<Guard>>,
    ) -> Result<Self, reqwest::Error> {
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(Duration::from_millis(CONNECT_MS));
        if let Some(guard) = guard {
            http = http.dns_resolver(Arc::new(Resolver(guard)));
        }
        Ok(Self { http: http.build()?, incoming, sessions, clock, limit })
    }

    /// The whole body, unless it is too large.
    async fn read(&self, response: Response) -> Result<Vec<u8>, Error> {
        let (limit, mut body) = (self.limit, Vec::new());
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            if body.len() + chunk.len() > limit {
                return Err(Error::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// What an answer other than success means. A server may put an error of the protocol into it.
    async fn refused(
        &self,
        response: Response,
        session: Option<&Arc<str>>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let (status, is_json) = (response.status(), has_type(&response, JSON_MIME_TYPE));
        let retry_after_ms = retry_after_ms(response.headers(), self.clock.now_ms());
        let body = self.read(response).await?;
        let error = match self.parse(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) if is_json => Some(error),
            Ok(_) | Err(_) => None,
        };
        if session.is_some_and(|session| self.sessions.is_lost(session, status, error.as_ref())) {
            return Err(StreamableHttpError::SessionExpired);
        }
        match error {
            Some(error) if error.id.is_some() && !outweighs_message(status) => {
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None))
            }
            Some(JsonRpcError { error, .. }) => Err(self.refusal(status, retry_after_ms, &error.message)),
            None => Err(self.refusal(status, retry_after_ms, &String::from_utf8_lossy(&body))),
        }
    }

    fn refusal(&self, status: StatusCode, retry_after_ms: Option<u64>, text: &str) -> Failure {
        let text = self.incoming.mask(text).trim().chars().take(SHOWN_CHARACTERS).collect();
        Error::Refused(HttpRefusal { status, retry_after_ms, text }).into()
    }
}

impl Client {
    pub fn get(&self, url: Url) -> RequestBuilder {
        self.http.get(url)
    }

    pub fn post(&self, url: Url) -> RequestBuilder {
        self.http.post(url)
    }

    /// The events of an answer, if it is a stream of them.
    pub fn events_of(&self, response: Response) -> Option<Events> {
        has_type(&response, EVENT_STREAM_MIME_TYPE).then(|| self.events(response))
    }

    fn parse(&self, body: &[u8]) -> serde_json::Result<ServerJsonRpcMessage> {
        match std::str::from_utf8(body).ok().and_then(|text| self.incoming.change(text)) {
            Some(changed) => serde_json::from_str(&changed),
            None => serde_json::from_slice(body),
        }
    }

    fn events(&self, response: Response) -> Events {
        let incoming = self.incoming.clone();
        let changed = move |mut event: Sse| {
            if let Some(data) = event.data.as_deref().and_then(|data| incoming.change(data)) {
                event.data = Some(data);
            }
            event
        };
        let events = SseStream::from_bytes_stream(bounded(response.bytes_stream(), self.limit));
        events.map(move |event| event.map(&changed)).boxed()
    }
}

impl StreamableHttpClient for Client {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut request = dress(self.http.post(&*uri), session.clone(), token, headers);
        if let Some(trace) = trace(&message) {
            request = request.header(TRACEPARENT, trace);
        }
        let request = request.header(CONTENT_TYPE, JSON_MIME_TYPE).body(serde_json::to_vec(&message)?);
        let response = request.send().await.map_err(Error::Http)?;
        let status = response.status();
        if !status.is_success() {
            return self.refused(response, session.as_ref()).await;
        }
        let asked = match &message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        if let (Some(_), Some(session)) = (asked, &session) {
            self.sessions.works(session);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = response.headers().get(HEADER_SESSION_ID);
        let session = session.and_then(|id| id.to_str().ok()).map(str::to_owned);
        if has_type(&response, EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        if !has_type(&response, JSON_MIME_TYPE) && asked.is_some() {
            let body = self.read(response).await?;
            return Err(self.refusal(status, None, &String::from_utf8_lossy(&body)));
        }
        match self.parse(&self.read(response).await?) {
            // What answers this request is about this request, even if the server could not read its id.
            Ok(ServerJsonRpcMessage::Error(mut error)) if error.id.is_none() => {
                error.id = asked.cloned();
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session))
            }
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            // Some servers answer what needs no answer, with whatever comes to their mind.
            Err(_) if asked.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(StreamableHttpError::Deserialize(error)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let request = dress(self.http.delete(&*uri), Some(session), token, headers);
        // Whether the server deletes sessions or lets them fade away is its own affair.
        request.send().await.map_err(Error::Http)?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        let mut request = dress(self.http.get(&*uri), session, token, headers);
        if let Some(id) = last_event_id {
            request = request.header(HEADER_LAST_EVENT_ID, id);
        }
        let response = request.send().await.map_err(Error::Http)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            // Asking again with the same credentials would get the same answer.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(String::new())))
            }
            status if !status.is_success() => {
                Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into()))
            }
            _ if has_type(&response, EVENT_STREAM_MIME_TYPE) => Ok(self.events(response)),
            _ => Err(StreamableHttpError::UnexpectedContentType(content_type(&response))),
        }
    }
}

fn dress(
    request: RequestBuilder,
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: Headers,
) -> RequestBuilder {
    let mut request = request.header(ACCEPT, [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", "));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    match session {
        Some(session) => request.header(HEADER_SESSION_ID, &*session),
        None => request,
    }
}

/// The trace a message says it is a part of.
fn trace(message: &ClientJsonRpcMessage) -> Option<String> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    request.request.get_meta().get(TRACEPARENT)?.as_str().map(str::to_owned)
}

fn content_type(response: &Response) -> Option<String> {
    response.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn has_type(response: &Response, wanted: &str) -> bool {
    content_type(response).is_some_and(|found| found.to_ascii_lowercase().starts_with(wanted))
}

/// Lets bytes through until one event is too large; then the stream ends with an error.
fn bounded(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send,
    limit: usize,
) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    let mut event = EventSize::default();
    bytes
        .map(move |chunk| {
            let chunk = chunk?;
            if event.after(&chunk, limit) { Ok(chunk) } else { Err(Error::TooLarge { limit }) }
        })
        .scan(false, |failed, chunk| {
            let is_over = std::mem::replace(failed, chunk.is_err());
            std::future::ready((!is_over).then_some(chunk))
        })
}

/// The size of the event that is being read. An empty line ends an event.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    line_bytes: usize,
    /// A line may end in `\r\n`, which is one end and not two.
    had_return: bool,
}

impl EventSize {
    /// Whether the event is within the limit, with these bytes too.
    fn after(&mut self, chunk: &[u8], limit: usize) -> bool {
        for byte in chunk {
            let ends_line = match byte {
                b'\n' => !std::mem::take(&mut self.had_return),
                b'\r' => {
                    self.had_return = true;
                    true
                }
                _ => {
                    self.had_return = false;
                    self.line_bytes += 1;
                    self.bytes += 1;
                    if self.bytes > limit {
                        return false;
                    }
                    continue;
                }
            };
            if ends_line && std::mem::take(&mut self.line_bytes) == 0 {
                self.bytes = 0;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_measured_from_one_empty_line_to_the_next() {
        for text in
            ["data: 12\n\ndata: 12\n\n", "data: 12\r\n\r\ndata: 12\r\n\r\n", "data: 12\r\rdata: 12\r\r"]
        {
            let fits = |limit| {
                let mut size = EventSize::default();
                text.as_bytes().chunks(3).all(|chunk| size.after(chunk, limit))
            };
            assert_eq!((fits(8), fits(7)), (true, false), "{text:?}");
        }
        let mut size = EventSize::default();
        assert!(!size.after(b"data: a\r\ndata: b\r\n", 13), "two lines are one event");
    }
}
