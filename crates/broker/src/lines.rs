//! Who waits, how many of whom, and whose turn it is. In memory only: the store knows the messages themselves.

use std::collections::{BTreeMap, HashMap, VecDeque};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};

use crate::limits;
use crate::settings::Settings;

/// The lines of all tenants that have something waiting.
#[derive(Default)]
pub struct Lines {
    of: BTreeMap<Tenant, Line>,
    /// Whoever was served last; the next turn is the next one's.
    last: Option<Tenant>,
    leases: HashMap<i64, Lease>,
    queued: usize,
}

#[derive(Debug, Default, Clone)]
struct Line {
    queued: usize,
    bytes: usize,
    in_flight: usize,
    /// Nothing of it is due before; it need not be looked for.
    not_before_ms: i64,
}

struct Lease {
    tenant: Tenant,
    attempt: u32,
    until_ms: i64,
}

impl Lines {
    /// What was there at the start.
    pub fn known(&mut self, tenant: Tenant, queued: usize, bytes: usize) {
        self.queued += queued;
        self.of.insert(tenant, Line { queued, bytes, ..Line::default() });
    }

    /// Makes room for one more message, or says why there is none.
    pub fn admit(&mut self, tenant: &Tenant, bytes: usize, settings: &Settings) -> Result<(), Fault> {
        let full = |what: String| {
            Err(Fault::new(Code::ResourceExhausted, what)
                .with("hint", "wait until some of them are done; sending it again later is safe"))
        };
        if self.queued >= limits::QUEUED {
            return full(format!("{} messages wait already, which is all this server keeps", self.queued));
        }
        let line = self.of.entry(tenant.clone()).or_default();
        if line.queued >= settings.tenant_queued {
            return full(format!("{} messages of this tenant wait already", line.queued));
        }
        if line.queued > 0 && line.bytes.saturating_add(bytes) > settings.tenant_bytes {
            return full(format!("{} bytes of messages of this tenant wait already", line.bytes));
        }
        line.queued += 1;
        line.bytes += bytes;
        line.not_before_ms = 0;
        self.queued += 1;
        Ok(())
    }

    /// One message less.
    pub fn leave(&mut self, tenant: &Tenant, bytes: usize) {
        self.queued = self.queued.saturating_sub(1);
        if let Some(line) = self.of.get_mut(tenant) {
            line.queued = line.queued.saturating_sub(1);
            line.bytes = line.bytes.saturating_sub(bytes);
            if line.queued == 0 && line.in_flight == 0 {
                self.of.remove(tenant);
            }
        }
    }

    /// Those who may have their turn now, in the order of their turns, each with how many it may still have in hand.
    pub fn turns(&self, now_ms: i64, settings: &Settings) -> Vec<(Tenant, usize)> {
        let after =
            self.of.iter().filter(|(tenant, _)| self.last.as_ref().is_some_and(|last| *tenant > last));
        let before =
            self.of.iter().filter(|(tenant, _)| self.last.as_ref().is_none_or(|last| *tenant <= last));
        after
            .chain(before)
            .filter(|(_, line)| line.queued > line.in_flight && line.not_before_ms <= now_ms)
            .map(|(tenant, line)| (tenant.clone(), settings.tenant_in_flight.saturating_sub(line.in_flight)))
            .filter(|(_, room)| *room > 0)
            .collect()
    }

    /// Nothing of this tenant is due before.
    pub fn quiet_until(&mut self, tenant: &Tenant, ms: i64) {
        if let Some(line) = self.of.get_mut(tenant) {
            line.not_before_ms = ms;
        }
    }

    /// Something of this tenant may be due at that time.
    pub fn due_at(&mut self, tenant: &Tenant, ms: i64) {
        if let Some(line) = self.of.get_mut(tenant) {
            line.not_before_ms = line.not_before_ms.min(ms);
        }
    }

    /// When to look again, if nobody publishes.
    pub fn next_ms(&self, settings: &Settings) -> Option<i64> {
        let waiting = self
            .of
            .values()
            .filter(|line| line.queued > line.in_flight && line.in_flight < settings.tenant_in_flight)
            .map(|line| line.not_before_ms);
        waiting.chain(self.leases.values().map(|lease| lease.until_ms)).min()
    }

