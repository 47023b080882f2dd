//! The circuit breaker as a plain state machine (WF-19.2): each step takes the state and gives the next one.
//!
//! Closed, it counts failures in a row, and any success begins the count anew. At the threshold it opens: everything is
//! refused until its time is over. Then it is half open: exactly one probe is let through, whose success closes it and whose
//! failure opens it again. Results of calls that were let through before it opened do not count any more.

use std::borrow::Cow;
use std::fmt::Write;

use orchestr8_contract::canonical;
use orchestr8_contract::id::Tenant;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// When to open and for how long. The defaults are the seed's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Policy {
    /// Failures in a row; zero counts as one.
    pub failure_threshold: u32,
    pub open_duration_ms: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { failure_threshold: 5, open_duration_ms: 60_000 }
    }
}

/// When to ask again while a probe is out: nobody knows, but not at once.
const PROBE_US: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Closed { failures: u32 },
    Open { until_us: u64 },
    HalfOpen { probing: bool },
}

/// Whether a call may go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Granted(Ticket),
    /// Worth asking again at that time.
    Refused {
        until_us: u64,
    },
}

/// As what a call went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticket {
    Regular,
    Probe,
}

/// A step that others want to know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Opened,
    Closed,
}

impl State {
    pub const NEW: State = State::Closed { failures: 0 };

    #[must_use]
    pub fn admit(self, now_us: u64) -> (State, Admission) {
        match self {
            State::Closed { .. } => (self, Admission::Granted(Ticket::Regular)),
            State::Open { until_us } if now_us < until_us => (self, Admission::Refused { until_us }),
            State::Open { .. } | State::HalfOpen { probing: false } => {
                (State::HalfOpen { probing: true }, Admission::Granted(Ticket::Probe))
            }
            State::HalfOpen { probing: true } => {
                (self, Admission::Refused { until_us: now_us.saturating_add(PROBE_US) })
            }
        }
    }

    #[must_use]
    pub fn succeeded(self, ticket: Ticket) -> (State, Option<Change>) {
        match (self, ticket) {
            (State::Closed { .. }, Ticket::Regular) => (State::NEW, None),
            (State::HalfOpen { probing: true }, Ticket::Probe) => (State::NEW, Some(Change::Closed)),
            (
                State::Closed { .. } | State::Open { .. } | State::HalfOpen { .. },
                Ticket::Regular | Ticket::Probe,
            ) => (self, None),
        }
    }

    #[must_use]
    pub fn failed(self, ticket: Ticket, policy: Policy, now_us: u64) -> (State, Option<Change>) {
        let open =
            State::Open { until_us: now_us.saturating_add(policy.open_duration_ms.saturating_mul(1000)) };
        match (self, ticket) {
            (State::Closed { failures }, Ticket::Regular) => {
                let failures = failures.saturating_add(1);
                if failures >= policy.failure_threshold {
                    (open, Some(Change::Opened))
                } else {
                    (State::Closed { failures }, None)
                }
            }
            (State::HalfOpen { probing: true }, Ticket::Probe) => (open, Some(Change::Opened)),
            (
                State::Closed { .. } | State::Open { .. } | State::HalfOpen { .. },
                Ticket::Regular | Ticket::Probe,
            ) => (self, None),
        }
    }

    /// The call ended without telling anything about what it called: a probe gives its place to the next one.
    #[must_use]
    pub fn returned(self, ticket: Ticket) -> State {
        match (self, ticket) {
            (State::HalfOpen { probing: true }, Ticket::Probe) => State::HalfOpen { probing: false },
            (
                State::Closed { .. } | State::Open { .. } | State::HalfOpen { .. },
                Ticket::Regular | Ticket::Probe,
            ) => self,
        }
    }
}

/// Longer keys are shortened, so that a long target cannot take up memory.
pub const KEY_BYTES: usize = 300;

/// The key of a tenant's own breaker: the failures that one tenant causes do not stop the calls of another. Those of the local
/// tenant keep the plain form of the contract.
pub fn of_tenant<'k>(key: &'k str, tenant: &Tenant) -> Cow<'k, str> {
    match *tenant == Tenant::local() {
        true => Cow::Borrowed(key),
        false => Cow::Owned(bounded(format!("{key}:~{}/", tenant.as_str()))),
    }
}

/// The key of a breaker: `cb:<id>[:<target>]`.
pub fn key(id: &str, target: Option<&str>) -> String {
    let mut key = String::with_capacity(4 + id.len() + target.map_or(0, str::len));
    key.push_str("cb:");
    key.push_str(id);
    if let Some(target) = target {
        let _ = write!(key, ":{target}");
    }
    bounded(key)
}

