//! What was promised and what was kept (KNO-9, KNO-11): figures of each hour in the store, and the report over them.

use std::collections::BTreeMap;

use orchestr8_contract::Fault;
use orchestr8_kernel::Kernel;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Batch;
use serde_json::{Value, json};

use crate::limits;
use crate::metrics::{BUCKETS_MS, Metrics};
use crate::settings::Security;
use crate::tables;

pub(crate) const REQUESTS: &str = "requests";
pub(crate) const FAILURES: &str = "failures";
pub(crate) const DLQ: &str = "dlq";
pub(crate) const RETRIES: &str = "retries";

/// The names of the buckets of latency, the last one without an end.
const LATENCY: [&str; BUCKETS_MS.len() + 1] = [
    "le_1", "le_2", "le_5", "le_10", "le_25", "le_50", "le_100", "le_250", "le_500", "le_750", "le_1000",
    "le_2000", "le_5000", "le_10000", "le_30000", "le_inf",
];

const HOUR_MS: i64 = 3_600_000;

/// The promises of the contract, which depend on who may call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objectives {
    pub ack_p95_ms: f64,
    /// Dead letters of a day for each envelope of it.
    pub dlq_rate: f64,
    /// Failures of seven days for each envelope of them.
    pub error_rate: f64,
}

impl Objectives {
    pub fn of(security: &Security) -> Self {
        let ack_p95_ms = match security {
            Security::Local | Security::Basic(_) => 1000.0,
            Security::External => 2000.0,
        };
        Self { ack_p95_ms, dlq_rate: 0.001, error_rate: 0.01 }
    }
}

/// The bucket a latency falls into.
pub(crate) fn bucket(elapsed_us: u64) -> &'static str {
    let at = BUCKETS_MS.iter().position(|end_ms| elapsed_us <= end_ms * 1000);
    LATENCY[at.unwrap_or(BUCKETS_MS.len())]
}

/// Writes down what was counted since the last time.
pub(crate) async fn write(kernel: &Kernel, metrics: &Metrics) -> Result<(), Fault> {
    let fresh = metrics.take_fresh();
    if fresh.is_empty() {
        return Ok(());
    }
    let hour = kernel.ports().clock.now_ms() / HOUR_MS;
    let mut batch = Batch::new();
    for ((action, figure), count) in &fresh {
        batch.then(tables::hour_add(hour, action, figure, i64::try_from(*count).unwrap_or(i64::MAX)));
    }
    batch.then(tables::hours_forget(hour - limits::HOURS_KEPT));
    let written = kernel.ports().store.commit(batch).await;
    written.map_err(|error| {
        metrics.put_back(fresh);
        store_fault(error)
    })
}

/// The report of today and of seven days.
pub(crate) async fn report(kernel: &Kernel, objectives: Objectives) -> Result<Value, Fault> {
    let hour = kernel.ports().clock.now_ms() / HOUR_MS;
    let day = window(kernel, hour - 23).await?;
    let week = window(kernel, hour - 167).await?;
    Ok(judge(&day, &week, objectives))
}

/// Counts of figures by action.
type Window = BTreeMap<String, BTreeMap<String, u64>>;

async fn window(kernel: &Kernel, since: i64) -> Result<Window, Fault> {
    let rows = kernel.ports().store.query(tables::hours(since)).await.map_err(store_fault)?;
    let mut window = Window::new();
    for row in &rows {
        let count = row.int(2).map_err(store_fault)?.unsigned_abs();
        let (action, figure) = (row.text(0).map_err(store_fault)?, row.text(1).map_err(store_fault)?);
        window.entry(action.to_owned()).or_default().insert(figure.to_owned(), count);
    }
    Ok(window)
}

