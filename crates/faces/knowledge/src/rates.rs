//! How many calls one principal of one tenant may make in a minute, and how many are left.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;

use crate::failure::Failure;
use crate::limits::RATES;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const MINUTE_US: u64 = 60_000_000;

/// A bucket per principal: it holds a minute's calls and fills up evenly.
pub(crate) struct Rates {
    per_minute: Option<u32>,
    buckets: Mutex<HashMap<(String, String), Bucket>>,
}

struct Bucket {
    left: f64,
    at_us: u64,
}

/// What one call left in the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub limit: u32,
    pub remaining: u32,
    /// None: it is allowed. Otherwise how long to wait.
    pub wait_s: Option<u64>,
}

impl Rates {
    pub fn new(per_minute: Option<u32>) -> Self {
        Self { per_minute: per_minute.filter(|limit| *limit > 0), buckets: Mutex::default() }
    }

    /// Takes one call out of the bucket. None: nobody counts.
    pub fn take(&self, tenant: &str, principal: &str, now_us: u64) -> Option<Allowance> {
        let limit = self.per_minute?;
        let mut buckets = self.buckets.lock();
        if buckets.len() >= RATES {
            // A bucket that has had a minute to fill up is as good as a new one.
            buckets.retain(|_, bucket| now_us.saturating_sub(bucket.at_us) < MINUTE_US);
        }
        if buckets.len() >= RATES {
            buckets.clear();
        }
        let key = (tenant.to_owned(), principal.to_owned());
        let bucket = buckets.entry(key).or_insert(Bucket { left: f64::from(limit), at_us: now_us });
        let per_us = f64::from(limit) / 60_000_000.0;
        #[expect(clippy::cast_precision_loss, reason = "a minute of microseconds fits")]
        let passed_us = now_us.saturating_sub(bucket.at_us).min(MINUTE_US) as f64;
        bucket.left = (bucket.left + passed_us * per_us).min(f64::from(limit));
        bucket.at_us = now_us;
        let allowed = bucket.left >= 1.0;
        if allowed {
            bucket.left -= 1.0;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between nothing and the limit"
        )]
        let (remaining, wait_s) =
            (bucket.left as u32, ((1.0 - bucket.left) / per_us / 1e6).ceil().max(1.0) as u64);
        Some(Allowance { limit, remaining, wait_s: (!allowed).then_some(wait_s) })
    }
}

impl Allowance {
    /// Tells the client, whatever else it is told.
    pub fn tell(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
    }

    pub fn check(self) -> Result<(), Failure> {
        let Some(wait_s) = self.wait_s else { return Ok(()) };
        let message = format!("more than {} calls in a minute", self.limit);
        let failure =
            Failure::from(Fault::new(Code::ResourceExhausted, message).with("retry_after_sec", wait_s));
        Err(failure.header(http::header::RETRY_AFTER, HeaderValue::from(wait_s)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_holds_so_many_calls_of_each() {
        let rates = Rates::new(Some(2));
        let take = |who: &str, at_us| rates.take("acme", who, at_us).unwrap();
        assert_eq!(take("a", 0), Allowance { limit: 2, remaining: 1, wait_s: None });
        assert_eq!(take("a", 0).remaining, 0);
        assert_eq!(take("a", 0).wait_s, Some(30));
        assert_eq!(take("b", 0).wait_s, None, "others have their own");
        assert_eq!(take("a", 29_000_000).wait_s, Some(1));
        assert_eq!(take("a", 30_000_000).wait_s, None);
        assert!(Rates::new(None).take("acme", "a", 0).is_none());
        assert!(Rates::new(Some(0)).take("acme", "a", 0).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let rates = Rates::new(Some(2));
        for number in 0..(RATES + 10) {
            rates.take("acme", &number.to_string(), 0);
        }
        assert!(rates.buckets.lock().len() <= RATES);
    }
}