    pub fn lease(&mut self, tenant: &Tenant, seq: i64, attempt: u32, until_ms: i64) {
        self.last = Some(tenant.clone());
        let lease = Lease { tenant: tenant.clone(), attempt, until_ms };
        if self.leases.insert(seq, lease).is_none() {
            self.of.entry(tenant.clone()).or_default().in_flight += 1;
        }
    }

    pub fn extend(&mut self, seq: i64, attempt: u32, until_ms: i64) {
        if let Some(lease) = self.leases.get_mut(&seq).filter(|lease| lease.attempt == attempt) {
            lease.until_ms = until_ms;
        }
    }

    /// Gives back the place of a lease; one of a later attempt stays.
    pub fn release(&mut self, seq: i64, attempt: u32) {
        if self.leases.get(&seq).is_some_and(|lease| lease.attempt == attempt)
            && let Some(lease) = self.leases.remove(&seq)
            && let Some(line) = self.of.get_mut(&lease.tenant)
        {
            line.in_flight = line.in_flight.saturating_sub(1);
            line.not_before_ms = 0;
        }
    }

    /// Gives back the places of leases that are over.
    pub fn expire(&mut self, now_ms: i64) {
        let over: Vec<(i64, u32)> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.until_ms <= now_ms)
            .map(|(seq, lease)| (*seq, lease.attempt))
            .collect();
        for (seq, attempt) in over {
            self.release(seq, attempt);
        }
    }

    /// Tenant, queued, in flight.
    pub fn report(&self) -> Vec<(Tenant, usize, usize)> {
        self.of.iter().map(|(tenant, line)| (tenant.clone(), line.queued, line.in_flight)).collect()
    }
}

/// Takes turns: one of each, then the next of each, until there are enough.
pub fn deal<T>(mut lists: Vec<VecDeque<T>>, most: usize) -> Vec<T> {
    let mut dealt = Vec::new();
    while dealt.len() < most && lists.iter().any(|list| !list.is_empty()) {
        for list in &mut lists {
            if dealt.len() < most {
                dealt.extend(list.pop_front());
            }
        }
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Tenant {
        Tenant::parse(name).unwrap()
    }

    #[test]
    fn turns_go_round() {
        let (mut lines, settings) =
            (Lines::default(), Settings { tenant_in_flight: 2, ..Settings::default() });
        for name in ["a", "b", "c"] {
            for _ in 0..3 {
                lines.admit(&tenant(name), 1, &settings).unwrap();
            }
        }
        let names = |lines: &Lines| {
            let turns = lines.turns(5, &settings).into_iter();
            turns.map(|(tenant, room)| format!("{tenant}{room}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&lines), "a2 b2 c2");
        lines.lease(&tenant("a"), 1, 1, 100);
        assert_eq!(names(&lines), "b2 c2 a1");
        lines.lease(&tenant("b"), 2, 1, 100);
        lines.quiet_until(&tenant("c"), 50);
        assert_eq!(names(&lines), "a1 b1");
        lines.lease(&tenant("a"), 3, 1, 90);
        assert_eq!(names(&lines), "b1", "a has its hands full");
        assert_eq!(lines.next_ms(&settings), Some(0), "b may go on at once");
        lines.expire(95);
        assert_eq!(names(&lines), "b1 a1");
    }

    #[test]
    fn there_is_an_end_to_what_waits() {
        let mut lines = Lines::default();
        let settings = Settings { tenant_queued: 2, tenant_bytes: 100, ..Settings::default() };
        lines.admit(&tenant("a"), 500, &settings).unwrap();
        assert_eq!(lines.admit(&tenant("a"), 1, &settings).unwrap_err().code, Code::ResourceExhausted);
        lines.leave(&tenant("a"), 500);
        lines.admit(&tenant("a"), 1, &settings).unwrap();
        lines.admit(&tenant("a"), 1, &settings).unwrap();
        assert!(lines.admit(&tenant("a"), 1, &settings).is_err());
        lines.admit(&tenant("b"), 1, &settings).unwrap();
        assert!(lines.report().len() == 2);
    }

    #[test]
    fn everybody_is_dealt_one_before_anybody_is_dealt_two() {
        let lists = vec![VecDeque::from([1, 2, 3]), VecDeque::from([10]), VecDeque::from([20, 21])];
        assert_eq!(deal(lists.clone(), 4), [1, 10, 20, 2]);
        assert_eq!(deal(lists, 99), [1, 10, 20, 2, 21, 3]);
    }
}
