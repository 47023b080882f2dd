//! How many attempts may be with others at once: with the workers of one queue, or with one agent of another program. They take
//! no step slot; beyond the limit they wait in turns, and nothing else waits behind them.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::fair_queue::{RoundRobin, StepLine, WaitingLine};

/// What is limited: an agent, of one tenant where each tenant has its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemoteKey {
    pub agent: Arc<str>,
    pub tenant: Option<Tenant>,
}

/// The places with all remote parties.
#[derive(Clone, Default)]
pub struct RemoteLimits(Arc<Mutex<HashMap<RemoteKey, RemoteParty>>>);

#[derive(Default)]
struct RemoteParty {
    /// It may have been lowered below what is taken; then nothing is given on until enough has come back.
    limit: usize,
    taken: usize,
    waiting: RoundRobin<Tenant, StepLine<RemotePlace>>,
}

/// Room for one attempt with a remote party. Dropped, it goes to the next that waits.
pub struct RemotePlace {
    limits: RemoteLimits,
    key: RemoteKey,
}

impl RemoteLimits {
    /// A place for a step: at once, or later by the receiver.
    pub fn take(
        &self,
        key: RemoteKey,
        limit: usize,
        (tenant, workflow, execution): (&Tenant, &Arc<str>, i64),
    ) -> Result<RemotePlace, oneshot::Receiver<RemotePlace>> {
        let mut parties = self.0.lock();
        let party = parties.entry(key.clone()).or_default();
        party.limit = limit;
        if party.taken < limit {
            party.taken += 1;
            drop(parties);
            return Ok(RemotePlace { limits: self.clone(), key });
        }
        let (sender, receiver) = oneshot::channel();
        party.waiting.push((tenant.clone(), (workflow.clone(), (execution, ()))), sender);
        Err(receiver)
    }

    /// Changes the limit of a party that is in use, and lets in who waits if it has grown.
    pub fn change(&self, key: &RemoteKey, limit: usize) {
        let mut admitted = Vec::new();
        let mut parties = self.0.lock();
        if let Some(party) = parties.get_mut(key) {
            party.limit = limit;
            while party.taken < party.limit
                && let Some(next) = party.waiting.pop()
            {
                party.taken += 1;
                admitted.push(next);
            }
        }
        drop(parties);
        for next in admitted {
            // If it has stopped waiting in this very moment, the place comes back and goes to the next one.
            let _ = next.send(RemotePlace { limits: self.clone(), key: key.clone() });
        }
    }

    /// How many attempts are with remote parties, and how many wait for a place.
    pub fn depth(&self) -> (usize, usize) {
        let parties = self.0.lock();
        let count = |of: fn(&RemoteParty) -> usize| parties.values().map(of).sum();
        (count(|party| party.taken), count(|party| party.waiting.len()))
    }
}

impl Drop for RemotePlace {
    fn drop(&mut self) {
        let mut parties = self.limits.0.lock();
        let Some(party) = parties.get_mut(&self.key) else { return };
        party.taken -= 1;
        let next = if party.taken < party.limit { party.waiting.pop() } else { None };
        party.taken += usize::from(next.is_some());
        if party.taken == 0 && party.waiting.is_empty() {
            parties.remove(&self.key);
        }
        drop(parties);
        if let Some(next) = next {
            // If it has stopped waiting in this very moment, the place that comes back is given on in the same way.
            let _ = next.send(Self { limits: self.limits.clone(), key: self.key.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> RemoteKey {
        RemoteKey { agent: "@worker/q".into(), tenant: None }
    }

    #[test]
    fn places_are_limited_and_go_round_by_tenant_workflow_and_execution() {
        let limits = RemoteLimits::default();
        let tenant = |name: &str| Tenant::parse(name).unwrap();
        let take = |name: &str, workflow: &str, execution| {
            limits.take(key(), 1, (&tenant(name), &workflow.into(), execution))
        };
        let first = take("acme", "a", 1).ok().unwrap();
        let mut waiting: Vec<(&str, oneshot::Receiver<RemotePlace>)> = [
            ("acme a 1", ("acme", "a", 1)),
            ("acme a 1 again", ("acme", "a", 1)),
            ("acme a 2", ("acme", "a", 2)),
            ("acme b 3", ("acme", "b", 3)),
            ("rival c 4", ("rival", "c", 4)),
        ]
        .map(|(name, (tenant, workflow, execution))| (name, take(tenant, workflow, execution).err().unwrap()))
        .into();
        assert_eq!(limits.depth(), (1, 5));
        let other = RemoteKey { agent: "@worker/other".into(), tenant: None };
        assert!(limits.take(other, 1, (&tenant("acme"), &"a".into(), 1)).is_ok(), "a limit of its own");
        drop(first);
        let mut order = Vec::new();
        while let Some(at) = waiting.iter_mut().position(|(_, receiver)| receiver.try_recv().is_ok()) {
            order.push(waiting.remove(at).0);
        }
        assert_eq!(order, ["acme a 1", "rival c 4", "acme b 3", "acme a 2", "acme a 1 again"]);
        assert_eq!(limits.depth(), (0, 0));
        assert!(limits.0.lock().is_empty());
    }

    #[test]
    fn a_limit_that_grows_lets_in_at_once_and_one_that_shrinks_waits_for_places_to_come_back() {
        let limits = RemoteLimits::default();
        let (acme, flow): (_, Arc<str>) = (Tenant::parse("acme").unwrap(), "f".into());
        let take = |limit, execution| limits.take(key(), limit, (&acme, &flow, execution));
        let first = take(1, 1).ok().unwrap();
        let mut waiting: Vec<_> = (2..=4).map(|execution| take(1, execution).err().unwrap()).collect();
        limits.change(&key(), 3);
        let mut places: Vec<_> = waiting.iter_mut().filter_map(|receiver| receiver.try_recv().ok()).collect();
        assert_eq!((places.len(), limits.depth()), (2, (3, 1)));
        limits.change(&key(), 1);
        drop(first);
        drop(places.pop());
        assert_eq!(limits.depth(), (1, 1), "still as many as the limit");
        drop(places.pop());
        assert_eq!(limits.depth(), (1, 0));
        assert_eq!(waiting.iter_mut().filter_map(|receiver| receiver.try_recv().ok()).count(), 1);
        assert!(limits.0.lock().is_empty());
    }

    #[test]
    fn one_that_stopped_waiting_is_passed_over() {
        let limits = RemoteLimits::default();
        let (acme, flow): (_, Arc<str>) = (Tenant::parse("acme").unwrap(), "f".into());
        let first = limits.take(key(), 1, (&acme, &flow, 1)).ok().unwrap();
        drop(limits.take(key(), 1, (&acme, &flow, 2)));
        let mut third = limits.take(key(), 1, (&acme, &flow, 3)).err().unwrap();
        drop(first);
        assert!(third.try_recv().is_ok());
    }
}
