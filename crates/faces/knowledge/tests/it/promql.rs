//! The queries of the contract (KNO-11), letter for letter, against what `/metrics` says: read and reckoned as Prometheus does.
//!
//! Only what those queries need is understood; between two readings a counter has grown by their difference.

use std::collections::BTreeMap;

use orchestr8_knowledge_face::Settings;
use orchestr8_testing::within;
use serde_json::json;

use crate::world::{World, create, envelope, id};

const LATENCY: &str = r#"histogram_quantile(0.95, sum(rate(a2a_latency_ms_bucket{action="knowledge.query_knowledge"}[5m])) by (le))"#;
const DLQ_RATE: &str = "sum(increase(a2a_dlq_total[1d])) / sum(increase(a2a_requests_total[1d]))";
const BUDGET: &str = r#"(sum(increase(a2a_requests_total{status!="SUCCESS"}[7d]))
 / sum(increase(a2a_requests_total[7d]))) > 0.01"#;

type Labels = BTreeMap<String, String>;
type Vector = Vec<(Labels, f64)>;

/// Two readings of the same server, one after the other.
struct Readings {
    before: Vector,
    after: Vector,
}

/// What a text of the exposition format says; the name of a series is its label `__name__`.
fn read(text: &str) -> Vector {
    let mut series = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (named, value) = line.rsplit_once(' ').unwrap();
        let (name, rest) = named.split_once('{').unwrap_or((named, "}"));
        let mut labels = Labels::from([("__name__".to_owned(), name.to_owned())]);
        let mut rest = rest.strip_suffix('}').unwrap();
        while let Some((label, after)) = rest.split_once("=\"") {
            let end = after.char_indices().scan(false, |escaped, (at, letter)| {
                let ends = letter == '"' && !*escaped;
                *escaped = letter == '\\' && !*escaped;
                Some((at, ends))
            });
            let end = end.filter(|(_, ends)| *ends).map(|(at, _)| at).next().unwrap();
            labels.insert(label.to_owned(), after[..end].replace("\\\"", "\"").replace("\\\\", "\\"));
            rest = after[end + 1..].trim_start_matches(',');
        }
        series.push((labels, value.parse().unwrap()));
    }
    series
}

/// A query on its way from text to numbers.
struct Query<'a> {
    rest: &'a str,
    readings: &'a Readings,
}

fn evaluate(query: &str, readings: &Readings) -> Vector {
    let mut reader = Query { rest: query.trim(), readings };
    let value = reader.comparison();
    assert_eq!(reader.rest, "", "all of the query is understood");
    value
}

fn scalar(vector: &Vector) -> f64 {
    assert_eq!(vector.len(), 1, "{vector:?}");
    vector[0].1
}

impl Query<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let eaten = self.rest.strip_prefix(token);
        self.rest = eaten.unwrap_or(self.rest).trim_start();
        eaten.is_some()
    }

    fn word(&mut self) -> String {
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':');
        let end = self.rest.find(|c| !letter(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word.to_owned()
    }

    fn comparison(&mut self) -> Vector {
        let left = self.quotient();
        if !self.eat(">") {
            return left;
        }
        let right = scalar(&self.quotient());
        left.into_iter().filter(|(_, value)| *value > right).collect()
    }

    fn quotient(&mut self) -> Vector {
        let mut left = self.term();
        while self.eat("/") {
            let right = scalar(&self.term());
            left.iter_mut().for_each(|(_, value)| *value /= right);
        }
        left
    }

    fn term(&mut self) -> Vector {
        if self.eat("(") {
            let inner = self.comparison();
            assert!(self.eat(")"));
            return inner;
        }
        let word = self.word();
        if let Ok(number) = word.parse::<f64>() {
            return vec![(Labels::new(), number)];
        }
        match word.as_str() {
            "sum" => {
                let inner = self.argument();
                let by = if self.eat("by") { self.names() } else { Vec::new() };
                sum(inner, &by)
            }
            "rate" => self.growth(true),
            "increase" => self.growth(false),
            "histogram_quantile" => {
                assert!(self.eat("("));
                let q = scalar(&self.quotient());
                assert!(self.eat(","));
                let buckets = self.quotient();
                assert!(self.eat(")"));
                vec![(Labels::new(), quantile(q, buckets))]
            }
            other => panic!("no function {other}"),
        }
    }

    fn argument(&mut self) -> Vector {
        assert!(self.eat("("));
        let inner = self.quotient();
        assert!(self.eat(")"));
        inner
    }

    fn names(&mut self) -> Vec<String> {
        assert!(self.eat("("));
        let mut names = vec![self.word()];
        while self.eat(",") {
            names.push(self.word());
        }
        assert!(self.eat(")"));
        names
    }

    /// How much the series of a selector have grown, in all or in a second of the range.
    fn growth(&mut self, in_a_second: bool) -> Vector {
        assert!(self.eat("("));
        let name = self.word();
        let matchers = self.matchers();
        assert!(self.eat("["));
        let range = self.word();
        assert!(self.eat("]") && self.eat(")"));
        let (number, unit) = range.split_at(range.len() - 1);
        let unit_s = match unit {
            "m" => 60.0,
            "d" => 86_400.0,
            other => panic!("no unit {other}"),
        };
        let seconds = if in_a_second { number.parse::<f64>().unwrap() * unit_s } else { 1.0 };
        let picked = |labels: &Labels| {
            let value = |name: &str| labels.get(name).map_or("", String::as_str);
            value("__name__") == name
                && matchers.iter().all(|(name, same, wanted)| (value(name) == wanted) == *same)
        };
        let earlier = |labels: &Labels| {
            self.readings.before.iter().find(|(known, _)| known == labels).map_or(0.0, |(_, value)| *value)
        };
        let series = self.readings.after.iter().filter(|(labels, _)| picked(labels));
        series.map(|(labels, value)| (labels.clone(), (value - earlier(labels)) / seconds)).collect()
    }

    fn matchers(&mut self) -> Vec<(String, bool, String)> {
        let mut matchers = Vec::new();
        if self.eat("{") {
            while !self.eat("}") {
                let name = self.word();
                let same = !self.eat("!=");
                assert!(!same || self.eat("="));
                assert!(self.eat("\""));
                let (value, rest) = self.rest.split_once('"').unwrap();
                matchers.push((name, same, value.to_owned()));
                self.rest = rest.trim_start();
                self.eat(",");
            }
        }
        matchers
    }
}

