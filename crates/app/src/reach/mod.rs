//! How commands reach workflows: through a running server, or in this process through the very same routes.
//!
//! ```text
//! find -> Server (REST over HTTP)            -> send -> Reply, or Failure
//!      -> Embedded (the routes, called here)
//! ```
//!
//! A server that was not named is asked only after it has proven that it owns the data directory: `instance`.

mod embedded;
mod find;
mod instance;
mod refusal;
mod server;
mod signer;
mod stream;

use http::{HeaderMap, Method, StatusCode};
use orchestr8_contract::Code;
use serde_json::Value;

use crate::failure::Failure;

pub use embedded::{Embedded, Intent};
pub use find::{Where, find};
pub use instance::{PATH as INSTANCE_PATH, PublishedInstance, fresh as fresh_secret};
pub use refusal::{code_of, problem_lines, refusal};
pub use server::Server;
pub use signer::{KEY_FILE, Signer, read_key};
pub use stream::{Event, Events};

/// An answer larger than this is not read: results have 1 MiB, journals 10 MiB.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// What commands talk to.
pub enum Reach {
    Server(Server),
    Embedded(Box<Embedded>),
}

/// What came back, whatever its status.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Null when there was none.
    pub body: Value,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body of a success; anything else is a failure.
    pub fn accepted(self) -> Result<Value, Failure> {
        if self.status.is_success() { Ok(self.body) } else { Err(refusal(self.status, &self.body)) }
    }
}

/// Header names with their values.
pub type Headers<'a> = &'a [(&'a str, &'a str)];

impl Reach {
    /// Signs every request from now on. What is done in this process needs no proof.
    #[must_use]
    pub fn signing(self, signer: Option<Signer>) -> Self {
        match self {
            Reach::Server(server) => Reach::Server(server.signing(signer)),
            Reach::Embedded(embedded) => Reach::Embedded(embedded),
        }
    }

    /// Sends one request. A failure here means that nothing came back; a refusal is a reply.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: Option<&Value>,
    ) -> Result<Reply, Failure> {
        match self {
            Reach::Server(server) => server.send(method, path, headers, body).await,
            Reach::Embedded(embedded) => embedded.send(method, path, headers, body).await,
        }
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::GET, path, &[], None).await?.accepted()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send(Method::POST, path, &[], Some(body)).await?.accepted()
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send(Method::PUT, path, &[], Some(body)).await?.accepted()
    }

    pub async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::DELETE, path, &[], None).await?.accepted()
    }

    /// Opens a stream of server-sent events; `after` goes on after an event seen before.
    pub async fn events(&self, path: &str, after: Option<&str>) -> Result<Events, Failure> {
        let resume = after.map(|id| ("last-event-id", id));
        let headers: Vec<(&str, &str)> =
            [("accept", "text/event-stream")].into_iter().chain(resume).collect();
        match self {
            Reach::Server(server) => server.events(path, &headers).await,
            Reach::Embedded(embedded) => embedded.events(path, &headers).await,
        }
    }

    /// Lets an execution go on that was left unfinished. A server does so by itself.
    pub async fn take_up(&self, execution: &str) -> Result<(), Failure> {
        match self {
            Reach::Server(_) => Ok(()),
            Reach::Embedded(embedded) => embedded.take_up(execution).await,
        }
    }

    /// Whether executions go on only as long as this process lives.
    pub fn is_embedded(&self) -> bool {
        match self {
            Reach::Server(_) => false,
            Reach::Embedded(_) => true,
        }
    }

    /// Lets go of the store in order; everything acknowledged is on disk when it returns.
    pub async fn close(self) {
        match self {
            Reach::Server(_) => {}
            Reach::Embedded(embedded) => embedded.close().await,
        }
    }
}

/// A path with its query; values are escaped, absent ones left out.
pub fn path(base: &str, query: &[(&str, Option<String>)]) -> String {
    let mut text = base.to_owned();
    let mut mark = '?';
    for (name, value) in query {
        let Some(value) = value else { continue };
        text.push(mark);
        text.push_str(name);
        text.push('=');
        text.push_str(&escape(value));
        mark = '&';
    }
    text
}

/// A text as one segment of a path or one value of a query (RFC 3986).
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte))
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

/// Reads an answer: JSON, or nothing.
fn read_body(bytes: &[u8]) -> Result<Value, Failure> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    serde_json::from_slice(bytes).map_err(|error| {
        Failure::new(Code::Unavailable, format!("the answer is not JSON: {error}"))
            .hinting("is it orchestr8 that listens there? `orchestr8 doctor` looks")
    })
}

fn too_large() -> Failure {
    Failure::new(Code::PayloadTooLarge, format!("the answer has more than {ANSWER_BYTES} bytes"))
        .hinting("ask for less: a page of a journal, or one step")
}

#[cfg(test)]
mod tests;
