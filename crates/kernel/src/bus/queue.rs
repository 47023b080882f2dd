//! The queue of one listener: two lines, normal and critical, merged by number, so that every operation takes constant time.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use orchestr8_contract::{Event, Priority};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Config, Overflow};

/// How much a queue holds.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub total: usize,
    /// Of these, how many may be normal events.
    pub normal: usize,
    pub overflow: Overflow,
}

impl Limits {
    pub fn new(config: &Config) -> Self {
        let total = config.max_queue_size.max(1);
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let reserved = (total as f64 * config.reserved_capacity.clamp(0.0, 1.0)).floor() as usize;
        Self { total, normal: total.saturating_sub(reserved), overflow: config.overflow_policy }
    }
}

/// What became of an event that was offered.
#[derive(Debug)]
pub enum Offer {
    /// The queue took part: some event may have been dropped, the new one or another, and somebody may be to wake.
    Taken { dropped: Option<Event>, waker: Option<Waker> },
    /// Nobody listens here any more.
    Closed,
}

pub struct Queue {
    limits: Limits,
    lines: Mutex<Lines>,
    /// Publishers that wait for room. A normal event may lack room where a critical one has it, so they wait apart.
    normal_room: Notify,
    critical_room: Notify,
}

#[derive(Default)]
struct Lines {
    normal: VecDeque<(u64, Event)>,
    critical: VecDeque<(u64, Event)>,
    next_number: u64,
    reader: Option<Waker>,
    closed: bool,
}

impl Queue {
    pub fn new(limits: Limits) -> Self {
        Self { limits, lines: Mutex::default(), normal_room: Notify::new(), critical_room: Notify::new() }
    }

    /// Takes the event in, or drops one by the policy.
    pub fn offer(&self, event: Event) -> Offer {
        let mut lines = self.lines.lock();
        if lines.closed {
            return Offer::Closed;
        }
        let dropped = if lines.has_room(self.limits, event.priority) {
            None
        } else {
            match self.limits.overflow {
                Overflow::DropOldest => match lines.make_room(event.priority) {
                    Some(oldest) => Some(oldest),
                    None => return Offer::Taken { dropped: Some(event), waker: None },
                },
                Overflow::DropNewest | Overflow::Block => {
                    return Offer::Taken { dropped: Some(event), waker: None };
                }
            }
        };
        Offer::Taken { dropped, waker: lines.push(event) }
    }

    /// Takes the event in if that drops nothing; gives back whom to wake.
    pub fn offer_if_room(&self, event: &Event) -> Option<Waker> {
        let mut lines = self.lines.lock();
        if lines.closed || !lines.has_room(self.limits, event.priority) {
            return None;
        }
        lines.push(event.clone())
    }

    /// Takes the event in as soon as there is room, or nobody listens any more.
    pub async fn wait_for_room(&self, event: &Event) {
        let room = match event.priority {
            Priority::Normal => &self.normal_room,
            Priority::Critical => &self.critical_room,
        };
        loop {
            // Waiting begins before the look, so that room made in between is not missed.
            let mut made = pin!(room.notified());
            made.as_mut().enable();
            match self.offer(event.clone()) {
                Offer::Taken { dropped: Some(_), .. } => made.await,
                Offer::Taken { dropped: None, waker } => {
                    waker.into_iter().for_each(Waker::wake);
                    return;
                }
                Offer::Closed => return,
            }
        }
    }

    /// The oldest event.
    pub fn take(&self) -> Option<Event> {
        let event = self.lines.lock().pop();
        self.tell_room(event.is_some());
        event
    }

    /// The oldest event; while there is none, the caller is woken for the next one.
    pub fn poll_next(&self, context: &Context<'_>) -> Poll<Option<Event>> {
        let mut lines = self.lines.lock();
        let event = lines.pop();
        if event.is_none() && !lines.closed {
            lines.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        drop(lines);
        self.tell_room(event.is_some());
        Poll::Ready(event)
    }

    pub fn size(&self) -> usize {
        self.lines.lock().size()
    }

    /// Ends it: nothing more is taken in, and whoever waits here is woken.
    pub fn close(&self) {
        let mut lines = self.lines.lock();
        lines.closed = true;
        let reader = lines.reader.take();
        drop(lines);
        reader.into_iter().for_each(Waker::wake);
        self.normal_room.notify_waiters();
        self.critical_room.notify_waiters();
    }

    /// Wakes one publisher of each kind: which of them fits, they find out themselves.
    fn tell_room(&self, made: bool) {
        if made && self.limits.overflow == Overflow::Block {
            self.critical_room.notify_one();
            self.normal_room.notify_one();
        }
    }
}

impl Lines {
    fn size(&self) -> usize {
        self.normal.len() + self.critical.len()
    }

    fn has_room(&self, limits: Limits, priority: Priority) -> bool {
        let fits = match priority {
            Priority::Critical => true,
            Priority::Normal => self.normal.len() < limits.normal,
        };
        fits && self.size() < limits.total
    }

    /// Takes out what must go for an event of this priority: the oldest normal one, then for a critical one the oldest of all.
    fn make_room(&mut self, priority: Priority) -> Option<Event> {
        let oldest = match priority {
            Priority::Normal => self.normal.pop_front(),
            Priority::Critical => self.normal.pop_front().or_else(|| self.critical.pop_front()),
        };
        oldest.map(|(_, event)| event)
    }

    fn push(&mut self, event: Event) -> Option<Waker> {
        let number = self.next_number;
        self.next_number += 1;
        match event.priority {
            Priority::Normal => self.normal.push_back((number, event)),
            Priority::Critical => self.critical.push_back((number, event)),
        }
        self.reader.take()
    }

    fn pop(&mut self) -> Option<Event> {
        let normal_first = match (self.normal.front(), self.critical.front()) {
            (Some((normal, _)), Some((critical, _))) => normal < critical,
            (Some(_), None) => true,
            (None, Some(_) | None) => false,
        };
        let line = if normal_first { &mut self.normal } else { &mut self.critical };
        line.pop_front().map(|(_, event)| event)
    }
}
