//! The event bus (ADR-005, WF-19.6): news inside the process, each listener with a bounded queue of its own.
//!
//! A listener that is slow, stuck or gone loses its own events and nobody else's. Publishing costs the same for every
//! interested listener, however full its queue is, and nothing at all when nobody listens. Events of one name reach a
//! listener in the order in which they were published; an overflow leaves gaps, never swaps.

mod drops;
mod index;
mod queue;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use orchestr8_contract::{Code, Event, Fault, Priority};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::log::Log;
use crate::ports::Clock;
use drops::Drops;
pub use drops::Metrics;
use index::Index;
use queue::{Limits, Offer, Queue};

/// Told when an event was dropped. It only takes room that is free, so it drops no other event; without room it is dropped
/// itself, which is neither told nor counted.
pub const EVENT_DROPPED: &str = "event-dropped";
pub const CIRCUIT_OPEN: &str = "circuit-open";
pub const CIRCUIT_CLOSE: &str = "circuit-close";

/// The events that the seed calls critical.
pub const CRITICAL: [&str; 7] = [
    "execution-start",
    "execution-complete",
    "execution-failed",
    "cancellation",
    CIRCUIT_OPEN,
    CIRCUIT_CLOSE,
    "error",
];

/// More listeners than this are refused, so that they cannot use up the memory with their queues.
pub const LISTENERS: usize = 10_000;

/// How important the seed takes events of this name to be.
pub fn priority(name: &str) -> Priority {
    if CRITICAL.contains(&name) { Priority::Critical } else { Priority::Normal }
}

/// What happens to an event when a queue has no room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// The oldest normal event makes room; a critical one makes room only for another critical one.
    DropOldest,
    /// The new event is dropped.
    DropNewest,
    /// The publisher waits for room, at most `block_ms`.
    Block,
}

impl Overflow {
    pub fn as_str(self) -> &'static str {
        match self {
            Overflow::DropOldest => "drop-oldest",
            Overflow::DropNewest => "drop-newest",
            Overflow::Block => "block",
        }
    }
}

/// How a bus behaves. The defaults are the seed's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Config {
    /// Events that wait for one listener.
    pub max_queue_size: usize,
    pub overflow_policy: Overflow,
    /// The share of a queue that only critical events may use.
    pub reserved_capacity: f64,
    /// The share of dropped events, over the last minute, above which the log warns.
    pub warning_threshold: f64,
    /// The log warns at most this often.
    pub warning_interval_ms: u64,
    /// A publisher that waits for room gives up after this long, and its event is dropped.
    pub block_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_queue_size: 1000,
            overflow_policy: Overflow::DropOldest,
            reserved_capacity: 0.1,
            warning_threshold: 0.1,
            warning_interval_ms: 30_000,
            block_ms: 30_000,
        }
    }
}

/// Which events a listener wants.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of these names; empty: of every name.
    pub names: Vec<&'static str>,
    /// About this subject; none: about any.
    pub subject: Option<Arc<str>>,
}

impl Filter {
    pub fn all() -> Self {
        Self::default()
    }

    pub fn names(names: impl IntoIterator<Item = &'static str>) -> Self {
        Self { names: names.into_iter().collect(), subject: None }
    }

    #[must_use]
    pub fn about(mut self, subject: impl Into<Arc<str>>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}

/// A handle to the bus. Clones share it; the queues end when the last one is gone.
#[derive(Clone)]
pub struct Bus {
    shared: Arc<Shared>,
}

struct Shared {
    limits: Limits,
    block: Duration,
    clock: Arc<dyn Clock>,
    index: RwLock<Index>,
    listeners: AtomicUsize,
    drops: Drops,
}

impl Bus {
    pub fn new(config: &Config, clock: Arc<dyn Clock>, log: Log) -> Self {
        Self {
            shared: Arc::new(Shared {
                limits: Limits::new(config),
                block: Duration::from_millis(config.block_ms),
                index: RwLock::default(),
                listeners: AtomicUsize::new(0),
                drops: Drops::new(config, log),
                clock,
            }),
        }
    }

    /// Whether nobody listens to anything.
    pub fn quiet(&self) -> bool {
        self.shared.listeners.load(Ordering::Relaxed) == 0
    }

    /// Whether anybody listens to events of this name, so that a publisher need not make one for nobody.
    pub fn has_listeners(&self, name: &str) -> bool {
        !self.quiet() && self.shared.index.read().has(name)
    }

