//! Whether to try again, and after how long (ADR-018, WF-19.1).

use jiff::fmt::rfc2822::DateTimeParser;
use orchestr8_contract::error::Retry;
use orchestr8_contract::{Code, Fault, Kind};
use serde::{Deserialize, Serialize};

use super::Resilience;

/// The detail in which a fault says how long to wait at least (`Retry-After`).
pub const RETRY_AFTER_MS: &str = "retryAfterMs";

/// How waits are spread, so that many clients do not come back at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Jitter {
    /// Anywhere from nothing to the ceiling (ADR-019).
    Full,
    /// Anywhere from half the ceiling to the ceiling (ADR-018).
    Equal,
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    After { wait_ms: u64 },
    No,
}

/// Decides after the failure of an attempt. `unit` is uniform in [0, 1).
///
/// A wait is never longer than half of what remains, so that there is time left to try in (ADR-019, `budgetAwareBackoff`);
/// a wait that the other side asked for is kept whole, or the attempt is not made.
pub fn decide(policy: &Resilience, attempt: u32, remaining_ms: u64, fault: &Fault, unit: f64) -> Again {
    if !may_retry(fault) || attempt >= policy.max_attempts.max(1) {
        return Again::No;
    }
    let ceiling_ms = ceiling_ms(policy, attempt).min(remaining_ms / 2);
    let asked_ms = asked_wait_ms(fault).unwrap_or(0);
    let wait_ms = delay_ms(policy.jitter, ceiling_ms, unit).max(asked_ms);
    if wait_ms < remaining_ms { Again::After { wait_ms } } else { Again::No }
}

/// The value of a `Retry-After` header, in seconds or as a date, as a wait.
pub fn parse_retry_after(text: &str, now_ms: i64) -> Option<u64> {
    static DATES: DateTimeParser = DateTimeParser::new();
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(seconds.saturating_mul(1000));
    }
    let at_ms = DATES.parse_timestamp(text).ok()?.as_millisecond();
    Some(u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0))
}

/// The wait that the other side asks for.
pub fn asked_wait_ms(fault: &Fault) -> Option<u64> {
    fault.details.as_ref()?.get(RETRY_AFTER_MS)?.as_u64()
}

/// The longest wait after this attempt, counted from one: `min(cap, base · 2^(n-1))`.
pub fn ceiling_ms(policy: &Resilience, attempt: u32) -> u64 {
    let doublings = attempt.saturating_sub(1);
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    policy.base_delay_ms.saturating_mul(factor).min(policy.max_delay_ms)
}

/// A wait below the ceiling, or as long.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn delay_ms(jitter: Jitter, ceiling_ms: u64, unit: f64) -> u64 {
    let least_ms = match jitter {
        Jitter::Full => 0,
        Jitter::Equal => ceiling_ms / 2,
    };
    let steps = (ceiling_ms - least_ms).saturating_add(1);
    let step = (steps as f64 * unit.clamp(0.0, 1.0)) as u64;
    (least_ms + step.min(steps - 1)).min(ceiling_ms)
}

/// Whether trying again may help. What the table of codes says, within the kinds that another try can mend.
pub fn may_retry(fault: &Fault) -> bool {
    match fault.code.kind() {
        Kind::Timeout | Kind::Exhausted => fault.code.retry() == Retry::Later,
        // An open circuit stops retrying at once, and this process will not come back up within an attempt.
        Kind::Unavailable => !matches!(fault.code, Code::CircuitOpen | Code::ShuttingDown),
        Kind::Invalid
        | Kind::NotFound
        | Kind::Unauthenticated
        | Kind::Forbidden
        | Kind::Conflict
        | Kind::Cancelled
        | Kind::Dependency
        | Kind::State
        | Kind::Unknown
        | Kind::Internal => false,
    }
}

