//! Time. Real time for the program; simulated time for deterministic mode and for tests.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Tells the time and waits. Waiting itself always goes through tokio's timer, so a paused runtime simulates it.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970, for records.
    fn now_ms(&self) -> i64;

    /// Microseconds since some fixed moment; never goes back. For durations and deadlines.
    fn elapsed_us(&self) -> u64;

    /// Ends after the given time.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// ISO 8601 in UTC with milliseconds, as every face writes it.
pub fn iso(ms: i64) -> String {
    match Timestamp::from_millisecond(ms) {
        Ok(timestamp) => format!("{timestamp:.3}"),
        Err(_) => String::from("1970-01-01T00:00:00.000Z"),
    }
}

/// Milliseconds since 1970 of a moment in ISO 8601, such as `2026-01-01T00:00:00Z`; without an offset it is UTC.
pub fn parse_iso(text: &str) -> Option<i64> {
    // Other separators and time zones in brackets belong to other standards.
    if text.get(10..11) != Some("T") || text.contains('[') {
        return None;
    }
    let moment = match text.parse::<Timestamp>() {
        Ok(moment) => moment,
        Err(_) => text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp(),
    };
    Some(moment.as_millisecond())
}

/// The clock of the machine.
pub struct Real {
    started: tokio::time::Instant,
}

impl Real {
    pub fn new() -> Self {
        Self { started: tokio::time::Instant::now() }
    }
}

impl Default for Real {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Real {
    fn now_ms(&self) -> i64 {
        Timestamp::now().as_millisecond()
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that stands still until somebody waits: the wait really takes its time, then the clock shows it.
///
/// What a run records then depends only on what it was asked, not on how fast the machine is.
pub struct Simulated {
    now_us: std::sync::Arc<AtomicI64>,
}

impl Simulated {
    /// 2026-01-01T00:00:00.000Z
    pub const START_MS: i64 = 1_767_225_600_000;

    pub fn new() -> Self {
        Self { now_us: std::sync::Arc::new(AtomicI64::new(0)) }
    }

    pub fn advance(&self, duration: Duration) {
        let us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.now_us.fetch_add(us, Ordering::SeqCst);
    }
}

impl Default for Simulated {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Simulated {
    fn now_ms(&self) -> i64 {
        Self::START_MS + self.now_us.load(Ordering::SeqCst) / 1000
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.now_us.load(Ordering::SeqCst)).unwrap_or(0)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let now_us = self.now_us.clone();
        let wake_us = now_us
            .load(Ordering::SeqCst)
            .saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX));
        Box::pin(async move {
            tokio::time::sleep(duration).await;
            now_us.fetch_max(wake_us, Ordering::SeqCst);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_has_milliseconds_and_a_z() {
        assert_eq!(iso(Simulated::START_MS), "2026-01-01T00:00:00.000Z");
        assert_eq!(iso(1_767_225_600_123), "2026-01-01T00:00:00.123Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_simulated_clock_moves_only_by_waiting() {
        let clock = Simulated::new();
        let before = clock.now_ms();
        assert_eq!(clock.now_ms(), before);
        clock.sleep(Duration::from_millis(250)).await;
        assert_eq!(clock.now_ms(), before + 250);
    }
}
