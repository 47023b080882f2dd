//! The metrics of the contract as Prometheus reads them (KNO-11): its queries run against them unchanged.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::SERIES;
use crate::slo;

/// How often what happened to which action.
pub(crate) type Fresh = BTreeMap<(String, &'static str), u64>;

/// The status of a success; anything else is a failure (KNO-11).
pub(crate) const SUCCESS: &str = "SUCCESS";
pub(crate) const ERROR: &str = "ERROR";

/// What became of a message that was not done with.
pub(crate) const DEAD_LETTER: &str = "DEAD_LETTER";
pub(crate) const RETRY: &str = "RETRY";

const REQUESTS: &str = "a2a_requests_total";
const LATENCY: &str = "a2a_latency_ms";
const DLQ: &str = "a2a_dlq_total";
const RETRIES: &str = "a2a_retries_total";

/// What a series is about: `action, tenant, principal, status, error_code`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels {
    pub action: String,
    pub tenant: String,
    pub principal: String,
    /// `SUCCESS`, or anything else for a failure.
    pub status: &'static str,
    /// Empty for a success.
    pub error_code: &'static str,
}

/// The upper ends of the buckets, in milliseconds: dense around the promises of one and two seconds.
pub(crate) const BUCKETS_MS: [u64; 15] =
    [1, 2, 5, 10, 25, 50, 100, 250, 500, 750, 1000, 2000, 5000, 10_000, 30_000];

/// A handle to the metrics. Clones share them.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Figures>>);

#[derive(Default)]
struct Figures {
    requests: BTreeMap<Labels, u64>,
    latency: BTreeMap<Labels, Latency>,
    dlq: BTreeMap<Labels, u64>,
    retries: BTreeMap<Labels, u64>,
    /// What was counted since it was last written down.
    fresh: Fresh,
}

#[derive(Default)]
struct Latency {
    within: [u64; BUCKETS_MS.len()],
    count: u64,
    sum_ms: f64,
}

impl Metrics {
    /// One envelope was answered with what came of it, after so long.
    pub fn answered(&self, labels: Labels, elapsed_us: u64) {
        self.acknowledged(&labels.action, elapsed_us);
        self.concluded(labels, Some(elapsed_us));
    }

    /// The sender of an envelope heard that it was taken, after so long; what comes of it is another matter.
    pub(crate) fn acknowledged(&self, action: &str, elapsed_us: u64) {
        self.0.lock().add_fresh(action, slo::bucket(elapsed_us));
    }

    /// This came of one envelope in the end, so long after it was sent if that is known: it is one request, however often it was
    /// delivered.
    pub(crate) fn concluded(&self, labels: Labels, elapsed_us: Option<u64>) {
        let mut figures = self.0.lock();
        figures.add_fresh(&labels.action, slo::REQUESTS);
        if labels.status != SUCCESS {
            figures.add_fresh(&labels.action, slo::FAILURES);
        }
        *series(&mut figures.requests, labels.clone()) += 1;
        if let Some(elapsed_us) = elapsed_us {
            series(&mut figures.latency, labels).add(elapsed_us);
        }
    }

    /// One envelope is on its way over the bus. A counter that begins at one would not be seen to grow, so both begin now.
    pub(crate) fn published(&self, labels: Labels) {
        let mut figures = self.0.lock();
        series(&mut figures.dlq, Labels { status: DEAD_LETTER, ..labels.clone() });
        series(&mut figures.retries, Labels { status: RETRY, ..labels });
    }

    /// One envelope was given up and lies with the dead letters.
    pub fn dead_lettered(&self, labels: Labels) {
        let mut figures = self.0.lock();
        figures.add_fresh(&labels.action, slo::DLQ);
        *series(&mut figures.dlq, labels) += 1;
    }

    /// One envelope came again: delivered anew, or repeated by its sender.
    pub fn retried(&self, labels: Labels) {
        let mut figures = self.0.lock();
        figures.add_fresh(&labels.action, slo::RETRIES);
        *series(&mut figures.retries, labels) += 1;
    }

    /// Takes what was counted since the last time.
    pub(crate) fn take_fresh(&self) -> Fresh {
        std::mem::take(&mut self.0.lock().fresh)
    }

    /// Puts back what could not be written down.
    pub(crate) fn put_back(&self, fresh: Fresh) {
        let mut figures = self.0.lock();
        for (key, count) in fresh {
            *figures.fresh.entry(key).or_default() += count;
        }
    }

    /// Everything, or what concerns one tenant, in the text format of Prometheus.
    pub fn text(&self, tenant: Option<&str>) -> String {
        let figures = self.0.lock();
        let shown = |labels: &Labels| tenant.is_none_or(|tenant| labels.tenant == tenant);
        let mut out = String::new();
        counter(&mut out, REQUESTS, "Envelopes by what came of them, each once.", &figures.requests, shown);
        head(&mut out, LATENCY, "histogram", "Milliseconds from an envelope to what came of it.");
        for (labels, latency) in figures.latency.iter().filter(|(labels, _)| shown(labels)) {
            latency.write(&mut out, &labels.text());
        }
        counter(&mut out, DLQ, "Envelopes given up.", &figures.dlq, shown);
        counter(
            &mut out,
            RETRIES,
            "Deliveries after the first, and envelopes that were sent again.",
            &figures.retries,
            shown,
        );
        out
    }
}

impl Figures {
    /// Actions are those of the registry, so there are only so many.
    fn add_fresh(&mut self, action: &str, figure: &'static str) {
        *self.fresh.entry((action.to_owned(), figure)).or_default() += 1;
    }
}

