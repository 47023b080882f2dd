//! The event streams of one session: which there are, who may resume them, and where unasked messages go.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::face::Outlet;

use super::event::{Kind, Name, Place};
use super::stream::{Budget, Stream};

/// Stand-alone streams of one session; the oldest ends when one more is opened.
pub(super) const LISTENING: usize = 4;

/// Streams of one session kept after their end, for a client that missed the end.
pub(super) const KEPT: usize = 32;

/// How long a client may take to come back to a stream that has ended or that nobody reads.
pub(super) const RESUME_WINDOW_MS: u64 = 300_000;

pub(super) struct Streams {
    life: u32,
    budget: Arc<Budget>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    all: BTreeMap<u64, Entry>,
    /// The session is over: nothing is opened any more.
    ended: bool,
}

struct Entry {
    kind: Kind,
    stream: Arc<Stream>,
    /// When it was first seen to have ended, or to have nobody who reads it though nothing else keeps it going.
    idle_ms: Option<u64>,
}

/// What a place leads to.
pub(super) enum Found {
    Stream(Arc<Stream>),
    /// A stand-alone stream that is no more, for example of the time before a restart: a new one takes its place.
    Listen,
    /// An answer that is no longer kept.
    Gone,
}

impl Streams {
    pub fn new(life: u32, budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self { life, budget, inner: Mutex::default() })
    }

    /// Makes the answer to a POST a stream the client can come back to. None when the session has just ended.
    pub fn register(&self, stream: &Arc<Stream>) -> Option<Name> {
        self.add(stream, Kind::Call)
    }

    /// Opens a stand-alone stream.
    pub fn listen(&self, primed: bool) -> Option<(Name, Arc<Stream>)> {
        let stream = Stream::new(&self.budget, primed);
        let name = self.add(&stream, Kind::Listening)?;
        Some((name, stream))
    }

    fn add(&self, stream: &Arc<Stream>, kind: Kind) -> Option<Name> {
        let (name, over) = {
            let mut inner = self.inner.lock();
            if inner.ended {
                return None;
            }
            let over = inner.make_room(kind);
            inner.next += 1;
            let number = inner.next;
            inner.all.insert(number, Entry { kind, stream: stream.clone(), idle_ms: None });
            (Name { life: self.life, kind, number }, over)
        };
        over.iter().for_each(|stream| stream.end());
        stream.name(name.clone());
        Some(name)
    }

    pub fn find(&self, place: &Place) -> Found {
        let inner = self.inner.lock();
        let entry = inner
            .all
            .get(&place.name.number)
            .filter(|entry| place.name.life == self.life && place.name.kind == entry.kind);
        match (entry, place.name.kind) {
            (Some(entry), _) => Found::Stream(entry.stream.clone()),
            (None, Kind::Listening) => Found::Listen,
            (None, Kind::Call) => Found::Gone,
        }
    }

    /// Forgets streams whose clients have had time enough to come back.
    pub fn sweep(&self, now_ms: u64) {
        let mut gone = Vec::new();
        self.inner.lock().all.retain(|_, entry| {
            let unread = entry.kind == Kind::Listening && !entry.stream.is_attached();
            if !unread && !entry.stream.has_ended() {
                entry.idle_ms = None;
                return true;
            }
            let idle_ms = *entry.idle_ms.get_or_insert(now_ms);
            let keep = now_ms.saturating_sub(idle_ms) < RESUME_WINDOW_MS;
            if !keep {
                gone.push(entry.stream.clone());
            }
            keep
        });
        gone.iter().for_each(|stream| stream.end());
    }

    /// Ends every stream, for good.
    pub fn end(&self) {
        let all = {
            let mut inner = self.inner.lock();
            inner.ended = true;
            std::mem::take(&mut inner.all)
        };
        all.values().for_each(|entry| entry.stream.end());
    }
}

impl Inner {
    /// Takes out what must go so that one more of this kind may come.
    fn make_room(&mut self, kind: Kind) -> Option<Arc<Stream>> {
        let ended: Vec<u64> =
            self.all.iter().filter(|(_, entry)| entry.stream.has_ended()).map(|(n, _)| *n).collect();
        let too_many = (ended.len() + 1).saturating_sub(KEPT);
        for number in &ended[..too_many.min(ended.len())] {
            self.all.remove(number);
        }
        if kind == Kind::Call {
            return None;
        }
        let listening = |(_, entry): &(&u64, &Entry)| entry.kind == Kind::Listening;
        if self.all.iter().filter(listening).count() < LISTENING {
            return None;
        }
        let oldest = self.all.iter().find(listening).map(|(number, _)| *number)?;
        self.all.remove(&oldest).map(|entry| entry.stream)
    }
}

impl Outlet for Streams {
    /// Every message goes to exactly one stream: the newest with a reader, else the newest there is.
    fn send(&self, text: String) -> bool {
        let stream = {
            let inner = self.inner.lock();
            let mut listening = inner
                .all
                .values()
                .rev()
                .filter(|entry| entry.kind == Kind::Listening && !entry.stream.has_ended());
            let newest = listening.next();
            let read = newest.filter(|entry| entry.stream.is_attached());
            read.or_else(|| listening.find(|entry| entry.stream.is_attached()))
                .or(newest)
                .map(|entry| entry.stream.clone())
        };
        stream.is_some_and(|stream| stream.send(text))
    }
}

#[cfg(test)]
mod tests;
