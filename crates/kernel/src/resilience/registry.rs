//! The breakers of the process, by key. A key is kept only while there is something to remember about it.

use std::sync::Arc;

use indexmap::IndexMap;
use orchestr8_contract::{Code, Event, Fault};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::breaker::{Admission, Change, Policy, State, Ticket};
use super::retry::RETRY_AFTER_MS;
use crate::bus::{self, Bus};
use crate::ports::Clock;
use crate::ports::clock::iso;

/// Keys with failures to remember; beyond it one of them is forgotten, if possible one that has not opened.
pub const KEYS: usize = 10_000;

/// How many keys are looked at for one to forget, so that a full registry stays quick.
const LOOKED_AT: usize = 64;

/// All breakers of the process.
pub struct Breakers {
    states: Mutex<IndexMap<Arc<str>, State>>,
    clock: Arc<dyn Clock>,
    bus: Bus,
}

/// A breaker as a store keeps it across restarts. A new one is not worth keeping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub key: String,
    #[serde(flatten)]
    pub state: Kept,
}

/// A state in the time of the calendar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Kept {
    Closed {
        failures: u32,
    },
    /// The rest of the time is kept too: a calendar that was set back must not keep it open for longer.
    Open {
        until_ms: i64,
        rest_ms: u64,
    },
    HalfOpen,
}

impl Breakers {
    pub fn new(clock: Arc<dyn Clock>, bus: Bus) -> Self {
        Self { states: Mutex::default(), clock, bus }
    }

    /// Lets a call through, or refuses it with CIRCUIT_OPEN.
    pub fn admit<'b>(&'b self, key: &'b str, policy: Policy) -> Result<Pass<'b>, Fault> {
        let now_us = self.clock.elapsed_us();
        let mut states = self.states.lock();
        let Some(state) = states.get_mut(key) else {
            return Ok(Pass::new(self, key, policy, Ticket::Regular));
        };
        let (next, admission) = state.admit(now_us);
        *state = next;
        drop(states);
        match admission {
            Admission::Granted(ticket) => Ok(Pass::new(self, key, policy, ticket)),
            Admission::Refused { until_us } => {
                Err(self.refusal(key, until_us.saturating_sub(now_us).div_ceil(1000)))
            }
        }
    }

