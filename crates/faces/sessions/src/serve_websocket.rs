//! The protocol over WebSocket: one task per client reads, answers and writes, and flushes when nothing more is to read.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use futures::{Sink, SinkExt, Stream};
use http::header::UPGRADE;
use http::{HeaderValue, StatusCode};
use orchestr8_edge::{Caller, SOCKET_PROTOCOL};
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::{Principal, Source, Transport};
use serde_json::json;

use crate::connection::{Connection, Open};
use crate::face::Inner;
use crate::limits::{CLOSE_MS, COMMANDS_IN_A_ROW, OVERSIZE_BYTES, SOCKET_READ_BYTES, SOCKET_WRITE_BYTES};
use crate::metrics::count;

/// Where clients find it: the root, as clients of this protocol expect, and a path of its own.
const PATHS: [&str; 2] = ["/", "/ws/session"];

/// Why a socket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closed, or is gone.
    Left,
    /// It did not answer a ping.
    Silent,
    /// It left too much unread.
    Slow,
    /// It sent what is no message at all, or one that cannot be held.
    Misspoke,
    Shutdown,
    /// There are too many clients.
    Full,
    /// Nobody we know.
    Stranger,
}

impl End {
    fn frame(self, face: &Inner) -> Option<CloseFrame> {
        let (code, reason) = match self {
            End::Left => return None,
            End::Silent => (close_code::AWAY, String::from("Heartbeat timeout")),
            End::Slow => (close_code::ERROR, String::from("Server overloaded - backpressure critical")),
            End::Misspoke => (
                close_code::PROTOCOL,
                format!("Messages are JSON text of at most {} bytes", face.settings.message_bytes),
            ),
            End::Shutdown => (close_code::AWAY, String::from("Server shutting down")),
            End::Full => (
                close_code::AGAIN,
                format!("Connection limit reached ({} connections)", face.settings.connections),
            ),
            End::Stranger => (close_code::POLICY, String::from("Authentication failed")),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }
}

pub fn router(face: &Arc<Inner>) -> Router {
    PATHS.iter().fold(Router::new(), |router, path| {
        let face = face.clone();
        router.route(path, get(move |request: Request| upgrade(face.clone(), request)))
    })
}

async fn upgrade(face: Arc<Inner>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let principal = face.principal(Caller::of(&parts.extensions).map(|caller| &**caller));
    let source = orchestr8_edge::source("sessions", &parts.extensions);
    let Ok(upgrade) = WebSocketUpgrade::from_request_parts(&mut parts, &()).await else {
        let header = [(UPGRADE, HeaderValue::from_static("websocket"))];
        return (StatusCode::UPGRADE_REQUIRED, header, "this path speaks WebSocket\n").into_response();
    };
    let limit = face.settings.message_bytes + OVERSIZE_BYTES;
    upgrade
        .protocols([SOCKET_PROTOCOL])
        .read_buffer_size(SOCKET_READ_BYTES)
        .write_buffer_size(SOCKET_WRITE_BYTES)
        .max_message_size(limit)
        .max_frame_size(limit)
        .on_upgrade(move |socket| run(socket, face, principal, source))
}

async fn run(mut socket: WebSocket, face: Arc<Inner>, principal: Option<Arc<Principal>>, source: Source) {
    let Some(principal) = principal else { return close(&mut socket, &face, End::Stranger).await };
    if face.is_shutting_down() {
        return close(&mut socket, &face, End::Shutdown).await;
    }
    let Some(open) = Open::new(&face, principal, Transport::WebSocket, source) else {
        return close(&mut socket, &face, End::Full).await;
    };
    face.listen();
    open.greet().await;
    let mut session = Session::new(socket, open.0.clone());
    let end = session.serve().await;
    if end == End::Slow {
        count(&face.metrics.slow_readers);
    }
    face.kernel.log().debug("a client left", || json!({"transport": "websocket", "why": format!("{end:?}")}));
    let mut socket = session.socket;
    // What was answered before the end still goes out, unless the client does not read.
    open.0.outbox.close();
    let last_words = async {
        while let Some(frame) = open.0.outbox.pop() {
            if socket.feed(Message::Text(frame)).await.is_err() {
                return;
            }
        }
        close(&mut socket, &face, end).await;
    };
    within(&*face.kernel.ports().clock, last_words).await;
}

/// Says why, and waits for the client to hear it.
async fn close(socket: &mut WebSocket, face: &Inner, end: End) {
    if end == End::Left {
        return;
    }
    let frame = end.frame(face);
    let goodbye = async {
        if socket.send(Message::Close(frame)).await.is_ok() {
            // Its own close is the last thing heard; a socket that is dropped before loses what is on its way.
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    within(&*face.kernel.ports().clock, goodbye).await;
}

async fn within(clock: &dyn Clock, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = work => {}
        () = clock.sleep(Duration::from_millis(CLOSE_MS)) => {}
    }
}

/// What one turn found.
enum Turn {
    Heard(Message),
    Ping,
    Over(End),
}

struct Session {
    socket: WebSocket,
    connection: Arc<Connection>,
    closing: BoxFuture<'static, ()>,
    /// The next ping, or the end of the wait for the answer to the last.
    beat: BoxFuture<'static, ()>,
    awaits_pong: bool,
    /// Something was handed to the socket and not flushed.
    is_dirty: bool,
}

impl Session {
    fn new(socket: WebSocket, connection: Arc<Connection>) -> Self {
        let closing = Box::pin(connection.face.closing.clone().cancelled_owned());
        let beat = sleep(&connection, connection.face.settings.ping_ms);
        Self { socket, connection, closing, beat, awaits_pong: false, is_dirty: false }
    }

    async fn serve(&mut self) -> End {
        let mut in_a_row = 0;
        loop {
            match poll_fn(|context| self.poll_turn(context)).await {
                Turn::Heard(message) => {
                    if let Some(end) = self.hear(message) {
                        return end;
                    }
                    in_a_row += 1;
                    if in_a_row >= COMMANDS_IN_A_ROW {
                        in_a_row = 0;
                        tokio::task::yield_now().await;
                    }
                }
                Turn::Ping if self.awaits_pong => return End::Silent,
                Turn::Ping => {
                    self.awaits_pong = true;
                    self.beat = sleep(&self.connection, self.connection.face.settings.pong_ms);
                }
                Turn::Over(end) => return end,
            }
        }
    }

    fn hear(&mut self, message: Message) -> Option<End> {
        match message {
            Message::Text(text) => self.connection.receive(text.as_bytes()),
            Message::Binary(_) => self.connection.refuse_malformed(),
            Message::Pong(_) if self.awaits_pong => {
                self.awaits_pong = false;
                self.beat = sleep(&self.connection, self.connection.face.settings.ping_ms);
            }
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => return Some(End::Left),
        }
        None
    }

    /// Writing goes before reading: a client that does not take its answers is not asked for more.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Turn> {
        if self.closing.as_mut().poll(context).is_ready() {
            return Poll::Ready(Turn::Over(End::Shutdown));
        }
        let outbox = self.connection.outbox.clone();
        outbox.register(context.waker());
        let is_blocked = match self.poll_write(context) {
            Ok(is_blocked) => is_blocked,
            Err(end) => return Poll::Ready(Turn::Over(end)),
        };
        outbox.stall(is_blocked);
        if !is_blocked {
            match Pin::new(&mut self.socket).poll_next(context) {
                Poll::Ready(Some(Ok(message))) => return Poll::Ready(Turn::Heard(message)),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Turn::Over(End::Misspoke)),
                Poll::Ready(None) => return Poll::Ready(Turn::Over(End::Left)),
                Poll::Pending => {}
            }
            if self.is_dirty {
                match Pin::new(&mut self.socket).poll_flush(context) {
                    Poll::Ready(Ok(())) => self.is_dirty = false,
                    Poll::Ready(Err(_)) => return Poll::Ready(Turn::Over(End::Left)),
                    Poll::Pending => {}
                }
            }
        }
        if outbox.is_overflowed() {
            return Poll::Ready(Turn::Over(End::Slow));
        }
        self.poll_beat(context)
    }

    /// Hands the socket what it takes; true when it takes no more.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        loop {
            match Pin::new(&mut self.socket).poll_ready(context) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Err(_)) => return Err(End::Left),
                Poll::Ready(Ok(())) => {}
            }
            let Some(frame) = self.connection.outbox.pop() else { return Ok(false) };
            self.is_dirty = true;
            if Pin::new(&mut self.socket).start_send(Message::Text(frame)).is_err() {
                return Err(End::Left);
            }
        }
    }

    fn poll_beat(&mut self, context: &mut Context<'_>) -> Poll<Turn> {
        if self.beat.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        if !self.awaits_pong {
            // A socket that takes no ping now cannot answer it either; the wait for the pong begins all the same.
            if let Poll::Ready(Ok(())) = Pin::new(&mut self.socket).poll_ready(context) {
                let _ = Pin::new(&mut self.socket).start_send(Message::Ping(axum::body::Bytes::new()));
                self.is_dirty = true;
            }
        }
        Poll::Ready(Turn::Ping)
    }
}

fn sleep(connection: &Connection, ms: u64) -> BoxFuture<'static, ()> {
    connection.face.kernel.ports().clock.sleep(Duration::from_millis(ms))
}