fn total(window: &Window, figure: &str) -> u64 {
    window.values().map(|figures| figures.get(figure).copied().unwrap_or(0)).sum()
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn rate(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn judge(day: &Window, week: &Window, goals: Objectives) -> Value {
    let buckets = LATENCY.map(|name| total(week, name));
    let p95 = quantile(0.95, &buckets);
    let (dead, today) = (total(day, DLQ), total(day, REQUESTS));
    let (failures, requests) = (total(week, FAILURES), total(week, REQUESTS));
    let (dlq_rate, error_rate) = (rate(dead, today), rate(failures, requests));
    let actions: Vec<Value> = week
        .iter()
        .map(|(action, figures)| {
            let of = |name: &str| figures.get(name).copied().unwrap_or(0);
            json!({
                "action": action, "requests": of(REQUESTS), "failures": of(FAILURES), "retries": of(RETRIES),
                "dead_letters": of(DLQ), "p95_ms": quantile(0.95, &LATENCY.map(of)),
            })
        })
        .collect();
    json!({
        "ack_p95": {"window": "7d", "value_ms": p95, "goal_ms": goals.ack_p95_ms,
            "met": p95.is_none_or(|ms| ms <= goals.ack_p95_ms)},
        "dlq": {"window": "1d", "dead_letters": dead, "requests": today, "rate": dlq_rate, "goal": goals.dlq_rate,
            "met": dlq_rate <= goals.dlq_rate},
        "error_budget": {"window": "7d", "failures": failures, "requests": requests, "rate": error_rate,
            "budget": goals.error_rate, "left": 1.0 - error_rate / goals.error_rate,
            "met": error_rate <= goals.error_rate},
        "actions": actions,
    })
}

/// As `histogram_quantile` has it: evenly spread within a bucket; beyond the last end, that end. None: nothing was measured.
#[expect(clippy::cast_precision_loss, reason = "counts and milliseconds are far below 2^52")]
fn quantile(q: f64, counts: &[u64; LATENCY.len()]) -> Option<f64> {
    let all: u64 = counts.iter().sum();
    if all == 0 {
        return None;
    }
    let rank = q * all as f64;
    let (mut before, mut start) = (0.0, 0.0);
    for (count, end_ms) in counts.iter().zip(BUCKETS_MS) {
        let (within, end) = (*count as f64, end_ms as f64);
        if before + within >= rank && within > 0.0 {
            return Some(start + (end - start) * (rank - before) / within);
        }
        (before, start) = (before + within, end);
    }
    Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_named_by_their_ends() {
        for (us, name) in
            [(0, "le_1"), (1000, "le_1"), (1001, "le_2"), (30_000_000, "le_30000"), (u64::MAX, "le_inf")]
        {
            assert_eq!(bucket(us), name);
        }
        for (end_ms, name) in BUCKETS_MS.iter().zip(LATENCY) {
            assert_eq!(format!("le_{end_ms}"), name);
        }
    }

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let mut counts = [0; 16];
        assert_eq!(quantile(0.95, &counts), None);
        counts[3] = 100;
        assert_eq!(quantile(0.95, &counts), Some(9.75));
        counts[15] = 1000;
        assert_eq!(quantile(0.95, &counts), Some(30_000.0));
    }

    #[test]
    fn kno_11_a_budget_that_is_used_up_is_not_met() {
        let figures = |requests: u64, failures: u64, dlq: u64| {
            let counts = [(REQUESTS, requests), (FAILURES, failures), (DLQ, dlq), ("le_5", requests)];
            Window::from([("a".to_owned(), counts.map(|(name, count)| (name.to_owned(), count)).into())])
        };
        let goals = Objectives::of(&Security::Local);
        let good = judge(&figures(1000, 0, 1), &figures(1000, 5, 1), goals);
        assert_eq!((&good["dlq"]["met"], &good["error_budget"]["met"]), (&json!(true), &json!(true)));
        assert_eq!(good["error_budget"]["left"], 0.5);
        let bad = judge(&figures(1000, 20, 2), &figures(1000, 20, 2), goals);
        assert_eq!((&bad["dlq"]["met"], &bad["error_budget"]["met"]), (&json!(false), &json!(false)));
        let nothing = judge(&Window::new(), &Window::new(), goals);
        assert_eq!(
            (&nothing["ack_p95"]["value_ms"], &nothing["ack_p95"]["met"]),
            (&Value::Null, &json!(true))
        );
        assert_eq!(Objectives::of(&Security::External).ack_p95_ms, 2000.0);
    }
}
