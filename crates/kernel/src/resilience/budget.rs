//! The time that all attempts and the waits between them may take together (WF-19.1: 90 seconds).

/// A budget of time, begun at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    ends_us: u64,
}

impl Budget {
    pub fn begin(total_ms: u64, now_us: u64) -> Self {
        Self { ends_us: now_us.saturating_add(total_ms.saturating_mul(1000)) }
    }

    /// What is left, rounded down, so that whoever waits as long does not overrun.
    pub fn remaining_ms(self, now_us: u64) -> u64 {
        self.ends_us.saturating_sub(now_us) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains_shrinks_to_nothing_and_never_overruns() {
        let budget = Budget::begin(90_000, 5_000);
        assert_eq!(budget.remaining_ms(5_000), 90_000);
        assert_eq!(budget.remaining_ms(5_001), 89_999);
        assert_eq!(budget.remaining_ms(90_004_999), 0);
        assert_eq!(budget.remaining_ms(u64::MAX), 0);
        assert_eq!(Budget::begin(u64::MAX, 1).remaining_ms(1), (u64::MAX - 1) / 1000);
    }
}
