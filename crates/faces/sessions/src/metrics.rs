//! What this face counts, and adds to what the domain tells of itself.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::buckets::Full;

#[derive(Default)]
pub struct Metrics {
    pub connections: AtomicUsize,
    pub executed: AtomicU64,
    pub rate_limited: AtomicU64,
    pub globally_limited: AtomicU64,
    pub ui_limited: AtomicU64,
    pub oversized: AtomicU64,
    pub turned_away: AtomicU64,
    pub pending_limited: AtomicU64,
    pub malformed: AtomicU64,
    pub invalid: AtomicU64,
    pub busy: AtomicU64,
    pub slow_readers: AtomicU64,
    /// Broadcasts that clients missed which are gone; those still here count for themselves.
    pub dropped: AtomicU64,
}

pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What the answer to `get_metrics` and `health_check` needs besides the counters.
pub struct Now {
    pub rate_used: usize,
    pub rate_limit: usize,
    pub connection_limit: usize,
    pub dropped: u64,
    pub in_flight: usize,
}

impl Metrics {
    pub fn limited(&self, full: Full) {
        count(match full {
            Full::Bucket { .. } => &self.rate_limited,
            Full::Global { .. } => &self.globally_limited,
            Full::Ui { .. } => &self.ui_limited,
        });
    }

    /// Adds the face's figures to those of the domain; where both have a member, the face knows better.
    pub fn add_figures(&self, data: &mut Value, now: &Now) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        merge(
            data,
            json!({
                "connectionCount": self.connections.load(Ordering::Relaxed),
                "pendingConnectionCount": 0,
                "totalCommandsExecuted": of(&self.executed),
                "commandsInFlight": now.in_flight,
                "commandsRejected": {
                    "messageSize": of(&self.oversized),
                    "rateLimit": of(&self.rate_limited),
                    "globalRateLimit": of(&self.globally_limited),
                    "connectionLimit": of(&self.turned_away),
                    "extensionUIResponseRateLimit": of(&self.ui_limited),
                    "pendingLimit": of(&self.pending_limited),
                    "malformed": of(&self.malformed),
                    "validation": of(&self.invalid),
                    "busy": of(&self.busy),
                },
                "rateLimitUsage": {"globalCount": now.rate_used, "globalLimit": now.rate_limit},
                "droppedBroadcasts": now.dropped,
                "slowReadersClosed": of(&self.slow_readers),
            }),
        );
    }

    /// Adds what the face finds wrong; it never mends what the domain found.
    pub fn add_health(&self, data: &mut Value, now: &Now) {
        let (count, limit) = (self.connections.load(Ordering::Relaxed), now.connection_limit);
        if count.saturating_mul(10) < limit.saturating_mul(9) {
            return;
        }
        let issue = format!("Connection count at {count}/{limit} (90%+)");
        match data.get_mut("issues").and_then(Value::as_array_mut) {
            Some(issues) => issues.push(issue.into()),
            None => merge(data, json!({"issues": [issue]})),
        }
        merge(data, json!({"healthy": false}));
    }
}

/// Puts the members of one object into another, and of objects inside them.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                match into.get_mut(&name) {
                    Some(there) => merge(there, value),
                    None => drop(into.insert(name, value)),
                }
            }
        }
        (into, from) => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now { rate_used: 3, rate_limit: 1000, connection_limit: 10, dropped: 0, in_flight: 0 };

    #[test]
    fn figures_of_both_are_joined() {
        let metrics = Metrics::default();
        metrics.connections.store(2, Ordering::Relaxed);
        let mut data =
            json!({"sessionCount": 5, "connectionCount": 99, "commandsRejected": {"sessionLimit": 4}});
        metrics.add_figures(&mut data, &NOW);
        assert_eq!((&data["sessionCount"], &data["connectionCount"]), (&json!(5), &json!(2)));
        assert_eq!(data["commandsRejected"]["sessionLimit"], 4);
        assert_eq!(data["rateLimitUsage"], json!({"globalCount": 3, "globalLimit": 1000}));
    }

    #[test]
    fn health_suffers_when_connections_run_out() {
        let metrics = Metrics::default();
        let healthy = json!({"healthy": true, "issues": []});
        let mut data = healthy.clone();
        metrics.connections.store(8, Ordering::Relaxed);
        metrics.add_health(&mut data, &NOW);
        assert_eq!(data, healthy);
        metrics.connections.store(9, Ordering::Relaxed);
        metrics.add_health(&mut data, &NOW);
        assert_eq!(data, json!({"healthy": false, "issues": ["Connection count at 9/10 (90%+)"]}));
    }
}
