//! The edge on real sockets: a small server, and clients that write raw bytes.

mod drain;
mod guard;
mod hostile;
mod quotas;
mod time;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;
use http::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use orchestr8_kernel::ports::ids::Counted;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{Caller, Drained, Error, Health, Settings, body, mount, serve};

/// No event in these tests takes long; this only turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(20);
/// A limit a test waits to pass.
const SOON_MS: u64 = 40;

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it never happened")
}

pub(crate) fn settings() -> Settings {
    Settings { trust_this_process: true, ..Settings::new(Arc::new(Counted::default())) }
}

/// Lets a test see a request arrive and decide when it is answered.
#[derive(Clone)]
pub(crate) struct Gate {
    entered: mpsc::UnboundedSender<()>,
    open: Arc<Notify>,
}

pub(crate) struct Server {
    pub addr: SocketAddr,
    pub shutdown: CancellationToken,
    pub task: JoinHandle<Result<Drained, Error>>,
    pub open: Arc<Notify>,
    entered: mpsc::UnboundedReceiver<()>,
}

impl Server {
    pub async fn start(settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let (entered, seen) = mpsc::unbounded_channel();
        let gate = Gate { entered, open: Arc::default() };
        let open = gate.open.clone();
        let router = router(&settings, gate, shutdown.clone());
        let task = tokio::spawn(serve(listener, router, settings, shutdown.clone()));
        Self { addr, shutdown, task, open, entered: seen }
    }

    pub async fn connect(&self) -> Client {
        Client { stream: TcpStream::connect(self.addr).await.unwrap(), buffer: Vec::new() }
    }

    /// One request on a connection of its own.
    pub async fn ask(&self, request: &str) -> Reply {
        let mut client = self.connect().await;
        client.send(request).await;
        client.reply().await
    }

    /// Waits until a request stands at the gate, or a streamed answer was dropped.
    pub async fn entered(&mut self) {
        within(self.entered.recv()).await.unwrap();
    }

    pub async fn drained(self) -> Drained {
        within(self.task).await.unwrap().unwrap()
    }
}

/// Says when the answer it belongs to is dropped.
struct Farewell(mpsc::UnboundedSender<()>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

fn router(settings: &Settings, gate: Gate, shutdown: CancellationToken) -> Router {
    let (limit_bytes, timeout) = (settings.body_limit_bytes, Duration::from_millis(settings.body_timeout_ms));
    let echo = async move |body: Body| -> Response {
        match body::read(body, limit_bytes, timeout).await {
            Ok(bytes) => bytes.into_response(),
            Err(error) => error.into_response(),
        }
    };
    let endless = gate.entered.clone();
    let gated = async move || {
        let _ = gate.entered.send(());
        gate.open.notified().await;
        "through"
    };
    let flood = async move || {
        let farewell = Farewell(endless);
        let piece = Bytes::from(vec![b'x'; 64 * 1024]);
        Body::from_stream(stream::repeat_with(move || {
            let _ = &farewell;
            Ok::<_, std::convert::Infallible>(piece.clone())
        }))
    };
    let who = async |request: Request<Body>| {
        let caller = Caller::of(request.extensions()).unwrap();
        json!({"name": caller.name, "tenant": caller.tenant, "roles": caller.roles, "verified": caller.verified})
            .to_string()
    };
    let faces = Router::new()
        .route("/hello", get(async || "hello"))
        .route(
            "/own",
            get(async || [("content-security-policy", "default-src 'none'"), ("x-correlation-id", "own")]),
        )
        .route("/echo", post(echo))
        .route("/panic", get(async || -> &'static str { panic!("a route panics in this test") }))
        .route("/gate", get(gated))
        .route("/flood", get(flood))
        .route("/take", post(take))
        .route("/upgrade", get(upgrade))
        .route("/who", get(who));
    let health = Health {
        about: json!({"name": "orchestr8", "version": "1.2.3"}),
        unready: Arc::new(Vec::new),
        shutdown,
    };
    mount(faces, health)
}

/// A face without a limit of its own.
async fn take(body: Body) -> Response {
    body::read(body, usize::MAX, PATIENCE).await.into_response()
}

/// Takes the socket over and echoes what comes.
async fn upgrade(request: Request<Body>) -> Response {
    tokio::spawn(async move {
        let socket = hyper::upgrade::on(request).await.unwrap();
        let (mut from, mut to) = tokio::io::split(TokioIo::new(socket));
        tokio::io::copy(&mut from, &mut to).await.unwrap();
        to.shutdown().await.unwrap();
        // The client sees the end although the socket is still held.
        std::future::pending::<()>().await;
    });
    (StatusCode::SWITCHING_PROTOCOLS, [("connection", "upgrade"), ("upgrade", "echo")]).into_response()
}

pub(crate) struct Client {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within(self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// The next answer, framed by its content-length.
    pub async fn reply(&mut self) -> Reply {
        loop {
            if let Some((reply, length)) = Reply::parse(&self.buffer) {
                self.buffer.drain(..length);
                return reply;
            }
            let got = within(self.stream.read_buf(&mut self.buffer)).await.unwrap();
            assert!(got > 0, "closed before an answer: {}", self.buffer.escape_ascii());
        }
    }

    /// What still comes until the server closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        within(self.stream.read_to_end(&mut self.buffer)).await.unwrap();
        std::mem::take(&mut self.buffer)
    }

    pub async fn closed(&mut self) {
        let rest = self.rest().await;
        assert!(rest.is_empty(), "{}", rest.escape_ascii());
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut reply = Self { status, head, body: String::new() };
        let length: usize = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        let body = bytes.get(end..end + length)?;
        reply.body = String::from_utf8(body.to_vec()).unwrap();
        Some((reply, end + length))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Checks everything a refusal promises.
    pub fn refused(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let body: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(body["error"]["code"], code, "{self:?}");
        for word in ["message", "hint"] {
            assert!(body["error"][word].as_str().is_some_and(|text| text.len() > 5), "{self:?}");
        }
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert!(self.header("x-correlation-id").is_some(), "{self:?}");
        self.secured();
    }

    pub fn secured(&self) {
        for (name, value) in [
            ("x-frame-options", "deny"),
            ("x-content-type-options", "nosniff"),
            ("content-security-policy", "default-src 'self'"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(self.header(name), Some(value), "{self:?}");
        }
        assert_eq!(self.header("server"), None);
    }
}
