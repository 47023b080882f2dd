//! Durable requests and their durable answers between two parties, through a server that already runs: ours, or NATS JetStream.
mod nats;
mod ours;

use crate::measure::at;
use crate::usage;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

const USAGE: &str = "\
usage: load pairs ours|nats --address HOST:PORT [options]

  --process PID         the server, for CPU and memory
  --warm-up N           pairs before anything is measured (default 200)
  --calls N             pairs one after another (default 500)
  --loaded-calls N      pairs with several in flight (default 10000)
  --in-flight N         how many (default 64)
  --seconds N           end each of the phases after this long, however many were made (default 20)";

/// What a phase made: how long each pair took, from short to long, and how long all of them.
pub struct Made {
    pub latencies_us: Vec<f64>,
    pub seconds: f64,
}

/// Two parties and the way between them.
pub trait Parties {
    /// Keeps so many requests open until all were made or the time is up, and waits for the last answers.
    fn run(&mut self, in_flight: usize, calls: usize, limit: Duration) -> Result<Made, String>;
}

struct Plan {
    address: SocketAddr,
    process: u32,
    warm_up: usize,
    calls: usize,
    loaded_calls: usize,
    in_flight: usize,
    limit: Duration,
}

pub fn run(mut args: impl Iterator<Item = String>) -> Result<Value, String> {
    let system = args.next().unwrap_or_default();
    let plan = parse(args)?;
    let mut parties: Box<dyn Parties> = match system.as_str() {
        "ours" => Box::new(ours::Ours::open(plan.address, plan.in_flight)?),
        "nats" => Box::new(nats::Nats::open(plan.address)?),
        _ => return Err(USAGE.to_owned()),
    };
    parties.run(plan.in_flight, plan.warm_up, plan.limit)?;
    let alone = parties.run(1, plan.calls, plan.limit)?;
    let before = usage::process_cpu_us(plan.process);
    let loaded = parties.run(plan.in_flight, plan.loaded_calls, plan.limit)?;
    let cpu = usage::process_cpu_us(plan.process) - before;
    let rate = |made: &Made| made.latencies_us.len() as f64 / made.seconds;
    Ok(json!({
        "calls": alone.latencies_us.len(),
        "alone_per_s": rate(&alone),
        "p50_us": at(&alone.latencies_us, 0.50),
        "p95_us": at(&alone.latencies_us, 0.95),
        "loaded_calls": loaded.latencies_us.len(),
        "rate_per_s": rate(&loaded),
        "loaded_p50_us": at(&loaded.latencies_us, 0.50),
        "loaded_p95_us": at(&loaded.latencies_us, 0.95),
        "cpu_us": cpu as f64 / loaded.latencies_us.len() as f64,
        "loaded_mb": usage::resident_mb(plan.process),
    }))
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Plan, String> {
    let mut plan = Plan {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        process: 0,
        warm_up: 200,
        calls: 500,
        loaded_calls: 10_000,
        in_flight: 64,
        limit: Duration::from_secs(20),
    };
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} needs a value\n{USAGE}"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag.as_str() {
            "--address" => plan.address = value.parse().map_err(|_| format!("{value}: not an address"))?,
            "--process" => plan.process = value.parse().map_err(|_| format!("{value}: not a process"))?,
            "--warm-up" => plan.warm_up = number()?,
            "--calls" => plan.calls = number()?,
            "--loaded-calls" => plan.loaded_calls = number()?,
            "--in-flight" => plan.in_flight = number()?,
            "--seconds" => plan.limit = Duration::from_secs(number()? as u64),
            _ => return Err(format!("{flag} {value}: unknown\n{USAGE}")),
        }
    }
    if plan.address.port() == 0 { Err(USAGE.to_owned()) } else { Ok(plan) }
}