    /// Forgets the failures of a key and of the breakers of tenants under it, because what they were about was replaced: a server
    /// that has been started again, for example.
    pub fn reset(&self, key: &str) {
        let is_under = |other: &str| {
            other.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(":~"))
        };
        self.states.lock().retain(|other, _| !is_under(other));
    }

    /// Everything worth keeping across a restart.
    pub fn snapshot(&self) -> Vec<Snapshot> {
        let (now_ms, now_us) = (self.clock.now_ms(), self.clock.elapsed_us());
        let kept = |state: State| match state {
            State::Closed { failures } => Kept::Closed { failures },
            State::Open { until_us } => {
                let rest_ms = until_us.saturating_sub(now_us).div_ceil(1000);
                Kept::Open { until_ms: later(now_ms, rest_ms), rest_ms }
            }
            State::HalfOpen { .. } => Kept::HalfOpen,
        };
        self.states
            .lock()
            .iter()
            .map(|(key, state)| Snapshot { key: key.to_string(), state: kept(*state) })
            .collect()
    }

    /// Takes up what was kept, for keys that nothing is known of yet. A probe that was under way is gone with its process.
    pub fn restore(&self, snapshots: impl IntoIterator<Item = Snapshot>) {
        let (now_ms, now_us) = (self.clock.now_ms(), self.clock.elapsed_us());
        let mut states = self.states.lock();
        for Snapshot { key, state } in snapshots.into_iter().take(KEYS) {
            let state = match state {
                Kept::Closed { failures } => State::Closed { failures },
                Kept::Open { until_ms, rest_ms } => {
                    let rest_ms = u64::try_from(until_ms.saturating_sub(now_ms)).unwrap_or(0).min(rest_ms);
                    State::Open { until_us: now_us.saturating_add(rest_ms.saturating_mul(1000)) }
                }
                Kept::HalfOpen => State::HalfOpen { probing: false },
            };
            if !states.contains_key(key.as_str()) {
                keep(&mut states, &key, state);
            }
        }
    }

    fn refusal(&self, key: &str, rest_ms: u64) -> Fault {
        let reopens_at = iso(later(self.clock.now_ms(), rest_ms));
        Fault::new(Code::CircuitOpen, format!("Circuit breaker open for {key}, reopens at {reopens_at}"))
            .with("key", key)
            .with("reopensAt", reopens_at)
            .with(RETRY_AFTER_MS, rest_ms)
    }

    /// Applies a step to the state of a key, and tells others if it opened or closed.
    fn step(
        &self,
        key: &str,
        policy: Policy,
        step: impl FnOnce(State) -> (State, Option<Change>),
    ) -> Option<Change> {
        let mut states = self.states.lock();
        let before = states.get(key).copied().unwrap_or(State::NEW);
        let (after, change) = step(before);
        if after == State::NEW {
            if before != State::NEW {
                states.swap_remove(key);
            }
        } else {
            keep(&mut states, key, after);
        }
        drop(states);
        if let Some(change) = change {
            self.tell(key, policy, change);
        }
        change
    }

    fn tell(&self, key: &str, policy: Policy, change: Change) {
        let now_ms = self.clock.now_ms();
        let (name, data) = match change {
            Change::Opened => {
                let reopens_at = iso(later(now_ms, policy.open_duration_ms));
                (bus::CIRCUIT_OPEN, json!({"key": key, "reopensAt": reopens_at}))
            }
            Change::Closed => (bus::CIRCUIT_CLOSE, json!({"key": key})),
        };
        let priority = bus::priority(name);
        self.bus.publish(Event { name, subject: key.into(), priority, at_ms: now_ms, data: Arc::new(data) });
    }
}

/// A call that was let through. Dropped without a word, it gives its place back and counts as nothing.
pub struct Pass<'b> {
    breakers: &'b Breakers,
    key: &'b str,
    policy: Policy,
    ticket: Option<Ticket>,
}

impl<'b> Pass<'b> {
    fn new(breakers: &'b Breakers, key: &'b str, policy: Policy, ticket: Ticket) -> Self {
        Self { breakers, key, policy, ticket: Some(ticket) }
    }

    /// The call succeeded; gives back whether that closed the circuit.
    pub fn succeeded(mut self) -> Option<Change> {
        let ticket = self.ticket.take()?;
        self.breakers.step(self.key, self.policy, |state| state.succeeded(ticket))
    }

    /// The call failed; gives back whether that opened the circuit.
    pub fn failed(mut self) -> Option<Change> {
        let ticket = self.ticket.take()?;
        let now_us = self.breakers.clock.elapsed_us();
        self.breakers.step(self.key, self.policy, |state| state.failed(ticket, self.policy, now_us))
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        match self.ticket.take() {
            Some(Ticket::Probe) => {
                self.breakers.step(self.key, self.policy, |state| (state.returned(Ticket::Probe), None));
            }
            Some(Ticket::Regular) | None => {}
        }
    }
}

fn keep(states: &mut IndexMap<Arc<str>, State>, key: &str, state: State) {
    if let Some(place) = states.get_mut(key) {
        *place = state;
        return;
    }
    if states.len() >= KEYS {
        let closed = states.values().take(LOOKED_AT).position(|state| matches!(state, State::Closed { .. }));
        states.swap_remove_index(closed.unwrap_or(0));
    }
    states.insert(key.into(), state);
}