/// The series of these labels; when there are too many, the one of all tenants and principals together.
fn series<T: Default>(of: &mut BTreeMap<Labels, T>, mut labels: Labels) -> &mut T {
    if of.len() >= SERIES && !of.contains_key(&labels) {
        (labels.tenant, labels.principal) = ("other".into(), "other".into());
    }
    of.entry(labels).or_default()
}

impl Latency {
    fn add(&mut self, elapsed_us: u64) {
        for (within, end_ms) in self.within.iter_mut().zip(BUCKETS_MS) {
            *within += u64::from(elapsed_us <= end_ms * 1000);
        }
        self.count += 1;
        #[expect(clippy::cast_precision_loss, reason = "a latency is far below 2^52 microseconds")]
        let ms = elapsed_us as f64 / 1000.0;
        self.sum_ms += ms;
    }

    // Writing to a String cannot fail.
    fn write(&self, out: &mut String, labels: &str) {
        for (within, end_ms) in self.within.iter().zip(BUCKETS_MS) {
            let _ = writeln!(out, "{LATENCY}_bucket{{{labels},le=\"{end_ms}\"}} {within}");
        }
        let _ = writeln!(out, "{LATENCY}_bucket{{{labels},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{LATENCY}_sum{{{labels}}} {}", self.sum_ms);
        let _ = writeln!(out, "{LATENCY}_count{{{labels}}} {}", self.count);
    }
}

fn head(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

/// A counter that nothing was counted in says zero, so that a rate over it is zero and not unknown.
fn counter(
    out: &mut String,
    name: &str,
    about: &str,
    of: &BTreeMap<Labels, u64>,
    shown: impl Fn(&Labels) -> bool,
) {
    head(out, name, "counter", about);
    let mut of = of.iter().filter(|(labels, _)| shown(labels)).peekable();
    if of.peek().is_none() {
        let _ = writeln!(out, "{name} 0");
    }
    for (labels, count) in of {
        let _ = writeln!(out, "{name}{{{}}} {count}", labels.text());
    }
}

impl Labels {
    /// With what came of it: a success, or the word for what went wrong.
    #[must_use]
    pub(crate) fn ended(self, word: Option<&'static str>) -> Self {
        let status = if word.is_some() { ERROR } else { SUCCESS };
        Self { status, error_code: word.unwrap_or_default(), ..self }
    }

    fn text(&self) -> String {
        let named = [
            ("action", self.action.as_str()),
            ("tenant", &self.tenant),
            ("principal", &self.principal),
            ("status", self.status),
            ("error_code", self.error_code),
        ];
        let pairs: Vec<String> =
            named.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        pairs.join(",")
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(action: &str, status: &'static str, error_code: &'static str) -> Labels {
        let (tenant, principal) = ("acme".into(), "svc:\"a\"\\".into());
        Labels { action: action.into(), tenant, principal, status, error_code }
    }

    #[test]
    fn a_tenant_sees_its_own_series_only() {
        let metrics = Metrics::default();
        metrics.answered(labels("a", "SUCCESS", ""), 4_000);
        metrics.answered(Labels { tenant: "rival".into(), ..labels("a", "SUCCESS", "") }, 4_000);
        let own = metrics.text(Some("rival"));
        assert!(own.contains("tenant=\"rival\"") && !own.contains("acme"), "{own}");
        assert!(metrics.text(None).contains("acme"));
    }

    #[test]
    fn kno_11_series_have_the_labels_of_the_contract_and_buckets_add_up() {
        let metrics = Metrics::default();
        metrics.answered(labels("knowledge.query_knowledge", "SUCCESS", ""), 4_000);
        metrics.answered(labels("knowledge.query_knowledge", "SUCCESS", ""), 900_000);
        metrics.answered(labels("knowledge.create_document", "ERROR", "CONFLICT"), 1);
        let text = metrics.text(None);
        let named = |action: &str, status: &str, code: &str| {
            format!(
                r#"{{action="{action}",tenant="acme",principal="svc:\"a\"\\",status="{status}",error_code="{code}""#
            )
        };
        let query = named("knowledge.query_knowledge", "SUCCESS", "");
        for (le, count) in [("2", 0), ("5", 1), ("750", 1), ("1000", 2), ("+Inf", 2)] {
            assert!(
                text.contains(&format!("a2a_latency_ms_bucket{query},le=\"{le}\"}} {count}\n")),
                "{le}: {text}"
            );
        }
        assert!(text.contains(&format!(
            "a2a_requests_total{}}} 1\n",
            named("knowledge.create_document", "ERROR", "CONFLICT")
        )));
        assert!(text.contains(&format!("a2a_latency_ms_count{query}}} 2\n")));
    }

    #[test]
    fn what_may_be_given_up_is_there_before_it_is() {
        let metrics = Metrics::default();
        metrics.published(labels("a", "", ""));
        let text = metrics.text(None);
        for (name, status) in [("a2a_dlq_total", DEAD_LETTER), ("a2a_retries_total", RETRY)] {
            let line = text.lines().find(|line| line.starts_with(&format!("{name}{{action=\"a\""))).unwrap();
            assert!(line.contains(&format!("status=\"{status}\"")) && line.ends_with(" 0"), "{line}");
        }
    }

    #[test]
    fn nothing_counted_is_zero_and_not_unknown() {
        let text = Metrics::default().text(None);
        for name in [REQUESTS, DLQ, RETRIES] {
            assert!(text.contains(&format!("{name} 0\n")), "{name}");
        }
    }

    #[test]
    fn series_are_bounded() {
        let metrics = Metrics::default();
        for number in 0..SERIES + 100 {
            let principal = number.to_string();
            metrics.retried(Labels { principal, ..labels("a", "SUCCESS", "") });
        }
        assert_eq!(metrics.0.lock().retries.len(), SERIES + 1);
    }
}
