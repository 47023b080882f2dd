//! Counts what the bus drops: since the start, by priority and name, and over the last minute; warns when it is much.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use orchestr8_contract::{Event, Priority};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;

use super::{Config, ratio};
use crate::log::Log;

/// The rolling window of the drop rate.
const WINDOW_S: u64 = 60;

/// Drops are counted under so many names; events of further names count as `other`.
const NAMES: usize = 256;

/// What the bus tells about itself, under the names of the seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metrics {
    pub events_dropped_total: u64,
    pub events_dropped_critical: u64,
    pub events_dropped_normal: u64,
    pub events_dropped_by_name: BTreeMap<&'static str, u64>,
    /// Events that wait, over all listeners.
    pub event_queue_size: usize,
    /// How full the fullest queue is, from 0 to 1.
    pub event_queue_utilization: f64,
    /// Events that wait in room reserved for critical ones, over all listeners.
    pub event_queue_reserved_usage: usize,
    /// Events dropped in the last minute.
    pub event_drop_rate_per_minute: u64,
    /// The share of the events offered in the last minute that were dropped, from 0 to 1.
    pub event_drop_ratio: f64,
}

/// The counts after one more drop.
pub struct Toll {
    pub total: u64,
    pub per_minute: u64,
}

pub struct Drops {
    offered: AtomicU64,
    critical: AtomicU64,
    normal: AtomicU64,
    /// The second that the newest sample began, so that most events pass without a lock.
    newest_s: AtomicU64,
    window: Mutex<Window>,
    threshold: f64,
    interval_us: u64,
    log: Log,
}

#[derive(Default)]
struct Window {
    /// The counts as they were when a second began in which anything happened. At most one for each second of the window.
    samples: VecDeque<Sample>,
    by_name: BTreeMap<&'static str, u64>,
    warned_us: Option<u64>,
}

struct Sample {
    second: u64,
    offered: u64,
    dropped: u64,
}

impl Drops {
    pub fn new(config: &Config, log: Log) -> Self {
        Self {
            offered: AtomicU64::new(0),
            critical: AtomicU64::new(0),
            normal: AtomicU64::new(0),
            newest_s: AtomicU64::new(u64::MAX),
            window: Mutex::default(),
            threshold: config.warning_threshold,
            interval_us: config.warning_interval_ms.saturating_mul(1000),
            log,
        }
    }

    /// Counts events offered to listeners.
    pub fn offered(&self, count: u64, now_us: u64) {
        let second = now_us / 1_000_000;
        if self.newest_s.load(Ordering::Relaxed) != second {
            self.begin(&mut self.window.lock(), second);
        }
        self.offered.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts a dropped event, and warns when they are too many.
    pub fn dropped(&self, event: &Event, now_us: u64) -> Toll {
        let mut window = self.window.lock();
        self.begin(&mut window, now_us / 1_000_000);
        match event.priority {
            Priority::Critical => self.critical.fetch_add(1, Ordering::Relaxed),
            Priority::Normal => self.normal.fetch_add(1, Ordering::Relaxed),
        };
        let known = window.by_name.len() < NAMES || window.by_name.contains_key(event.name);
        *window.by_name.entry(if known { event.name } else { "other" }).or_default() += 1;
        let (offered, dropped) = self.recent(&window);
        let ratio = ratio(dropped, offered);
        let due = window.warned_us.is_none_or(|at_us| now_us.saturating_sub(at_us) >= self.interval_us);
        let warns = ratio > self.threshold && due;
        if warns {
            window.warned_us = Some(now_us);
        }
        drop(window);
        let total = self.total();
        if warns {
            self.log.warn(
                "the event bus drops events: listeners are too slow",
                json!({"dropRatio": ratio, "droppedInLastMinute": dropped, "droppedTotal": total, "event": event.name}),
            );
        }
        Toll { total, per_minute: dropped }
    }

    pub fn metrics(&self, now_us: u64) -> Metrics {
        let mut window = self.window.lock();
        self.begin(&mut window, now_us / 1_000_000);
        let (offered, dropped) = self.recent(&window);
        Metrics {
            events_dropped_total: self.total(),
            events_dropped_critical: self.critical.load(Ordering::Relaxed),
            events_dropped_normal: self.normal.load(Ordering::Relaxed),
            events_dropped_by_name: window.by_name.clone(),
            event_queue_size: 0,
            event_queue_utilization: 0.0,
            event_queue_reserved_usage: 0,
            event_drop_rate_per_minute: dropped,
            event_drop_ratio: ratio(dropped, offered),
        }
    }

    fn total(&self) -> u64 {
        self.critical.load(Ordering::Relaxed) + self.normal.load(Ordering::Relaxed)
    }

    /// Keeps the counts as a second begins, and forgets what the window has left behind.
    fn begin(&self, window: &mut Window, second: u64) {
        if window.samples.back().is_none_or(|newest| newest.second < second) {
            let (offered, dropped) = (self.offered.load(Ordering::Relaxed), self.total());
            window.samples.push_back(Sample { second, offered, dropped });
        }
        while window.samples.front().is_some_and(|oldest| oldest.second + WINDOW_S <= second) {
            window.samples.pop_front();
        }
        self.newest_s.store(second, Ordering::Relaxed);
    }

    /// What was offered and dropped within the window.
    fn recent(&self, window: &Window) -> (u64, u64) {
        let Some(oldest) = window.samples.front() else { return (0, 0) };
        let offered = self.offered.load(Ordering::Relaxed).saturating_sub(oldest.offered);
        (offered, self.total().saturating_sub(oldest.dropped))
    }
}