/// A key that is too long ends in its own hash instead, and stays unique.
fn bounded(mut key: String) -> String {
    if key.len() > KEY_BYTES {
        let hash = canonical::hex(&Sha256::digest(key.as_bytes()));
        key.truncate(key.floor_char_boundary(KEY_BYTES - hash.len() - 1));
        let _ = write!(key, "#{hash}");
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: Policy = Policy { failure_threshold: 3, open_duration_ms: 10 };

    fn after_failures(count: u32) -> State {
        (0..count).fold(State::NEW, |state, _| state.failed(Ticket::Regular, POLICY, 0).0)
    }

    #[test]
    fn failures_in_a_row_open_it_and_any_success_begins_the_count_anew() {
        assert_eq!(after_failures(2), State::Closed { failures: 2 });
        assert_eq!(after_failures(2).succeeded(Ticket::Regular), (State::NEW, None));
        let opened = after_failures(2).failed(Ticket::Regular, POLICY, 5);
        assert_eq!(opened, (State::Open { until_us: 10_005 }, Some(Change::Opened)));
        let at_once = Policy { failure_threshold: 0, ..POLICY };
        assert_eq!(State::NEW.failed(Ticket::Regular, at_once, 0).1, Some(Change::Opened));
    }

    #[test]
    fn open_it_refuses_until_its_time_is_over_and_then_lets_one_probe_through() {
        let open = after_failures(3);
        assert_eq!(open.admit(9_999), (open, Admission::Refused { until_us: 10_000 }));
        let (probed, admission) = open.admit(10_000);
        assert_eq!(admission, Admission::Granted(Ticket::Probe));
        assert_eq!(probed.admit(10_000), (probed, Admission::Refused { until_us: 1_010_000 }));
        assert_eq!(probed.succeeded(Ticket::Probe), (State::NEW, Some(Change::Closed)));
        let reopened = probed.failed(Ticket::Probe, POLICY, 20_000);
        assert_eq!(reopened, (State::Open { until_us: 30_000 }, Some(Change::Opened)));
        let returned = probed.returned(Ticket::Probe);
        assert_eq!(returned.admit(10_000).1, Admission::Granted(Ticket::Probe));
    }

    #[test]
    fn what_went_through_before_it_opened_does_not_count_any_more() {
        for state in
            [after_failures(3), State::HalfOpen { probing: true }, State::HalfOpen { probing: false }]
        {
            assert_eq!(state.succeeded(Ticket::Regular), (state, None));
            assert_eq!(state.failed(Ticket::Regular, POLICY, 0), (state, None));
            assert_eq!(state.returned(Ticket::Regular), state);
        }
        assert_eq!(State::NEW.returned(Ticket::Regular), State::NEW);
    }

    #[test]
    fn keys_name_what_is_called_and_are_bounded() {
        assert_eq!(key("agent", None), "cb:agent");
        assert_eq!(key("agent", Some("host:1")), "cb:agent:host:1");
        let (one, two) = (key("a", Some(&"ä".repeat(400))), key("a", Some(&"ä".repeat(401))));
        assert!(one.len() <= KEY_BYTES && two.len() <= KEY_BYTES && one != two, "{one} {two}");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Ask,
        Succeed(usize),
        Fail(usize),
        GiveBack(usize),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Ask),
            1 => any::<usize>().prop_map(Step::Succeed),
            4 => any::<usize>().prop_map(Step::Fail),
            1 => any::<usize>().prop_map(Step::GiveBack),
            1 => (0_u64..15_000).prop_map(Step::Wait),
        ]
    }

    /// The contract in words: what has happened, and what may happen next.
    #[derive(Default)]
    struct Model {
        failures_in_a_row: u32,
        /// Set while it is not closed.
        opened_at_us: Option<u64>,
        probing: bool,
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn the_breaker_does_what_the_model_does(steps in prop::collection::vec(step(), 0..100)) {
            let (mut state, mut model, mut now_us) = (State::NEW, Model::default(), 0_u64);
            let mut out: Vec<Ticket> = Vec::new();
            for step in steps {
                match step {
                    Step::Wait(us) => now_us += us,
                    Step::Ask => {
                        let over = model.opened_at_us.is_none_or(|at_us| now_us >= at_us + 10_000);
                        let (next, admission) = state.admit(now_us);
                        state = next;
                        prop_assert_eq!(matches!(admission, Admission::Granted(_)), over && !model.probing);
                        if let Admission::Granted(ticket) = admission {
                            prop_assert_eq!(ticket == Ticket::Probe, model.opened_at_us.is_some());
                            model.probing = ticket == Ticket::Probe;
                            out.push(ticket);
                        }
                    }
                    Step::Succeed(which) | Step::Fail(which) | Step::GiveBack(which) if !out.is_empty() => {
                        let ticket = out.swap_remove(which % out.len());
                        let decides = ticket == Ticket::Probe || model.opened_at_us.is_none();
                        match step {
                            Step::Succeed(_) => {
                                let (next, change) = state.succeeded(ticket);
                                state = next;
                                prop_assert_eq!(change == Some(Change::Closed), ticket == Ticket::Probe);
                                if decides {
                                    model = Model::default();
                                }
                            }
                            Step::Fail(_) => {
                                let (next, change) = state.failed(ticket, POLICY, now_us);
                                state = next;
                                let opens = decides && (ticket == Ticket::Probe || model.failures_in_a_row == 2);
                                prop_assert_eq!(change == Some(Change::Opened), opens);
                                if opens {
                                    model = Model { opened_at_us: Some(now_us), ..Model::default() };
                                } else if decides {
                                    model.failures_in_a_row += 1;
                                }
                            }
                            Step::GiveBack(_) | Step::Ask | Step::Wait(_) => {
                                state = state.returned(ticket);
                                model.probing &= ticket == Ticket::Regular;
                            }
                        }
                    }
                    Step::Succeed(_) | Step::Fail(_) | Step::GiveBack(_) => {}
                }
                prop_assert!(out.iter().filter(|ticket| **ticket == Ticket::Probe).count() <= 1);
            }
        }
    }
}
