//! How fast knowledge is written, indexed and found, as JSON lines: `cargo xtask bench knowledge`. `O8_QDRANT` names the server
//! that the index is measured beside; `O8_QUICK` makes it short.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement"
)]

mod documents;
mod engines;
#[path = "../../tests/qdrant/server.rs"]
#[allow(dead_code, reason = "tests do more with it")]
mod server;
mod words;

use std::time::{Duration, Instant};

/// Those who ask at once, as many as the machine has cores.
const CLIENTS: usize = 2;

/// How much is measured.
#[derive(Clone, Copy)]
struct Extent {
    passages: &'static [usize],
    queries: usize,
    writing: Duration,
}

fn main() {
    let quick = std::env::var_os("O8_QUICK").is_some();
    let extent = match quick {
        true => Extent { passages: &[2_000], queries: 200, writing: Duration::from_secs(1) },
        false => Extent { passages: &[10_000, 100_000], queries: 2_000, writing: Duration::from_secs(5) },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for passages in extent.passages {
            engines::measure(*passages, extent).await;
        }
        for writers in [1, 64] {
            documents::create(writers, extent).await;
        }
        for passages in extent.passages {
            documents::query(*passages, extent).await;
        }
    });
}

fn print(name: &str, value: f64, unit: &str) {
    println!("{}", serde_json::json!({"name": name, "value": value, "unit": unit}));
}

/// How long each of many took, and all of them together.
struct Times {
    each_ms: Vec<f64>,
    whole: Duration,
}

impl Times {
    fn show(mut self, name: &str) {
        self.each_ms.sort_by(f64::total_cmp);
        let at = |share: f64| self.each_ms[((self.each_ms.len() - 1) as f64 * share) as usize];
        print(&format!("{name}, p50"), at(0.5), "ms");
        print(&format!("{name}, p95"), at(0.95), "ms");
        print(&format!("{name}, rate"), self.each_ms.len() as f64 / self.whole.as_secs_f64(), "/s");
    }
}

/// Asks so many times, by several at once.
async fn ask<F>(count: usize, ask: impl Fn(usize) -> F) -> Times
where
    F: Future<Output = ()>,
{
    let began = Instant::now();
    let client = |client: usize| {
        let ask = &ask;
        async move {
            let mut each = Vec::new();
            for n in (client..count).step_by(CLIENTS) {
                let began = Instant::now();
                ask(n).await;
                each.push(began.elapsed().as_secs_f64() * 1e3);
            }
            each
        }
    };
    let each = futures::future::join_all((0..CLIENTS).map(client)).await;
    Times { each_ms: each.concat(), whole: began.elapsed() }
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
