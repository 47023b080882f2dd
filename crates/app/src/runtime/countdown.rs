//! How long the end may take: counted from the moment it began, over everything that has to end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use orchestr8_kernel::ports::Clock;

/// Clones share the moment.
#[derive(Clone)]
pub struct Countdown {
    clock: Arc<dyn Clock>,
    limit: Duration,
    began_us: Arc<OnceLock<u64>>,
}

impl Countdown {
    pub fn new(clock: Arc<dyn Clock>, limit: Duration) -> Self {
        Self { clock, limit, began_us: Arc::default() }
    }

    /// The end has begun. Only the first call counts.
    pub fn begin(&self) {
        self.began_us.get_or_init(|| self.clock.elapsed_us());
    }

    /// What is left of the time; all of it before the end has begun.
    pub fn left(&self) -> Duration {
        let spent = self.began_us.get().map_or(0, |began| self.clock.elapsed_us().saturating_sub(*began));
        self.limit.saturating_sub(Duration::from_micros(spent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::ports::clock::Simulated;

    #[test]
    fn time_runs_from_the_first_beginning() {
        let clock = Arc::new(Simulated::new());
        let countdown = Countdown::new(clock.clone(), Duration::from_secs(10));
        clock.advance(Duration::from_secs(5));
        assert_eq!(countdown.left(), Duration::from_secs(10));
        countdown.begin();
        clock.advance(Duration::from_secs(4));
        countdown.clone().begin();
        assert_eq!(countdown.left(), Duration::from_secs(6));
        clock.advance(Duration::from_secs(40));
        assert_eq!(countdown.left(), Duration::ZERO);
    }
}