fn later(now_ms: i64, by_ms: u64) -> i64 {
    now_ms.saturating_add_unsigned(by_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::clock::Simulated;
    use crate::resilience::tests::World;
    use std::time::Duration;

    const POLICY: Policy = Policy { failure_threshold: 2, open_duration_ms: 10_000 };

    fn fail(world: &World, key: &str, times: usize) {
        for _ in 0..times {
            world.breakers.admit(key, POLICY).ok().unwrap().failed();
        }
    }

    #[test]
    fn only_what_is_worth_it_is_remembered() {
        let world = World::new();
        world.breakers.admit("new", POLICY).ok().unwrap().succeeded();
        drop(world.breakers.admit("dropped", POLICY).ok().unwrap());
        fail(&world, "mended", 1);
        world.breakers.admit("mended", POLICY).ok().unwrap().succeeded();
        assert!(world.breakers.snapshot().is_empty());
        fail(&world, "failing", 1);
        assert_eq!(
            world.breakers.snapshot(),
            [Snapshot { key: "failing".into(), state: Kept::Closed { failures: 1 } }]
        );
    }

    #[test]
    fn a_reset_forgets_a_key_with_those_of_its_tenants_and_no_other() {
        let world = World::new();
        for key in ["cb:mcp:a", "cb:mcp:a:~acme/", "cb:mcp:ab", "cb:mcp:a:b"] {
            fail(&world, key, 2);
        }
        world.breakers.reset("cb:mcp:a");
        let left: Vec<String> = world.breakers.snapshot().into_iter().map(|kept| kept.key).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(world.breakers.admit("cb:mcp:a:~acme/", POLICY).is_ok());
        assert!(world.breakers.admit("cb:mcp:ab", POLICY).is_err());
    }

    #[test]
    fn breakers_survive_a_restart() {
        let world = World::new();
        fail(&world, "closed", 1);
        fail(&world, "open", 2);
        fail(&world, "half", 2);
        fail(&world, "known", 1);
        world.clock.advance(Duration::from_secs(10));
        let probe = world.breakers.admit("half", POLICY).ok().unwrap();
        fail(&world, "late", 2);
        world.clock.advance(Duration::from_secs(4));
        let text = serde_json::to_string(&world.breakers.snapshot()).unwrap();
        drop(probe);
        assert!(text.contains(r#"{"key":"half","state":"half-open"}"#), "{text}");
        assert!(text.contains(r#""state":"open","untilMs":1767225620000,"restMs":6000}"#), "{text}");

        let restarted = World::new();
        restarted.clock.advance(Duration::from_secs(15));
        fail(&restarted, "known", 2);
        restarted.breakers.restore(serde_json::from_str::<Vec<Snapshot>>(&text).unwrap());
        let state = |key: &str| restarted.breakers.states.lock().get(key).copied();
        assert_eq!(state("closed"), Some(State::Closed { failures: 1 }));
        assert_eq!(state("open"), Some(State::Open { until_us: 15_000_000 }));
        assert_eq!(state("half"), Some(State::HalfOpen { probing: false }));
        assert_eq!(state("late"), Some(State::Open { until_us: 20_000_000 }));
        assert_eq!(state("known"), Some(State::Open { until_us: 25_000_000 }));
    }

    #[test]
    fn a_calendar_that_was_set_back_keeps_nothing_open_for_longer() {
        let world = World::new();
        let until_ms = Simulated::START_MS + 3_600_000;
        world.breakers.restore([Snapshot { key: "k".into(), state: Kept::Open { until_ms, rest_ms: 500 } }]);
        let fault = world.breakers.admit("k", POLICY).err().unwrap();
        assert_eq!(fault.details.unwrap()[RETRY_AFTER_MS], 500);
    }

    #[test]
    fn the_number_of_keys_is_bounded_and_open_ones_are_forgotten_last() {
        let world = World::new();
        fail(&world, "open", 2);
        (0..KEYS + 100).for_each(|number| fail(&world, &format!("k{number}"), 1));
        let snapshots = world.breakers.snapshot();
        assert_eq!(snapshots.len(), KEYS);
        assert!(snapshots.iter().any(|snapshot| snapshot.key == "open"));
        let open = |number: usize| Snapshot { key: format!("o{number}"), state: Kept::HalfOpen };
        let full = World::new();
        full.breakers.restore((0..KEYS + 5).map(open));
        fail(&full, "one more", 1);
        assert_eq!(full.breakers.snapshot().len(), KEYS);
    }
}
