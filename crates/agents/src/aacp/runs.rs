//! Which agents are being brought their messages: one run for each, so that its messages keep their order. What has just been
//! placed is handed to the run; only what lay there before is read from the store.

use std::collections::{HashMap, HashSet, VecDeque};

use parking_lot::Mutex;

use super::record::{Address, Placed};
use crate::limits;

#[derive(Default)]
pub struct Runs(Mutex<Known>);

#[derive(Default)]
struct Known {
    under_way: HashMap<Address, Run>,
    /// Those whose last run of this process left nothing behind.
    drained: HashSet<Address>,
}

struct Run {
    /// There may be something in the store that is not here.
    look: bool,
    placed: VecDeque<(u64, Box<Placed>)>,
}

/// What a run does next.
pub enum Next {
    Placed(u64, Box<Placed>),
    /// Read the inbox.
    Look,
    /// It has ended.
    Nothing,
}

impl Run {
    fn add(&mut self, position: u64, placed: Option<Box<Placed>>) {
        match placed {
            Some(placed) if !self.look && self.placed.len() < limits::RUN_MESSAGES => {
                self.placed.push_back((position, placed));
            }
            Some(_) | None => self.look = true,
        }
    }
}

impl Runs {
    /// Whether the caller has to run.
    pub fn begin(&self, address: &Address, position: u64, placed: Option<Box<Placed>>) -> bool {
        let mut known = self.0.lock();
        if let Some(run) = known.under_way.get_mut(address) {
            run.add(position, placed);
            return false;
        }
        let mut run = Run { look: !known.drained.contains(address), placed: VecDeque::new() };
        run.add(position, placed);
        known.under_way.insert(address.clone(), run);
        true
    }

    pub fn next(&self, address: &Address) -> Next {
        let mut known = self.0.lock();
        let Some(run) = known.under_way.get_mut(address) else { return Next::Nothing };
        if run.look {
            // What was handed over is in the store as well.
            *run = Run { look: false, placed: VecDeque::new() };
            return Next::Look;
        }
        if let Some((position, placed)) = run.placed.pop_front() {
            return Next::Placed(position, placed);
        }
        known.under_way.remove(address);
        if known.drained.len() < limits::AGENTS {
            known.drained.insert(address.clone());
        }
        Next::Nothing
    }

    pub fn look_again(&self, address: &Address) {
        if let Some(run) = self.0.lock().under_way.get_mut(address) {
            run.look = true;
        }
    }

    /// The agent comes for its messages now: they are not brought, and may lie there when that changes.
    pub fn forget(&self, address: &Address) {
        self.0.lock().drained.remove(address);
    }
}

#[cfg(test)]
mod tests {
    use orchestr8_contract::id::{AgentId, Tenant};

    use super::*;
    use crate::aacp::Kind;

    fn address() -> Address {
        Address { tenant: Tenant::local(), agent: AgentId::parse("a").unwrap() }
    }

    fn placed() -> Option<Box<Placed>> {
        let source = AgentId::parse("b").unwrap();
        let (kind, text) = (Kind::Event, String::from("{}"));
        Some(Box::new(Placed { source, seq: 1, kind, request: None, expires_ms: i64::MAX, text }))
    }

    fn told(next: &Next) -> Option<u64> {
        match next {
            Next::Placed(position, _) => Some(*position),
            Next::Look => Some(0),
            Next::Nothing => None,
        }
    }

    fn all(runs: &Runs) -> Vec<u64> {
        std::iter::from_fn(|| told(&runs.next(&address()))).collect()
    }

    #[test]
    fn the_first_run_looks_and_later_ones_are_handed_what_comes() {
        let runs = Runs::default();
        assert!(runs.begin(&address(), 4, placed()));
        assert!(!runs.begin(&address(), 5, placed()), "one run at a time");
        assert_eq!(all(&runs), [0], "older ones may lie before it");
        assert!(runs.begin(&address(), 6, placed()));
        assert!(!runs.begin(&address(), 7, placed()));
        assert_eq!(all(&runs), [6, 7]);
    }

    #[test]
    fn what_is_not_at_hand_or_too_much_is_read() {
        let runs = Runs::default();
        runs.begin(&address(), 1, None);
        assert_eq!(all(&runs), [0]);
        runs.begin(&address(), 2, placed());
        runs.begin(&address(), 3, None);
        runs.begin(&address(), 4, placed());
        assert_eq!(all(&runs), [0], "in their order");
        for position in 0..=limits::RUN_MESSAGES as u64 {
            runs.begin(&address(), 5 + position, placed());
        }
        assert_eq!(all(&runs), [0]);
    }

    #[test]
    fn an_agent_that_came_for_its_messages_meanwhile_is_looked_after_anew() {
        let runs = Runs::default();
        runs.begin(&address(), 1, None);
        assert_eq!(all(&runs), [0]);
        runs.forget(&address());
        runs.begin(&address(), 3, placed());
        assert_eq!(all(&runs), [0]);
    }
}
