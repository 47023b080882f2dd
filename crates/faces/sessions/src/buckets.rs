//! How many commands a minute: one bucket per session, one for everything else, one over all with a reserve for other tenants (ADR 39).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;

use crate::limits::WINDOW_MS;

/// What a command is counted under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Bucket {
    /// What happens in one session.
    Session(Arc<str>),
    /// What is about the sessions there are.
    Control,
    /// Deleting and switching to one session.
    ControlOf(Arc<str>),
    /// Answers to questions of one session.
    Ui(Arc<str>),
}

/// Whose limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    Bucket { limit: usize },
    Global { limit: usize },
    Ui { limit: usize },
}

impl Full {
    pub fn fault(self) -> Fault {
        let (text, reason) = match self {
            Full::Bucket { limit } => {
                (format!("Rate limit exceeded ({limit} commands/minute)"), "rate_limited")
            }
            Full::Global { limit } => {
                (format!("Global rate limit exceeded ({limit} commands/minute)"), "globally_rate_limited")
            }
            Full::Ui { limit } => (
                format!("Extension UI response rate limit exceeded ({limit} responses/minute)"),
                "ui_rate_limited",
            ),
        };
        Fault::new(Code::ResourceExhausted, text).with("reason", reason)
    }
}

/// A command that was counted, so that it can be given back.
#[derive(Debug, PartialEq, Eq)]
pub struct Charge {
    tenant: Tenant,
    buckets: Vec<Bucket>,
    at_us: u64,
}

pub struct Buckets {
    window_us: u64,
    bucket_limit: usize,
    global_limit: usize,
    ui_limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    global: Times,
    by_tenant: HashMap<Tenant, Times>,
    by_key: HashMap<(Tenant, Bucket), Times>,
}

/// How many commands were counted when, oldest first.
#[derive(Default)]
struct Times {
    /// Each moment with how many. Moments of a large limit are coarse, so that there are never many of them.
    moments: VecDeque<(u64, usize)>,
    count: usize,
}

/// Up to this limit every command has its own moment.
const EXACT_COMMANDS: usize = 1000;

/// The reserve for tenants that have sent few commands: four tenths of the limit, this at least, and a tenant may use a quarter of it.
const RESERVE_MIN: usize = 4;
const RESERVE_PARTS: usize = 4;

/// Tenants that are remembered before those without a command in the window are forgotten.
const TENANTS: usize = 1024;

/// Moments of larger limits last this long: a thousandth of the window.
const COARSE_US: u64 = WINDOW_MS;

/// The moment a command of this limit counts for.
fn moment(at_us: u64, limit: usize) -> u64 {
    if limit <= EXACT_COMMANDS { at_us } else { at_us - at_us % COARSE_US }
}

impl Times {
    fn forget(&mut self, before_us: u64) {
        while let Some((_, count)) = self.moments.pop_front_if(|(at_us, _)| *at_us < before_us) {
            self.count -= count;
        }
    }

    fn add(&mut self, at_us: u64) {
        self.count += 1;
        match self.moments.back_mut() {
            Some((last_us, count)) if *last_us == at_us => *count += 1,
            Some(_) | None => self.moments.push_back((at_us, 1)),
        }
    }

    fn take_back(&mut self, at_us: u64) {
        if let Some((_, count)) = self.moments.iter_mut().rev().find(|(at, count)| *at == at_us && *count > 0)
        {
            *count -= 1;
            self.count -= 1;
        }
    }
}

impl Buckets {
    pub fn new(bucket_limit: usize, global_limit: usize, ui_limit: usize) -> Self {
        let window_us = WINDOW_MS * 1000;
        Self { window_us, bucket_limit, global_limit, ui_limit, state: Mutex::default() }
    }

    /// Counts a command under its buckets and under the whole, or says which of them is full.
    pub fn take(&self, tenant: &Tenant, buckets: Vec<Bucket>, now_us: u64) -> Result<Charge, Full> {
        let oldest_us = (now_us + 1).saturating_sub(self.window_us);
        let mut state = self.state.lock();
        state.global.forget(oldest_us);
        let global = state.global.count;
        let own = state.by_tenant.entry(tenant.clone()).or_default();
        own.forget(oldest_us);
        if !self.has_room(own.count, global) {
            return Err(Full::Global { limit: self.global_limit });
        }
        for bucket in &buckets {
            let (full, limit) = self.limit(bucket);
            let times = state.by_key.entry((tenant.clone(), bucket.clone())).or_default();
            times.forget(oldest_us);
            if times.count >= limit {
                return Err(full);
            }
        }
        for bucket in &buckets {
            if let Some(times) = state.by_key.get_mut(&(tenant.clone(), bucket.clone())) {
                times.add(moment(now_us, self.limit(bucket).1));
            }
        }
        let at_us = moment(now_us, self.global_limit);
        state.global.add(at_us);
        state.by_tenant.entry(tenant.clone()).or_default().add(at_us);
        state.tidy(oldest_us, self.global_limit);
        Ok(Charge { tenant: tenant.clone(), buckets, at_us: now_us })
    }

    /// Whether a tenant may send one more: as many as the limit says, and when others have used it up, its part of the reserve.
    fn has_room(&self, own: usize, global: usize) -> bool {
        let reserve = (self.global_limit / 10 * 4).max(RESERVE_MIN);
        let is_reserved = own < reserve / RESERVE_PARTS && global < self.global_limit + reserve;
        own < self.global_limit && (global < self.global_limit || is_reserved)
    }