    /// Listens from now on, until the subscription is dropped.
    pub fn subscribe(&self, filter: &Filter) -> Result<Subscription, Fault> {
        let mut index = self.shared.index.write();
        if index.len() >= LISTENERS {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("there are {LISTENERS} event listeners already"),
            )
            .with("reason", "too_many_listeners"));
        }
        let queue = Arc::new(Queue::new(self.shared.limits));
        let place = index.add(filter, queue.clone());
        self.shared.listeners.store(index.len(), Ordering::Relaxed);
        Ok(Subscription { queue, place, shared: Arc::downgrade(&self.shared) })
    }

    /// Gives the event to everybody who wants it. Never waits: under `Block` an event without room is dropped here.
    pub fn publish(&self, event: Event) {
        for (_, dropped) in self.offer_all(&event) {
            self.account(&dropped);
        }
    }

    /// Gives the event to everybody who wants it. Under `Block` it waits for those without room, once everybody else has it.
    pub async fn publish_blocking(&self, event: Event) {
        let overflowed = self.offer_all(&event);
        if overflowed.is_empty() {
            return;
        }
        let mut limit = self.shared.clock.sleep(self.shared.block);
        let mut patient = self.shared.limits.overflow == Overflow::Block;
        for (queue, dropped) in overflowed {
            if patient {
                tokio::select! {
                    biased;
                    () = queue.wait_for_room(&event) => continue,
                    () = &mut limit => patient = false,
                }
            }
            self.account(&dropped);
        }
    }

    pub fn metrics(&self) -> Metrics {
        let mut metrics = self.shared.drops.metrics(self.shared.clock.elapsed_us());
        for queue in self.shared.index.read().queues() {
            let size = queue.size();
            metrics.event_queue_size += size;
            metrics.event_queue_reserved_usage += size.saturating_sub(self.shared.limits.normal);
            let share = ratio(size as u64, self.shared.limits.total as u64);
            metrics.event_queue_utilization = metrics.event_queue_utilization.max(share);
        }
        metrics
    }

    /// Offers the event to each interested listener; gives back the queues that dropped an event, and which.
    fn offer_all(&self, event: &Event) -> Vec<(Arc<Queue>, Event)> {
        let mut overflowed = Vec::new();
        if self.quiet() {
            return overflowed;
        }
        let mut offered = 0;
        // Nobody is woken under the lock: what a waker runs might want the lock too.
        let mut wakers = Vec::new();
        self.shared.index.read().interested(event.name, &event.subject, |queue| {
            match queue.offer(event.clone()) {
                Offer::Taken { dropped, waker } => {
                    offered += 1;
                    wakers.extend(waker);
                    overflowed.extend(dropped.map(|dropped| (queue.clone(), dropped)));
                }
                Offer::Closed => {}
            }
        });
        wakers.into_iter().for_each(Waker::wake);
        if offered > 0 {
            self.shared.drops.offered(offered, self.shared.clock.elapsed_us());
        }
        overflowed
    }

    /// Counts a dropped event, and tells of it where there is room to.
    fn account(&self, dropped: &Event) {
        let toll = self.shared.drops.dropped(dropped, self.shared.clock.elapsed_us());
        if !self.has_listeners(EVENT_DROPPED) {
            return;
        }
        let limits = self.shared.limits;
        let news = Event {
            name: EVENT_DROPPED,
            subject: dropped.subject.clone(),
            priority: Priority::Normal,
            at_ms: self.shared.clock.now_ms(),
            data: Arc::new(json!({
                "type": limits.overflow.as_str(), "event": dropped.name, "priority": dropped.priority.as_str(),
                "count": toll.total, "dropRate": toll.per_minute, "queueSize": limits.total,
                "tenant": dropped.data.get("tenant"),
            })),
        };
        let mut wakers = Vec::new();
        let index = self.shared.index.read();
        index.interested(news.name, &news.subject, |queue| wakers.extend(queue.offer_if_room(&news)));
        drop(index);
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of events stay far below what a float tells apart")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for queue in self.index.get_mut().queues() {
            queue.close();
        }
    }
}

/// What one listener hears. Dropping it ends the listening; what it has not heard is gone.
pub struct Subscription {
    queue: Arc<Queue>,
    place: index::Place,
    shared: Weak<Shared>,
}

impl Subscription {
    /// The next event, once there is one; none when the bus is gone. Safe to drop while it waits.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.queue.poll_next(context)).await
    }

    /// The next event, if there is one now.
    pub fn try_next(&mut self) -> Option<Event> {
        self.queue.take()
    }

    /// How many events wait.
    pub fn waiting(&self) -> usize {
        self.queue.size()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // Closed first, so that nobody goes on waiting for room here.
        self.queue.close();
        if let Some(shared) = self.shared.upgrade() {
            let mut index = shared.index.write();
            index.remove(&self.place);
            shared.listeners.store(index.len(), Ordering::Relaxed);
        }
    }
}
