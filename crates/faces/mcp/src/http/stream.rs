//! One event stream: what is said on it is kept until it is delivered, and a while longer for a client that comes back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;

use crate::connection::Reply;
use crate::face::Outlet;

use super::event::{self, Name};

/// Messages kept on one stream; a client that reads slower than this is behind loses the newest.
pub(super) const EVENTS: usize = 1024;

/// Bytes kept on one stream, its last reply apart.
pub(super) const EVENT_BYTES: usize = 1024 * 1024;

/// Bytes kept on all streams together; beyond it nothing is kept for replay, and new messages are dropped.
pub(super) const ALL_BYTES: usize = 64 * 1024 * 1024;

/// Bytes handed to the socket at once, so that one backlog does not fill one buffer.
const FRAME_BYTES: usize = 64 * 1024;

/// Counts the bytes all streams keep.
#[derive(Default)]
pub(super) struct Budget(AtomicUsize);

impl Budget {
    fn take(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub fn taken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a request has led to before its answer's form is chosen.
pub(super) enum Begun {
    /// Something was said before the reply, or the client is to come back: an event stream.
    Events,
    /// Nothing but the reply: one JSON body. None when the request was cancelled.
    Reply(Option<Reply>),
}

/// A stream, named once the client has been told of it. One without a name cannot be resumed and keeps nothing.
pub(super) struct Stream {
    state: Mutex<State>,
    budget: Arc<Budget>,
    /// Its client gets a priming event, and so can come back before anything was said.
    primed: bool,
}

#[derive(Default)]
struct State {
    name: Option<Name>,
    events: VecDeque<Event>,
    bytes: usize,
    /// The position of the newest event; the first has 1, and 0 is the priming one.
    last: u64,
    /// Events up to here were handed to the reader.
    sent: u64,
    /// Which reader is the present one; an older one has been replaced and ends.
    reader: u64,
    attached: bool,
    waker: Option<Waker>,
    /// The reply, while it is not known whether anything comes before it.
    reply: Option<Reply>,
    /// The present reader is to end, so that its client comes back.
    paused: bool,
    /// Nothing more will be said.
    ended: bool,
}

struct Event {
    position: u64,
    text: String,
}

impl Stream {
    pub fn new(budget: &Arc<Budget>, primed: bool) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), budget: budget.clone(), primed })
    }

    /// Gives it the name under which it can be resumed.
    pub fn name(&self, name: Name) {
        self.state.lock().name = Some(name);
    }

    /// Whether the answer is an event stream, or nothing was said but the reply.
    pub fn poll_begun(&self, context: &mut Context<'_>) -> Poll<Begun> {
        let mut state = self.state.lock();
        if state.paused || !state.events.is_empty() {
            return Poll::Ready(Begun::Events);
        }
        if state.ended {
            return Poll::Ready(Begun::Reply(state.reply.take()));
        }
        state.wait(context);
        Poll::Pending
    }

    /// Whether anything was said yet.
    pub fn has_begun(&self) -> bool {
        let state = self.state.lock();
        state.paused || !state.events.is_empty()
    }

    /// The last word on this stream: nothing is said after it. None when the request was cancelled.
    pub fn finish(&self, reply: Option<Reply>) {
        let waker = {
            let mut state = self.state.lock();
            if state.ended {
                return;
            }
            match reply {
                Some(reply) if state.is_streaming() => self.add(&mut state, reply.text),
                reply => state.reply = reply,
            }
            state.ended = true;
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// One of many replies on this stream. A client that does not read what it was told before is told nothing more.
    pub fn reply(&self, text: String) {
        let waker = {
            let mut state = self.state.lock();
            let is_behind = !self.make_room(&mut state, text.len()) && !state.events.is_empty();
            if state.ended || is_behind {
                drop(state);
                return self.end();
            }
            self.add(&mut state, text);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Ends it without a word, whoever reads it.
    pub fn end(&self) {
        self.finish(None);
    }

    /// A reader that goes on after a position. It takes the place of the one before.
    pub fn attach(self: &Arc<Self>, after: u64) -> Reader {
        let (before, ticket) = {
            let mut state = self.state.lock();
            if let Some(reply) = state.reply.take() {
                self.add(&mut state, reply.text);
            }
            state.sent = after.min(state.last);
            state.reader += 1;
            state.attached = true;
            // Asked to come back before anybody read: the first reader still hears where to come back to.
            state.paused &= state.reader == 1;
            (state.waker.take(), state.reader)
        };
        before.into_iter().for_each(Waker::wake);
        Reader { stream: self.clone(), ticket }
    }

    pub fn is_attached(&self) -> bool {
        self.state.lock().attached
    }

    pub fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Adds an event whatever the limits say; only replies, of which there is one, come here directly.
    fn add(&self, state: &mut State, text: String) {
        state.last += 1;
        state.bytes += text.len();
        self.budget.take(text.len());
        state.events.push_back(Event { position: state.last, text });
    }

    /// Whether there is room for a message, once what was delivered has made way for it.
    fn make_room(&self, state: &mut State, bytes: usize) -> bool {
        let fits = |state: &State| {
            state.events.len() < EVENTS
                && state.bytes + bytes <= EVENT_BYTES
                && self.budget.taken() + bytes <= ALL_BYTES
        };
        while !fits(state) {
            match state.events.front() {
                Some(oldest) if oldest.position <= state.sent => self.forget_oldest(state),
                Some(_) | None => return false,
            }
        }
        true
    }

    fn forget_oldest(&self, state: &mut State) {
        if let Some(oldest) = state.events.pop_front() {
            state.bytes -= oldest.text.len();
            self.budget.give(oldest.text.len());
        }
    }
}

impl State {
    fn is_streaming(&self) -> bool {
        self.reader > 0 || !self.events.is_empty() || self.paused
    }

    fn wait(&mut self, context: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => self.waker = Some(context.waker().clone()),
        }
    }
}

impl Outlet for Stream {
    fn send(&self, text: String) -> bool {
        let waker = {
            let mut state = self.state.lock();
            if state.ended || !self.make_room(&mut state, text.len()) {
                return false;
            }
            self.add(&mut state, text);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Without a priming event the client would have nothing to come back with, so its stream stays open.
    fn close(&self) {
        if !self.primed {
            return;
        }
        let waker = {
            let mut state = self.state.lock();
            state.paused = true;
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.budget.give(self.state.get_mut().bytes);
    }
}

/// The one who reads a stream at present.
pub(super) struct Reader {
    stream: Arc<Stream>,
    ticket: u64,
}

impl Reader {
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// What is new, written after `first`; None at the end of this reader.
    pub fn poll_events(&self, context: &mut Context<'_>, first: &mut Option<Bytes>) -> Poll<Option<Bytes>> {
        let mut state = self.stream.state.lock();
        if state.reader != self.ticket {
            return Poll::Ready(None);
        }
        if let Some(frame) = self.frame(&mut state, first) {
            return Poll::Ready(Some(frame));
        }
        if let Some(first) = first.take() {
            return Poll::Ready(Some(first));
        }
        if state.paused || state.ended {
            return Poll::Ready(None);
        }
        state.wait(context);
        Poll::Pending
    }

    fn frame(&self, state: &mut State, first: &mut Option<Bytes>) -> Option<Bytes> {
        let sent = state.sent;
        let start = state.events.partition_point(|event| event.position <= sent);
        if start == state.events.len() {
            return None;
        }
        let mut frame = BytesMut::new();
        if let Some(first) = first.take() {
            frame.put(first);
        }
        for event in state.events.range(start..) {
            if !frame.is_empty() && frame.len() + event.text.len() > FRAME_BYTES {
                break;
            }
            event::write(&mut frame, state.name.as_ref().map(|name| (name, event.position)), &event.text);
            state.sent = event.position;
        }
        // Nobody can come back for what has no name.
        while state.name.is_none() && state.events.front().is_some_and(|event| event.position <= state.sent) {
            self.stream.forget_oldest(state);
        }
        Some(frame.freeze())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.state.lock();
        if state.reader == self.ticket {
            state.attached = false;
            state.waker = None;
        }
    }
}

#[cfg(test)]
mod tests;
