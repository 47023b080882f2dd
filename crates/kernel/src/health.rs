//! Health: how busy the process is, and whether that is still well (seed 000, "Health Thresholds").

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use orchestr8_contract::{Code, Kind};
use parking_lot::Mutex;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::ports::Clock;

/// The process is degraded above this share of the slots, in tenths.
const BUSY_TENTHS: usize = 8;

/// The process is degraded when its tasks run later than this.
const SLOW_MS: f64 = 100.0;

/// The process is unhealthy when its tasks run later than this.
const STUCK_MS: f64 = 500.0;

/// The process is unhealthy once so many calls in a row were refused for want of resources.
const REFUSALS: u32 = 3;

/// How often the delay of the runtime is sampled. Four wake-ups a second are no measurable load, and a runtime that hangs
/// for longer than this plus a threshold is always caught above that threshold.
const SAMPLE_MS: u64 = 250;

/// The worst of so many samples counts: the last five seconds, so that a probe every few seconds misses nothing.
const SAMPLES: usize = 20;

/// What the process uses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Telemetry {
    pub memory_usage_bytes: u64,
    /// How late tasks run, in milliseconds: the worst of the last seconds. The name is the seed's.
    pub event_loop_delay_ms: f64,
    pub concurrent_executions: usize,
    pub max_concurrent_executions: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Healthy,
    Degraded,
    Unhealthy,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Healthy => "healthy",
            Status::Degraded => "degraded",
            Status::Unhealthy => "unhealthy",
        }
    }
}

/// The table of the seed: the worst line that applies.
pub fn status(telemetry: &Telemetry, refused_in_a_row: u32) -> Status {
    let (running, max) = (telemetry.concurrent_executions, telemetry.max_concurrent_executions);
    if running >= max || telemetry.event_loop_delay_ms > STUCK_MS || refused_in_a_row >= REFUSALS {
        Status::Unhealthy
    } else if running * 10 > max * BUSY_TENTHS || telemetry.event_loop_delay_ms > SLOW_MS {
        Status::Degraded
    } else {
        Status::Healthy
    }
}

/// Keeps what the status of the process depends on.
#[derive(Debug, Default)]
pub struct Health {
    refused_in_a_row: AtomicU32,
    delays_us: Mutex<VecDeque<u64>>,
}

impl Health {
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells that a tool call has ended, refused before it ran or not, and with which error if any.
    ///
    /// A refusal for want of resources counts, any other end begins the count anew, and a tool that ran and itself reports
    /// exhausted resources does neither. Errors of protocol and state are not ends of tool calls.
    pub fn ended(&self, refused: bool, code: Option<Code>) {
        let exhausted = code.is_some_and(|code| code.kind() == Kind::Exhausted);
        if exhausted && refused {
            let more = |count: u32| Some(count.saturating_add(1));
            let _ = self.refused_in_a_row.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        } else if !exhausted && self.refused_in_a_row.load(Ordering::Relaxed) != 0 {
            // Read first: calls that run in parallel then share the line of memory instead of fighting for it.
            self.refused_in_a_row.store(0, Ordering::Relaxed);
        }
    }

    pub fn refused_in_a_row(&self) -> u32 {
        self.refused_in_a_row.load(Ordering::Relaxed)
    }

    pub fn telemetry(&self, memory_usage_bytes: u64, running: usize, max: usize) -> Telemetry {
        Telemetry {
            memory_usage_bytes,
            event_loop_delay_ms: self.delay_ms(),
            concurrent_executions: running,
            max_concurrent_executions: max,
        }
    }

    pub fn status(&self, telemetry: &Telemetry) -> Status {
        status(telemetry, self.refused_in_a_row())
    }

    /// Samples how late tasks run until it is cancelled: it sleeps a fixed time and looks how much later it wakes.
    ///
    /// Deterministic mode does not run it: its waits would move a simulated clock. The delay then stays zero.
    pub async fn sample(self: Arc<Self>, clock: Arc<dyn Clock>, cancel: CancellationToken) {
        let wait = Duration::from_millis(SAMPLE_MS);
        loop {
            let due_us = clock.elapsed_us().saturating_add(SAMPLE_MS * 1000);
            tokio::select! {
                () = cancel.cancelled() => return,
                () = clock.sleep(wait) => self.add_delay(clock.elapsed_us().saturating_sub(due_us)),
            }
        }
    }

    fn add_delay(&self, delay_us: u64) {
        let mut delays_us = self.delays_us.lock();
        if delays_us.len() == SAMPLES {
            delays_us.pop_front();
        }
        delays_us.push_back(delay_us);
    }

    #[allow(clippy::cast_precision_loss, reason = "a delay of 285 years would lose a microsecond")]
    fn delay_ms(&self) -> f64 {
        self.delays_us.lock().iter().max().map_or(0.0, |delay_us| *delay_us as f64 / 1000.0)
    }
}