fn sum(vector: Vector, by: &[String]) -> Vector {
    let mut sums: Vec<(Labels, f64)> = Vec::new();
    for (labels, value) in vector {
        let kept: Labels = labels.into_iter().filter(|(name, _)| by.contains(name)).collect();
        match sums.iter_mut().find(|(known, _)| *known == kept) {
            Some((_, sum)) => *sum += value,
            None => sums.push((kept, value)),
        }
    }
    sums
}

/// Evenly spread within a bucket; beyond the last end, that end.
fn quantile(q: f64, buckets: Vector) -> f64 {
    let end = |labels: &Labels| match labels["le"].as_str() {
        "+Inf" => f64::INFINITY,
        number => number.parse().unwrap(),
    };
    let mut ends: Vec<(f64, f64)> = buckets.iter().map(|(labels, count)| (end(labels), *count)).collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let rank = q * ends.last().unwrap().1;
    let at = ends.iter().position(|(_, count)| *count >= rank).unwrap();
    let (start, before) = if at == 0 { (0.0, 0.0) } else { ends[at - 1] };
    match ends[at].0 {
        f64::INFINITY => start,
        end => start + (end - start) * (rank - before) / (ends[at].1 - before),
    }
}

#[tokio::test]
async fn kno_11_the_queries_of_the_contract_run_unchanged() {
    let world = World::with_bus(Settings::default()).await;
    world.consume();
    world.send(&create(1, 1, "x")).await.data();
    let before = read(&world.get("/metrics").await.text);
    for request in 2..=18 {
        world.send(&envelope(request, "knowledge.query_knowledge", json!({"query": "q"}))).await.data();
    }
    // One failure over HTTP, and one over the bus that nobody hears of: it is a dead letter.
    world.send(&envelope(19, "knowledge.get_document", json!({"document_id": id(9)}))).await.error(404);
    world
        .post("/a2a/publish", &envelope(20, "knowledge.get_document", json!({"document_id": id(9)})))
        .await
        .data();
    let text = within(async {
        loop {
            let text = world.get("/metrics").await.text.clone();
            if text.contains(r#"status="DEAD_LETTER",error_code=""} 1"#) {
                break text;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let readings = Readings { before, after: read(&text) };
    let p95_ms = scalar(&evaluate(LATENCY, &readings));
    assert!(
        p95_ms > 0.0 && p95_ms <= 1.0,
        "no time passes here, so all fall into the first bucket: {p95_ms}"
    );
    assert_eq!(scalar(&evaluate(DLQ_RATE, &readings)), 1.0 / 19.0);
    assert_eq!(scalar(&evaluate(BUDGET, &readings)), 2.0 / 19.0, "the alert fires, and says how far it is");
    let calm = Readings { before: readings.after.clone(), after: readings.after };
    assert!(evaluate(BUDGET, &calm).is_empty() || scalar(&evaluate(BUDGET, &calm)).is_nan());
}

#[test]
fn a_quantile_is_reckoned_as_prometheus_does() {
    let bucket = |le: &str, count: f64| (Labels::from([("le".to_owned(), le.to_owned())]), count);
    assert_eq!(quantile(0.95, vec![bucket("+Inf", 100.0), bucket("10", 100.0), bucket("5", 0.0)]), 9.75);
    assert_eq!(quantile(0.95, vec![bucket("10", 1.0), bucket("+Inf", 100.0)]), 10.0);
}
