//! Workflows of three steps that do nothing, each durable: ours beside Restate and DBOS, in one run, with one client.
pub mod disk;
mod growth;
mod systems;
mod table;

use super::keep;
use crate::{Request, node, python, workspace};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;
use systems::{System, Tools};

/// How much of everything. Each phase also ends by time, because the slowest system here is a hundred times slower
/// than the fastest, and both deserve the same patience.
struct Counts {
    rounds: u32,
    warm_up: u32,
    calls: u32,
    loaded_calls: u32,
    seconds: u32,
    /// Executions in the store when the growth is measured: few, then many.
    stored: [u32; 2],
    growth_calls: u32,
}

const FULL: Counts = Counts {
    rounds: 3,
    warm_up: 2000,
    calls: 1000,
    loaded_calls: 100_000,
    seconds: 10,
    stored: [10, 100_000],
    growth_calls: 1000,
};
const QUICK: Counts = Counts {
    rounds: 1,
    warm_up: 64,
    calls: 30,
    loaded_calls: 300,
    seconds: 5,
    stored: [10, 1000],
    growth_calls: 100,
};
const IN_FLIGHT: u32 = 32;
const STEPS: usize = 3;

pub fn run(request: &Request) -> Result<()> {
    let show = request.verbose;
    let counts = if request.quick { &QUICK } else { &FULL };
    let tools = Tools {
        load: workspace::outside("benches/load", show)?,
        ours: workspace::orchestr8("release", request)?,
        restate: node::packages(&node::RESTATE, show)?,
        dbos: python::interpreter(systems::DBOS_PINS, show)?,
        show,
    };
    // Beside the build, not in the folder for temporary files: that one is often in memory, where a flush is free.
    let folder = workspace::target()?.join("bench");
    std::fs::create_dir_all(&folder)?;
    let flush_us = disk::flush_us(&folder)?;
    let rounds = request.rounds.unwrap_or(counts.rounds);
    let mut samples: Vec<Vec<Value>> = vec![Vec::new(); systems::ALL.len()];
    for round in 0..rounds {
        for turn in 0..systems::ALL.len() {
            // The order turns around every round, so that no system always runs on the warmer machine.
            let at = if round % 2 == 0 { turn } else { systems::ALL.len() - 1 - turn };
            let system = systems::ALL[at];
            eprintln!("... round {} {}", round + 1, system.name());
            let data = tempfile::tempdir_in(&folder)?;
            let running = systems::start(system, &tools, data.path())?;
            samples[at].push(running.load(&tools.load, &arguments(counts), show)?);
        }
    }
    let points = growth::run(&tools, counts, rounds, &folder)?;
    let machine = json!({"cores": std::thread::available_parallelism()?.get(), "flush_us": flush_us});
    table::print(&samples, &points, &machine, &tools);
    if request.quick {
        println!("\nquick: so few calls show that everything runs, and say little about how fast");
    }
    let section = if request.quick { "workflows-quick" } else { "workflows" };
    keep(section, as_json(&samples, &points, machine, &tools))
}

/// Starts one of our servers in a folder and returns what the load client measured of it.
pub fn measure(
    load: &Path,
    binary: &Path,
    folder: &Path,
    checkpoint: bool,
    request: &Request,
) -> Result<Value> {
    let counts = if request.quick { &QUICK } else { &FULL };
    let running = systems::ours(binary, folder, "full", checkpoint)?;
    running.load(load, &arguments(counts), request.verbose)
}

fn arguments(counts: &Counts) -> Vec<(&'static str, u32)> {
    vec![
        ("--warm-up", counts.warm_up),
        ("--calls", counts.calls),
        ("--loaded-calls", counts.loaded_calls),
        ("--in-flight", IN_FLIGHT),
        ("--seconds", counts.seconds),
    ]
}

fn as_json(samples: &[Vec<Value>], points: &[growth::Point], machine: Value, tools: &Tools) -> Value {
    let row = |(system, rounds): (&System, &Vec<Value>)| {
        let mut row = json!({"system": system.name(), "version": system.version(tools), "rounds": rounds});
        row["settings"] = json!(system.settings());
        for column in table::COLUMNS {
            row[column.name] = json!(table::best(rounds, column.name));
        }
        row
    };
    let systems: Vec<Value> = systems::ALL.iter().zip(samples).map(row).collect();
    let growth: Vec<Value> = points.iter().map(growth::Point::as_json).collect();
    json!({"machine": machine, "systems": systems, "growth": growth})
}
