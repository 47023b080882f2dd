//! How fast knowledge is written, indexed and found, as JSON lines: `cargo xtask bench knowledge [FOLDER]`. `O8_QDRANT` names the
//! server that the index is measured beside, `O8_COLLECTIONS` a folder of real texts; `O8_QUICK` makes it short. Named parts alone
//! are measured: `cargo bench -p orchestr8-knowledge --bench knowledge -- queries`.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement"
)]

mod documents;
mod embedder;
mod engines;
mod peer;
#[path = "../../tests/qdrant/server.rs"]
#[allow(dead_code, reason = "tests do more with it")]
mod server;
mod texts;
mod words;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

/// Those who ask at once, as many as the machine has cores.
const CLIENTS: usize = 2;

/// How much is measured.
#[derive(Clone, Copy)]
struct Extent {
    passages: &'static [usize],
    queries: usize,
    /// Real texts whose vectors are made.
    texts: usize,
    writing: Duration,
}

const WHOLE: Extent =
    Extent { passages: &[10_000, 100_000], queries: 2_000, texts: 10_000, writing: Duration::from_secs(5) };
const QUICK: Extent =
    Extent { passages: &[2_000], queries: 200, texts: 500, writing: Duration::from_secs(1) };

/// What can be measured alone.
const PARTS: [&str; 3] = ["engines", "creates", "queries"];

fn main() {
    // Cargo adds words of its own, which begin with dashes.
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let unknown = named.iter().find(|name| !PARTS.contains(&name.as_str()));
    assert!(unknown.is_none(), "{unknown:?} is none of {PARTS:?}");
    let wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    let extent = if std::env::var_os("O8_QUICK").is_some() { QUICK } else { WHOLE };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let real = match std::env::var_os("O8_COLLECTIONS").filter(|_| wanted("engines")) {
            Some(folder) => Some(embedder::measure(&texts::read(folder.as_ref()), extent).await),
            None => None,
        };
        for passages in extent.passages.iter().filter(|_| wanted("engines")) {
            engines::measure(*passages, real.as_ref(), extent).await;
        }
        for writers in [1, 64].into_iter().filter(|_| wanted("creates")) {
            documents::create(writers, extent).await;
        }
        for passages in extent.passages.iter().filter(|_| wanted("queries")) {
            documents::query(*passages, extent).await;
        }
    });
}

fn print(name: &str, value: f64, unit: &str) {
    println!("{}", serde_json::json!({"name": name, "value": value, "unit": unit}));
    // The lines are for whoever started this; a person who waits sees where it is.
    eprintln!("{name}: {value:.3} {unit}");
}

/// How long each of many took, all of them together, and the processor time of one.
#[derive(Clone)]
struct Times {
    each_ms: Vec<f64>,
    whole: Duration,
    cpu_ms: f64,
}

impl Times {
    fn rate(&self) -> f64 {
        self.each_ms.len() as f64 / self.whole.as_secs_f64()
    }

    fn at(&self, share: f64) -> f64 {
        let mut each = self.each_ms.clone();
        each.sort_by(f64::total_cmp);
        each[((each.len() - 1) as f64 * share) as usize]
    }

    fn show(&self, name: &str) {
        print(&format!("{name}, p50"), self.at(0.5), "ms");
        print(&format!("{name}, p95"), self.at(0.95), "ms");
        print(&format!("{name}, rate"), self.rate(), "/s");
        print(&format!("{name}, CPU"), self.cpu_ms, "ms");
    }
}

/// What is asked: the n-th time.
type Ask = Arc<dyn Fn(usize) -> BoxFuture<'static, ()> + Send + Sync>;

/// Asks so many times, by several at once; these processes work on it.
async fn ask(count: usize, processes: &[String], ask: Ask) -> Times {
    let spent = || processes.iter().map(|process| cpu_ms(process)).sum::<f64>();
    let (began, before) = (Instant::now(), spent());
    let client = |client: usize| {
        let ask = ask.clone();
        tokio::spawn(async move {
            let mut each = Vec::new();
            for n in (client..count).step_by(CLIENTS) {
                let began = Instant::now();
                ask(n).await;
                each.push(began.elapsed().as_secs_f64() * 1e3);
            }
            each
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let each = futures::future::try_join_all(clients).await.unwrap().concat();
    Times { each_ms: each, whole: began.elapsed(), cpu_ms: (spent() - before) / count as f64 }
}

fn own() -> Vec<String> {
    vec![String::from("self")]
}

/// Resident memory of a process, in megabytes.
fn memory_mb(process: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap();
    text.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0 / 1e6
}

/// Processor time of a process, in milliseconds.
fn cpu_ms(process: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    // Ticks of ten milliseconds, in user and in kernel mode.
    fields[11..=12].iter().map(|ticks| ticks.parse::<f64>().unwrap() * 10.0).sum()
}
