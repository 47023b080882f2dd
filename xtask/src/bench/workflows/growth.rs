//! Whether what an engine adds to a step stays the same when the store is full, measured without flushes.
use super::systems::{self, Running, Tools};
use super::{Counts, IN_FLIGHT, STEPS};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// Calls before each measurement; they are stored too, so there are few.
const WARM_UP: u32 = 20;
const FILL_SECONDS: u32 = 3600;
/// Without flushes: those measure the disk, and would hide a slow query behind them.
const SYNC: &str = "normal";

/// One filled store and what it showed.
pub struct Point {
    pub stored: u32,
    pub start_ms: f64,
    samples: Vec<Value>,
}

impl Point {
    /// What the whole call took, divided by its steps. The steps do nothing, so this is all overhead, that of HTTP
    /// and of beginning and ending an execution included: the engine's own part is smaller.
    pub fn per_step_us(&self, column: &str) -> f64 {
        super::table::best(&self.samples, column) / STEPS as f64
    }

    pub fn as_json(&self) -> Value {
        json!({
            "stored": self.stored,
            "step_p50_us": self.per_step_us("p50_us"),
            "step_p95_us": self.per_step_us("p95_us"),
            "start_ms": self.start_ms,
            "rounds": self.samples,
        })
    }
}

/// Fills one store after the other, then measures them in turns, so that both see the same machine.
pub fn run(tools: &Tools, counts: &Counts, rounds: u32, folder: &Path) -> Result<Vec<Point>> {
    let mut filled = Vec::new();
    for stored in counts.stored {
        eprintln!("... storing {stored} executions");
        let data = tempfile::tempdir_in(folder)?;
        let (running, point) = fill(tools, stored, data.path())?;
        filled.push((running, point, data));
    }
    for round in 0..rounds {
        for (running, point, _) in &mut filled {
            eprintln!("... round {} with {} stored executions", round + 1, point.stored);
            let arguments = [("--warm-up", WARM_UP), ("--calls", counts.growth_calls)];
            let alone = [("--loaded-calls", 0), ("--in-flight", 1), ("--seconds", counts.seconds)];
            point.samples.push(running.load(
                &tools.load,
                &[arguments.as_slice(), &alone].concat(),
                tools.show,
            )?);
        }
    }
    Ok(filled.into_iter().map(|(_, point, _)| point).collect())
}

/// Stores executions the way any client would, and starts the server again: both points begin equally cold.
fn fill(tools: &Tools, stored: u32, folder: &Path) -> Result<(Running, Point)> {
    let running = systems::ours(&tools.ours, folder, SYNC, true)?;
    let calls = [("--warm-up", 0), ("--calls", 0), ("--loaded-calls", stored)];
    let lanes = [("--in-flight", IN_FLIGHT.min(stored)), ("--seconds", FILL_SECONDS)];
    let figures = running.load(&tools.load, &[calls.as_slice(), &lanes].concat(), tools.show)?;
    let made = figures["loaded_calls"].as_u64().context("the load client's loaded_calls")?;
    anyhow::ensure!(made == u64::from(stored), "only {made} of {stored} executions were stored in time");
    drop(running);
    let began = Instant::now();
    let running = systems::ours(&tools.ours, folder, SYNC, true)?;
    let start_ms = began.elapsed().as_secs_f64() * 1e3;
    Ok((running, Point { stored, start_ms, samples: Vec::new() }))
}

#[cfg(test)]
mod tests {
    use super::{Point, json};

    #[test]
    fn the_best_round_is_divided_by_the_steps() {
        let samples = vec![json!({"p95_us": 900.0}), json!({"p95_us": 600.0})];
        let point = Point { stored: 10, start_ms: 1.0, samples };
        assert_eq!(point.per_step_us("p95_us"), 200.0);
    }
}