    /// Gives back what was counted for a command that did not run.
    pub fn refund(&self, charge: Charge) {
        let mut state = self.state.lock();
        let at_us = moment(charge.at_us, self.global_limit);
        state.global.take_back(at_us);
        if let Some(own) = state.by_tenant.get_mut(&charge.tenant) {
            own.take_back(at_us);
        }
        for bucket in charge.buckets {
            let at_us = moment(charge.at_us, self.limit(&bucket).1);
            if let Some(times) = state.by_key.get_mut(&(charge.tenant.clone(), bucket)) {
                times.take_back(at_us);
            }
        }
    }

    /// How many commands count at this moment.
    pub fn used(&self, now_us: u64) -> usize {
        let mut state = self.state.lock();
        state.global.forget((now_us + 1).saturating_sub(self.window_us));
        state.global.count
    }

    fn limit(&self, bucket: &Bucket) -> (Full, usize) {
        match bucket {
            Bucket::Session(_) | Bucket::Control | Bucket::ControlOf(_) => {
                (Full::Bucket { limit: self.bucket_limit }, self.bucket_limit)
            }
            Bucket::Ui(_) => (Full::Ui { limit: self.ui_limit }, self.ui_limit),
        }
    }
}

impl State {
    /// Each command that counts keeps at most two buckets alive, so there are never more than a few times the limit.
    fn tidy(&mut self, oldest_us: u64, global_limit: usize) {
        if self.by_tenant.len() > TENANTS {
            self.by_tenant.retain(|_, times| {
                times.forget(oldest_us);
                times.count > 0
            });
        }
        if self.by_key.len() > 4 * global_limit.max(16) {
            self.by_key.retain(|_, times| {
                times.forget(oldest_us);
                times.count > 0
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_US: u64 = 60_000_000;

    fn session(name: &str) -> Vec<Bucket> {
        vec![Bucket::Session(name.into())]
    }

    #[test]
    fn a_bucket_fills_and_empties_with_time() {
        let (buckets, local) = (Buckets::new(2, 100, 1), Tenant::local());
        assert!(buckets.take(&local, session("a"), 0).is_ok());
        assert!(buckets.take(&local, session("a"), 10).is_ok());
        assert_eq!(buckets.take(&local, session("a"), 20), Err(Full::Bucket { limit: 2 }));
        assert!(buckets.take(&local, session("b"), 20).is_ok(), "another session has its own");
        let other = Tenant::parse("other").unwrap();
        assert!(buckets.take(&other, session("a"), 20).is_ok(), "so has another tenant");
        assert!(buckets.take(&local, session("a"), MINUTE_US - 1).is_err());
        assert!(buckets.take(&local, session("a"), MINUTE_US).is_ok());
        assert!(buckets.take(&local, session("a"), MINUTE_US).is_err());
    }

    #[test]
    fn the_whole_has_a_limit_too_and_a_refund_gives_back() {
        let (buckets, local) = (Buckets::new(100, 2, 1), Tenant::local());
        let charge = buckets.take(&local, session("a"), 0).unwrap();
        assert!(buckets.take(&local, vec![Bucket::Control], 0).is_ok());
        assert_eq!(buckets.take(&local, session("c"), 0), Err(Full::Global { limit: 2 }));
        buckets.refund(charge);
        assert_eq!(buckets.used(0), 1);
        assert!(buckets.take(&local, session("c"), 0).is_ok());
        assert_eq!(buckets.used(2 * MINUTE_US), 0);
    }

    #[test]
    fn one_tenant_leaves_a_reserve_for_others() {
        let (buckets, local) = (Buckets::new(1000, 100, 1), Tenant::local());
        while buckets.take(&local, session("a"), 0).is_ok() {}
        assert_eq!(buckets.used(0), 100, "as many as the limit says");
        let other = |n: usize| Tenant::parse(&format!("t{n}")).unwrap();
        let taken = |n: usize| (0..100).filter(|_| buckets.take(&other(n), session("a"), 0).is_ok()).count();
        assert_eq!((0..6).map(taken).collect::<Vec<_>>(), [10, 10, 10, 10, 0, 0]);
        assert!(buckets.take(&local, session("a"), 0).is_err());
        assert!(buckets.take(&other(5), session("a"), MINUTE_US).is_ok());
    }

    #[test]
    fn a_full_bucket_counts_nothing_elsewhere() {
        let (buckets, local) = (Buckets::new(100, 100, 1), Tenant::local());
        let both = || vec![Bucket::Session("a".into()), Bucket::Ui("a".into())];
        assert!(buckets.take(&local, both(), 0).is_ok());
        assert_eq!(buckets.take(&local, both(), 0), Err(Full::Ui { limit: 1 }));
        assert_eq!(buckets.used(0), 1);
    }

    #[test]
    fn a_large_limit_takes_little_room() {
        let (buckets, local) = (Buckets::new(1_000_000, 100_000, 1), Tenant::local());
        let mut charge = None;
        for n in 0..100_000 {
            charge = buckets.take(&local, session("a"), n * 100).ok();
        }
        assert_eq!(buckets.take(&local, session("a"), 10_000_000), Err(Full::Global { limit: 100_000 }));
        assert!(buckets.state.lock().global.moments.len() <= 1000);
        buckets.refund(charge.unwrap());
        assert!(buckets.take(&local, session("a"), 10_000_000).is_ok());
        assert_eq!(buckets.used(10_000_000 + MINUTE_US), 0);
    }

    #[test]
    fn buckets_of_long_ago_are_forgotten() {
        let (buckets, local) = (Buckets::new(10, 10, 1), Tenant::local());
        for minute in 0..1000 {
            buckets.take(&local, session(&minute.to_string()), minute * MINUTE_US).unwrap();
        }
        assert!(buckets.state.lock().by_key.len() <= 65);
    }
}