/// Whether the failure counts for the circuit breaker: timeouts, connection errors, 5xx and lost calls do. Refusals do not, whether
/// for what was asked (4xx) or for how often (429), and neither does an agent that answers "no": a business failure, an exit code.
pub fn counts(fault: &Fault) -> bool {
    fault.category().counts_for_breaker()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy() -> Resilience {
        Resilience::default()
    }

    fn timeout() -> Fault {
        Fault::new(Code::Timeout, "slow")
    }

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let ceilings: Vec<u64> = (1..=8).map(|attempt| ceiling_ms(&policy(), attempt)).collect();
        assert_eq!(ceilings, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(ceiling_ms(&policy(), u32::MAX), 30_000);
        assert_eq!(ceiling_ms(&Resilience { base_delay_ms: 0, ..policy() }, 64), 0);
    }

    #[test]
    fn full_jitter_reaches_from_nothing_to_the_ceiling_and_equal_jitter_from_half() {
        assert_eq!((delay_ms(Jitter::Full, 1000, 0.0), delay_ms(Jitter::Full, 1000, 0.9999)), (0, 1000));
        assert_eq!((delay_ms(Jitter::Equal, 1000, 0.0), delay_ms(Jitter::Equal, 1000, 0.9999)), (500, 1000));
        assert_eq!(delay_ms(Jitter::Full, 1000, 0.5), 500);
        assert!(delay_ms(Jitter::Full, u64::MAX, 1.0) >= u64::MAX - 1);
    }

    #[test]
    fn attempts_end_with_their_number_and_what_cannot_be_mended_is_not_tried_again() {
        let decided = |attempt, fault: &Fault| decide(&policy(), attempt, 60_000, fault, 0.5);
        assert_eq!(decided(1, &timeout()), Again::After { wait_ms: 500 });
        assert_eq!(decided(2, &timeout()), Again::After { wait_ms: 1000 });
        assert_eq!(decided(3, &timeout()), Again::No);
        assert_eq!(decided(1, &Fault::invalid("bad")), Again::No);
        let never = Resilience { max_attempts: 0, ..policy() };
        assert_eq!(decide(&never, 1, 60_000, &timeout(), 0.5), Again::No);
    }

    #[test]
    fn what_the_other_side_asks_for_is_kept_within_the_budget() {
        let busy = |ms: u64| Fault::new(Code::ResourceExhausted, "429").with(RETRY_AFTER_MS, ms);
        assert_eq!(decide(&policy(), 1, 60_000, &busy(5_000), 0.5), Again::After { wait_ms: 5_000 });
        assert_eq!(decide(&policy(), 1, 60_000, &busy(10), 0.5), Again::After { wait_ms: 500 });
        assert_eq!(decide(&policy(), 1, 60_000, &busy(59_999), 0.5), Again::After { wait_ms: 59_999 });
        assert_eq!(decide(&policy(), 1, 60_000, &busy(60_000), 0.5), Again::No);
        let odd = Fault::new(Code::ResourceExhausted, "429").with(RETRY_AFTER_MS, "soon");
        assert_eq!(decide(&policy(), 1, 60_000, &odd, 0.5), Again::After { wait_ms: 500 });
    }

    #[test]
    fn each_code_is_retried_and_counted_as_the_contract_says() {
        let retried = [
            Code::Timeout,
            Code::Unavailable,
            Code::StoreFailed,
            Code::ResourceExhausted,
            Code::FileReadFailed,
            Code::FileWriteFailed,
            Code::AuditLogFailed,
            Code::AuditLockFailed,
            Code::SecretsUnavailable,
        ];
        let counted = [
            Code::Timeout,
            Code::Unavailable,
            Code::StoreFailed,
            Code::Internal,
            Code::StoreCorrupt,
            Code::OutcomeUnknown,
            Code::FileReadFailed,
            Code::FileWriteFailed,
            Code::AuditLogFailed,
            Code::AuditLockFailed,
            Code::SelfAuditFailure,
            Code::InternalError,
        ];
        for code in Code::ALL {
            let fault = Fault::new(*code, "x");
            let wanted = (retried.contains(code), counted.contains(code));
            assert_eq!((may_retry(&fault), counts(&fault)), wanted, "{code}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_wait_stays_below_its_ceiling_and_within_the_budget(
            attempt in 1_u32..100, base in 0_u64..100_000, cap in 0_u64..1_000_000, remaining in 0_u64..1_000_000,
            asked in prop::option::of(0_u64..1_000_000), unit in 0.0..1.0_f64, equal in any::<bool>(),
        ) {
            let jitter = if equal { Jitter::Equal } else { Jitter::Full };
            let policy = Resilience { max_attempts: 200, base_delay_ms: base, max_delay_ms: cap, jitter, ..policy() };
            let fault = asked.map_or_else(timeout, |ms| timeout().with(RETRY_AFTER_MS, ms));
            let ceiling = ceiling_ms(&policy, attempt);
            prop_assert!(ceiling <= cap);
            match decide(&policy, attempt, remaining, &fault, unit) {
                Again::After { wait_ms } => {
                    prop_assert!(wait_ms < remaining);
                    prop_assert!(wait_ms >= asked.unwrap_or(0));
                    prop_assert!(wait_ms <= ceiling.max(asked.unwrap_or(0)));
                }
                Again::No => prop_assert!(remaining == 0 || asked.unwrap_or(0) >= remaining),
            }
        }

        #[test]
        fn jitter_is_spread_evenly(ceiling in 10_u64..1_000_000) {
            let tenths: Vec<u64> = (0..10_u32).map(|tenth| delay_ms(Jitter::Full, ceiling, f64::from(tenth) / 10.0)).collect();
            for (tenth, delay) in tenths.iter().enumerate() {
                let even = ceiling * tenth as u64 / 10;
                prop_assert!(delay.abs_diff(even) <= 1, "{} {}", delay, even);
            }
        }
    }
}
