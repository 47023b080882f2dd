//! What waits to be written to one client, bounded by bytes: broadcasts pass a slow client by, and one that does not read
//! what it asked for is cut off.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::wire::Frame;

/// So many times the limit may wait for the writer's next turn while the client takes everything it is given.
const TURN_FACTOR: usize = 16;

/// How much a frame matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It reaches the client or the client is cut off.
    Critical,
    /// It is dropped when too much waits already.
    Broadcast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// More waited than the client may leave unread.
    Overflowed,
    Closed,
}

struct Queue {
    frames: VecDeque<Frame>,
    bytes: usize,
    state: State,
}

pub struct Outbox {
    queue: Mutex<Queue>,
    /// Whoever writes to the client.
    writer: AtomicWaker,
    /// Those who wait for room.
    drained: Notify,
    soft_bytes: usize,
    hard_bytes: usize,
    is_stalled: AtomicBool,
    dropped: AtomicU64,
}

impl Outbox {
    pub fn new(soft_bytes: usize, hard_bytes: usize) -> Self {
        Self {
            queue: Mutex::new(Queue { frames: VecDeque::new(), bytes: 0, state: State::Open }),
            writer: AtomicWaker::new(),
            drained: Notify::new(),
            soft_bytes,
            hard_bytes,
            is_stalled: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        }
    }

    /// Queues a frame; false when the client does not get it.
    pub fn push(&self, frame: Frame, weight: Weight) -> bool {
        let mut queue = self.queue.lock();
        if queue.state != State::Open {
            return false;
        }
        if queue.bytes > self.hard_bytes && self.is_stalled(queue.bytes) {
            queue.state = State::Overflowed;
            queue.frames = VecDeque::new();
            queue.bytes = 0;
            drop(queue);
            self.wake_all();
            return false;
        }
        if weight == Weight::Broadcast && queue.bytes > self.soft_bytes {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let was_empty = queue.frames.is_empty();
        queue.bytes += frame.len();
        queue.frames.push_back(frame);
        drop(queue);
        if was_empty {
            self.writer.wake();
        }
        true
    }

    /// Whether the client takes nothing at the moment. Until the writer says so, it may just not have had its turn yet.
    pub fn stall(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Release);
    }

    fn is_stalled(&self, bytes: usize) -> bool {
        self.is_stalled.load(Ordering::Acquire) || bytes > self.hard_bytes.saturating_mul(TURN_FACTOR)
    }

    /// The next frame. It no longer counts as waiting.
    pub fn pop(&self) -> Option<Frame> {
        let mut queue = self.queue.lock();
        let frame = queue.frames.pop_front()?;
        queue.bytes -= frame.len();
        let has_room = queue.bytes <= self.soft_bytes / 2;
        drop(queue);
        if has_room {
            self.drained.notify_waiters();
        }
        Some(frame)
    }

    /// Has the writer woken when there is something to write, or nothing more will be.
    pub fn register(&self, writer: &Waker) {
        self.writer.register(writer);
    }

    /// True once there is something to write, false once there never will be.
    pub async fn filled(&self) -> bool {
        poll_fn(|context| {
            self.writer.register(context.waker());
            let queue = self.queue.lock();
            match (queue.frames.is_empty(), queue.state) {
                (false, _) => Poll::Ready(true),
                (true, State::Open) => Poll::Pending,
                (true, State::Overflowed | State::Closed) => Poll::Ready(false),
            }
        })
        .await
    }

    pub fn is_overflowed(&self) -> bool {
        self.queue.lock().state == State::Overflowed
    }

    /// Whether the client takes nothing more.
    pub fn is_over(&self) -> bool {
        self.queue.lock().state != State::Open
    }

    /// Whether there is room for a good deal more before anything is dropped.
    pub fn has_room(&self) -> bool {
        self.queue.lock().bytes <= self.soft_bytes / 2
    }

    /// Ends once there is room, or nothing more is taken.
    pub async fn room(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            // Listening begins before the queue is looked at, so that no waking is missed.
            drained.as_mut().enable();
            if self.has_room() || self.is_over() {
                return;
            }
            drained.await;
        }
    }

    /// Ends when the client has left too much unread, if ever.
    pub async fn overflow(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if self.is_overflowed() {
                return;
            }
            drained.await;
        }
    }

    /// Takes nothing more; what waits can still be written.
    pub fn close(&self) {
        let mut queue = self.queue.lock();
        if queue.state == State::Open {
            queue.state = State::Closed;
        }
        drop(queue);
        self.wake_all();
    }

    /// Broadcasts that this client missed.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn wake_all(&self) {
        self.writer.wake();
        self.drained.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> Frame {
        "x".repeat(bytes).into()
    }

    #[test]
    fn broadcasts_are_dropped_first_and_counted() {
        let outbox = Outbox::new(100, 1000);
        assert!(outbox.push(frame(101), Weight::Broadcast));
        assert!(!outbox.push(frame(1), Weight::Broadcast));
        assert!(outbox.push(frame(1), Weight::Critical));
        assert_eq!(outbox.dropped(), 1);
        assert_eq!(outbox.pop().map(|frame| frame.len()), Some(101));
        assert!(outbox.push(frame(1), Weight::Broadcast));
    }

    #[test]
    fn a_client_that_does_not_read_is_cut_off() {
        let outbox = Outbox::new(100, 1000);
        assert!(outbox.push(frame(5000), Weight::Critical), "one large answer is no crime");
        assert!(outbox.push(frame(5000), Weight::Critical), "nor are two, before the writer had its turn");
        assert!(!outbox.push(frame(1), Weight::Broadcast));
        outbox.stall(true);
        assert!(!outbox.push(frame(1), Weight::Critical));
        assert!(outbox.is_overflowed());
        assert!(outbox.pop().is_none(), "what waited is given up");
        assert!(!outbox.push(frame(1), Weight::Critical));
    }

    #[test]
    fn there_is_an_end_to_patience() {
        let outbox = Outbox::new(100, 1000);
        while outbox.push(frame(1000), Weight::Critical) {}
        assert!(outbox.is_overflowed());
    }

    #[test]
    fn a_closed_box_still_gives_what_it_holds() {
        let outbox = Outbox::new(100, 1000);
        assert!(outbox.push(frame(1), Weight::Critical));
        outbox.close();
        assert!(!outbox.push(frame(1), Weight::Critical));
        assert!(
            outbox.pop().is_some() && outbox.pop().is_none() && outbox.is_over() && !outbox.is_overflowed()
        );
    }

    #[tokio::test]
    async fn room_is_waited_for() {
        let outbox = std::sync::Arc::new(Outbox::new(100, 1000));
        assert!(outbox.push(frame(60), Weight::Critical));
        let waiting = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        outbox.pop();
        waiting.await.unwrap();
    }
}
