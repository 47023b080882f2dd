//! A provider on this machine: it answers what a test has written down, and remembers what it was asked.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// What to answer to one request.
pub enum Reply {
    /// A whole stream of events.
    Events(&'static [u8]),
    /// A status with headers and a body.
    Status(u16, &'static [(&'static str, &'static str)], &'static str),
    /// The connection is cut before or after these bytes arrive.
    Cut(&'static [u8]),
    /// What the test sends, when it sends it; an error cuts the connection.
    Fed(UnboundedReceiver<io::Result<Bytes>>, Gone),
    /// Never a word, not even a status.
    Silence(Gone),
}

/// Tells the test that the client is gone.
pub struct Gone(Option<oneshot::Sender<()>>);

impl Drop for Gone {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(());
        }
    }
}

pub fn gone() -> (Gone, oneshot::Receiver<()>) {
    let (sender, receiver) = oneshot::channel();
    (Gone(Some(sender)), receiver)
}

/// An answer that the test feeds.
pub fn fed() -> (Reply, Feed, oneshot::Receiver<()>) {
    let (sender, receiver) = unbounded();
    let (gone, left) = gone();
    (Reply::Fed(receiver, gone), Feed(sender), left)
}

/// What an answer is fed with.
pub struct Feed(UnboundedSender<io::Result<Bytes>>);

impl Feed {
    pub fn send(&self, bytes: &'static [u8]) {
        self.0.unbounded_send(Ok(Bytes::from_static(bytes))).unwrap();
    }

    pub fn cut(&self) {
        self.0.unbounded_send(Err(io::Error::other("cut"))).unwrap();
    }
}

/// What was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

#[derive(Clone, Default)]
struct Shared {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

pub struct Server {
    pub url: String,
    shared: Shared,
}

impl Server {
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let shared = Shared::default();
        shared.replies.lock().unwrap().extend(replies);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, shared }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }
}

async fn answer(State(shared): State<Shared>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    shared.asked.lock().unwrap().push(Asked { path: uri.path().to_owned(), headers, body });
    let reply = shared.replies.lock().unwrap().pop_front();
    let events = |body| Response::builder().header("content-type", "text/event-stream").body(body).unwrap();
    match reply {
        Some(Reply::Events(bytes)) => events(Body::from(bytes)),
        Some(Reply::Status(status, headers, body)) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            response.body(Body::from(body)).unwrap()
        }
        Some(Reply::Cut(bytes)) => {
            let end = Err(io::Error::other("cut"));
            events(Body::from_stream(futures::stream::iter([Ok(Bytes::from_static(bytes)), end])))
        }
        Some(Reply::Fed(receiver, gone)) => {
            let fed = receiver.map(move |bytes| {
                let _held = &gone;
                bytes
            });
            events(Body::from_stream(fed))
        }
        Some(Reply::Silence(gone)) => {
            let _held = gone;
            std::future::pending().await
        }
        None => Response::builder().status(500).body(Body::from("nothing is written down")).unwrap(),
    }
}