/// The memory of this process that is in RAM, in bytes; zero where the system does not tell.
pub fn memory_usage_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|status| resident_bytes(&status)).unwrap_or(0)
}

/// Reads `VmRSS:    1234 kB` out of what Linux tells about a process.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::clock::Simulated;
    use futures::future::BoxFuture;
    use serde_json::json;

    fn at(running: usize, max: usize, delay_ms: f64) -> Telemetry {
        Telemetry {
            memory_usage_bytes: 1,
            event_loop_delay_ms: delay_ms,
            concurrent_executions: running,
            max_concurrent_executions: max,
        }
    }

    #[test]
    fn the_status_is_the_worst_line_of_the_table_that_applies() {
        for (running, delay_ms, refused, wanted) in [
            (0, 0.0, 0, Status::Healthy),
            (8, 100.0, 2, Status::Healthy),
            (9, 0.0, 0, Status::Degraded),
            (0, 100.1, 0, Status::Degraded),
            (0, 500.0, 0, Status::Degraded),
            (10, 0.0, 0, Status::Unhealthy),
            (0, 500.1, 0, Status::Unhealthy),
            (0, 0.0, 3, Status::Unhealthy),
            (9, 600.0, 0, Status::Unhealthy),
        ] {
            assert_eq!(status(&at(running, 10, delay_ms), refused), wanted, "{running} {delay_ms} {refused}");
        }
    }

    #[test]
    fn refusals_count_only_in_a_row() {
        let health = Health::new();
        let refuse = || health.ended(true, Some(Code::ResourceExhausted));
        refuse();
        health.ended(true, Some(Code::PayloadTooLarge));
        assert_eq!(health.status(&at(0, 10, 0.0)), Status::Healthy);
        refuse();
        assert_eq!((health.refused_in_a_row(), health.status(&at(0, 10, 0.0))), (3, Status::Unhealthy));
        // A tool that ran and reports exhausted resources is neither a refusal nor another completion.
        health.ended(false, Some(Code::ResourceExhausted));
        assert_eq!(health.refused_in_a_row(), 3);
        health.ended(false, None);
        assert_eq!((health.refused_in_a_row(), health.status(&at(0, 10, 0.0))), (0, Status::Healthy));
        for code in [Code::InvalidArgument, Code::NotFound, Code::Timeout, Code::Internal] {
            refuse();
            health.ended(true, Some(code));
            assert_eq!(health.refused_in_a_row(), 0, "{code}");
        }
    }

    #[test]
    fn telemetry_has_the_names_of_the_seed() {
        let health = Health::new();
        let telemetry = health.telemetry(4096, 2, 10);
        let wanted = json!({"memoryUsageBytes": 4096, "eventLoopDelayMs": 0.0, "concurrentExecutions": 2, "maxConcurrentExecutions": 10});
        assert_eq!(serde_json::to_value(telemetry).unwrap(), wanted);
        for status in [Status::Healthy, Status::Degraded, Status::Unhealthy] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
    }

    /// Wakes late by a fixed time.
    struct Late(Arc<Simulated>, Duration);

    impl Clock for Late {
        fn now_ms(&self) -> i64 {
            self.0.now_ms()
        }
        fn elapsed_us(&self) -> u64 {
            self.0.elapsed_us()
        }
        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            let (clock, late) = (self.0.clone(), self.1);
            Box::pin(async move {
                clock.sleep(duration).await;
                clock.advance(late);
            })
        }
    }

    async fn sampled_for(health: &Arc<Health>, late_ms: u64, samples: u64) {
        let cancel = CancellationToken::new();
        let clock = Arc::new(Late(Arc::new(Simulated::new()), Duration::from_millis(late_ms)));
        let task = tokio::spawn(health.clone().sample(clock, cancel.clone()));
        tokio::time::sleep(Duration::from_millis(SAMPLE_MS * samples + 1)).await;
        cancel.cancel();
        task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_is_measured_in_milliseconds_and_forgotten_after_a_while() {
        let health = Arc::new(Health::new());
        sampled_for(&health, 120, 1).await;
        assert_eq!(health.telemetry(0, 0, 1).event_loop_delay_ms, 120.0);
        sampled_for(&health, 7, SAMPLES as u64 - 1).await;
        assert_eq!(health.delay_ms(), 120.0);
        sampled_for(&health, 7, 1).await;
        assert_eq!(health.delay_ms(), 7.0);
    }

    #[test]
    fn memory_is_read_from_what_the_system_tells() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\nVmData: 1 kB\n"), Some(2_097_152));
        for odd in [
            "",
            "VmRSS: many kB",
            "VmRSS: 5",
            "VmRSS: 99999999999999999999 kB",
            "VmRSS: 18446744073709551615 kB",
        ] {
            assert_eq!(resident_bytes(odd), None, "{odd}");
        }
        assert!(memory_usage_bytes() > 100_000);
    }
}
