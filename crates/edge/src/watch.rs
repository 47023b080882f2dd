//! Watches one connection from below (its socket) and above (its answers), to know what it is waiting for.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connections::ConnectionSlot;
use crate::signal::ConnectionSignal;
use crate::socket::Socket;

/// What the connection needs the client to do now; each has its own time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// To finish a head it has begun.
    Head,
    /// To send another request, or to leave.
    Idle,
    /// To take bytes of an answer.
    Write,
    /// Nothing: we are at work.
    Nothing,
}

/// Facts, each set at the one place that knows it. All but the end of a streamed answer happen in the
/// connection's own task, so relaxed order is enough.
pub(crate) struct Watch {
    answering: AtomicBool,
    /// The head of the answer was handed to the HTTP layer.
    answered: AtomicBool,
    unflushed: AtomicBool,
    /// Bytes of a head have come that made no request yet.
    heard: AtomicBool,
    blocked: AtomicBool,
    upgraded: AtomicBool,
    /// Changes whenever a request begins or bytes leave: a wait of the same kind is then a new wait.
    turn: AtomicU32,
    /// The status the HTTP parser wanted to answer with on its own; 0 if it had no complaint.
    complaint: AtomicU16,
}

impl Watch {
    /// The connection is handed over once its first byte is there.
    pub fn new() -> Self {
        Self {
            answering: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            unflushed: AtomicBool::new(false),
            heard: AtomicBool::new(true),
            blocked: AtomicBool::new(false),
            upgraded: AtomicBool::new(false),
            turn: AtomicU32::new(0),
            complaint: AtomicU16::new(0),
        }
    }

    /// A whole head has come and its request is being served.
    pub fn request(&self) {
        self.answering.store(true, Relaxed);
        self.answered.store(false, Relaxed);
        self.unflushed.store(true, Relaxed);
        self.heard.store(false, Relaxed);
        self.step();
    }

    /// The answer begins; a refusal in its place would come too late.
    pub fn answer(&self) {
        self.answered.store(true, Relaxed);
    }

    pub fn is_answered(&self) -> bool {
        self.answered.load(Relaxed)
    }

    pub fn upgrade(&self) {
        self.upgraded.store(true, Relaxed);
    }

    pub fn wait(&self) -> Wait {
        if self.blocked.load(Relaxed) {
            Wait::Write
        } else if self.answering.load(Relaxed) || self.unflushed.load(Relaxed) {
            Wait::Nothing
        } else if self.heard.load(Relaxed) {
            Wait::Head
        } else {
            Wait::Idle
        }
    }

    pub fn turn(&self) -> u32 {
        self.turn.load(Relaxed)
    }

    pub fn complaint(&self) -> Option<u16> {
        Some(self.complaint.load(Relaxed)).filter(|status| *status != 0)
    }

    /// One task writes it, so no read-modify-write is needed.
    fn step(&self) {
        self.turn.store(self.turn.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Every answer is out: what the HTTP parser writes now can only be its own complaint about bad input.
    fn settled(&self) -> bool {
        !self.answering.load(Relaxed) && !self.unflushed.load(Relaxed) && !self.upgraded.load(Relaxed)
    }

    /// Keeps the status of the parser's bare reply (`HTTP/1.1 400 …`); the connection then gives a full one.
    fn complain(&self, reply: &[u8]) {
        let digits = reply.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
        self.complaint.store(digits.and_then(|digits| digits.parse().ok()).unwrap_or(400), Relaxed);
    }

    fn wrote(&self, outcome: &Poll<io::Result<usize>>) {
        match outcome {
            Poll::Pending => self.blocked.store(true, Relaxed),
            Poll::Ready(_) => {
                self.blocked.store(false, Relaxed);
                self.step();
            }
        }
    }
}

/// The socket, with its place among the connections.
pub(crate) struct Wire {
    stream: Socket,
    slot: ConnectionSlot,
    watch: Arc<Watch>,
}

impl Wire {
    pub fn new(stream: Socket, slot: ConnectionSlot, watch: Arc<Watch>) -> Self {
        Self { stream, slot, watch }
    }

    pub fn into_parts(self) -> (Socket, ConnectionSlot) {
        (self.stream, self.slot)
    }

    /// An upgraded socket belongs to its face; what ends it from outside reaches it here.
    fn is_cut(&self, cx: &Context<'_>) -> bool {
        if !self.watch.upgraded.load(Relaxed) {
            return false;
        }
        self.slot.signal.register(cx.waker());
        self.slot.signal.is_closing()
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the server closed this connection")
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_cut(cx) {
            return Poll::Ready(Err(cut()));
        }
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        // What comes while a request is served is its body; or a pipelined head, which then counts as idle.
        if buf.filled().len() > before && !self.watch.answering.load(Relaxed) {
            self.watch.heard.store(true, Relaxed);
        }
        outcome
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.watch.settled() {
            self.watch.complain(buf);
            return Poll::Ready(Ok(buf.len()));
        }
        if self.watch.upgraded.load(Relaxed) && self.slot.signal.is_closing() {
            return Poll::Ready(Err(cut()));
        }
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch.wrote(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.watch.settled() {
            self.watch.complain(bufs.first().map_or(&[], |buf| buf));
            return Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()));
        }
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch.wrote(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// The HTTP layer flushes only when it holds nothing back, so an ended answer is now out.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        match &flushed {
            Poll::Pending => {
                self.watch.blocked.store(true, Relaxed);
                return flushed;
            }
            Poll::Ready(_) => self.watch.blocked.store(false, Relaxed),
        }
        if !self.watch.answering.load(Relaxed) {
            self.watch.unflushed.store(false, Relaxed);
        }
        flushed
    }

    /// The connection closes the socket itself, after its last words; an upgraded socket has nobody else.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.watch.upgraded.load(Relaxed) {
            return Pin::new(&mut self.stream).poll_shutdown(cx);
        }
        Poll::Ready(Ok(()))
    }
}

/// The body of an answer; its end is the end of the answer.
pub(crate) struct Answer {
    body: Body,
    watch: Arc<Watch>,
    signal: Arc<ConnectionSignal>,
}

impl Answer {
    pub fn new(body: Body, watch: Arc<Watch>, signal: Arc<ConnectionSignal>) -> Self {
        Self { body, watch, signal }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.watch.answering.store(false, Relaxed);
        self.signal.idle();
    }
}
