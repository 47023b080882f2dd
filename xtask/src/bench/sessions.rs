//! The session protocol over WebSockets, with the offline model: repeats, reads, the first piece of an answer, memory.
use super::{keep, short};
use crate::process;
use crate::{Request, workspace};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const ROUNDS: u32 = 3;
const LIMIT: Duration = Duration::from_secs(600);

/// Where a figure is in the load client's line, what the table calls it, and whether more of it is better.
const FIGURES: [(&str, &str, bool); 15] = [
    ("/replay/p50_us", "repeat, one at a time: p50 us", false),
    ("/replay/p95_us", "repeat, one at a time: p95 us", false),
    ("/replay/rate_per_s", "repeats/s on one socket", true),
    ("/replay/cpu_us", "CPU of a repeat, us", false),
    ("/read/p50_us", "get_state, one at a time: p50 us", false),
    ("/read/p95_us", "get_state, one at a time: p95 us", false),
    ("/read/rate_per_s", "get_state/s on one socket", true),
    ("/read/cpu_us", "CPU of a get_state, us", false),
    ("/over_many/replay_per_s", "repeats/s over 100 sockets", true),
    ("/over_many/read_per_s", "get_state/s over 100 sockets", true),
    ("/first_delta/p50_us", "prompt to first delta: p50 us", false),
    ("/first_delta/p95_us", "prompt to first delta: p95 us", false),
    ("/session_kb", "an idle session, KB", false),
    ("/socket_kb", "an idle socket, KB", false),
    ("/start_ms", "start to first word, ms", false),
];

/// Starts a server on an empty data directory and returns what the load client measured of it.
pub fn measure(load: &Path, binary: &Path, show: bool) -> Result<Value> {
    let data = tempfile::tempdir()?;
    let mut command = Command::new(load);
    command.args(["sessions", "--"]).arg(binary);
    command.args(["serve", "--listen", "{address}", "--data-dir"]).arg(data.path());
    for (name, value) in [
        ("SESSIONS_COMMANDS_PER_MINUTE", "1000000000"),
        ("SESSIONS_COMMANDS_PER_MINUTE_OVERALL", "1000000000"),
        ("SESSIONS_MAX_SESSIONS", "10000"),
        ("HTTP_MAX_CONNECTIONS", "1200"),
        ("LOGGING_LEVEL", "error"),
    ] {
        command.env(format!("ORCHESTR8_{name}"), value);
    }
    let done = process::run(&mut command, LIMIT, show)?.require("load on sessions")?;
    serde_json::from_str(done.stdout.trim()).context("the load client's line")
}

pub fn run(request: &Request) -> Result<()> {
    let load = workspace::outside("benches/load", request.verbose)?;
    let ours = workspace::orchestr8("release", request)?;
    let mut rounds = Vec::new();
    for round in 0..request.rounds.unwrap_or(ROUNDS) {
        eprintln!("... round {}", round + 1);
        let figures = measure(&load, &ours, request.verbose)?;
        rounds.push(figures);
    }
    let best = |place: &str, more: bool| {
        let values = rounds.iter().filter_map(|round| round.pointer(place)?.as_f64());
        values.reduce(if more { f64::max } else { f64::min }).unwrap_or(f64::NAN)
    };
    println!("\nsessions, best of the rounds");
    for (place, title, more) in FIGURES {
        println!("{title:<36} {:>12}", short(best(place, more)));
    }
    println!();
    let goals = [
        ("at least 50,000 repeats/s on one socket", best("/replay/rate_per_s", true) >= 50_000.0),
        ("a repeat within 50 us", best("/replay/p50_us", false) <= 50.0),
        ("at most 20 KB for an idle session", best("/session_kb", false) <= 20.0),
    ];
    for (goal, met) in goals {
        println!("{} {goal}", if met { "met   " } else { "missed" });
    }
    let rows: Vec<Value> = FIGURES
        .iter()
        .map(|(place, title, more)| json!({"name": title, "value": best(place, *more)}))
        .collect();
    keep("sessions", json!(rows))
}
