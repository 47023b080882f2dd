//! Durable requests and answers between two agents: ours beside NATS JetStream that flushes every message, in one run.
use super::workflows::disk;
use super::{keep, short};
use crate::server::{Service, free_port};
use crate::{Request, process, python, workspace};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const ROUNDS: u32 = 3;
const LIMIT: Duration = Duration::from_secs(600);
const NATS_PINS: &str = "benches/nats/requirements.txt";
const IN_FLIGHT: &str = "64";

#[derive(Clone, Copy)]
enum System {
    Ours,
    Nats,
}

const ALL: [System; 2] = [System::Ours, System::Nats];

/// Where a figure is in the load client's line, what the table calls it, and whether more of it is better.
const FIGURES: [(&str, &str, bool); 8] = [
    ("alone_per_s", "pairs/s, one at a time", true),
    ("p50_us", "one at a time: p50 us", false),
    ("p95_us", "one at a time: p95 us", false),
    ("rate_per_s", "pairs/s, 64 in flight", true),
    ("loaded_p50_us", "64 in flight: p50 us", false),
    ("loaded_p95_us", "64 in flight: p95 us", false),
    ("cpu_us", "CPU of the server per pair, us", false),
    ("loaded_mb", "memory under load, MB", false),
];

impl System {
    fn name(self) -> &'static str {
        match self {
            System::Ours => "ours",
            System::Nats => "nats",
        }
    }

    fn start(self, folder: &Path, ours: &Path, nats: &Path) -> Result<(Service, u16)> {
        let port = free_port()?;
        let service = match self {
            System::Ours => {
                let mut command = Command::new(ours);
                command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]);
                command.arg(folder.join("data")).env("ORCHESTR8_LOGGING_LEVEL", "error");
                Service::start("orchestr8", command, folder)?.ready(port, "/readyz")?
            }
            System::Nats => {
                let look = free_port()?;
                let config = folder.join("nats.conf");
                let store = folder.join("jetstream");
                let text = format!(
                    "listen: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{look}\"\n\
                     jetstream {{ store_dir: \"{}\", sync_interval: always }}\n",
                    store.display()
                );
                std::fs::write(&config, text)?;
                let mut command = Command::new(nats);
                command.arg("-c").arg(&config);
                Service::start("nats", command, folder)?.ready(look, "/healthz")?
            }
        };
        Ok((service, port))
    }

    fn load(self, load: &Path, service: &Service, port: u16, request: &Request) -> Result<Value> {
        let counts = if request.quick { ["20", "30", "300", "5"] } else { ["2000", "2000", "30000", "20"] };
        let mut command = Command::new(load);
        command.args(["pairs", self.name(), "--address", &format!("127.0.0.1:{port}")]);
        command.args(["--process", &service.id().to_string(), "--in-flight", IN_FLIGHT]);
        for (flag, count) in ["--warm-up", "--calls", "--loaded-calls", "--seconds"].iter().zip(counts) {
            command.args([*flag, count]);
        }
        let done = process::run(&mut command, LIMIT, request.verbose)?;
        let done = done.require("load").with_context(|| service.log())?;
        serde_json::from_str(done.stdout.trim()).context("the load client's line")
    }
}

/// Starts one of our servers in a folder and returns what the load client measured of it.
pub fn measure(load: &Path, binary: &Path, folder: &Path, request: &Request) -> Result<Value> {
    let (service, port) = System::Ours.start(folder, binary, Path::new(""))?;
    System::Ours.load(load, &service, port, request)
}

pub fn run(request: &Request) -> Result<()> {
    let load = workspace::outside("benches/load", request.verbose)?;
    let ours = workspace::orchestr8("release", request)?;
    let nats = python::interpreter(NATS_PINS, request.verbose)?.with_file_name("nats-server");
    // Beside the build, not in the folder for temporary files: that one is often in memory, where a flush is free.
    let folder = workspace::target()?.join("bench");
    std::fs::create_dir_all(&folder)?;
    let flush_us = disk::flush_us(&folder)?;
    let mut samples: [Vec<Value>; 2] = Default::default();
    for round in 0..request.rounds.unwrap_or(if request.quick { 1 } else { ROUNDS }) {
        for turn in 0..ALL.len() {
            // The order turns around every round, so that no system always runs on the warmer machine.
            let at = if round % 2 == 0 { turn } else { ALL.len() - 1 - turn };
            eprintln!("... round {} {}", round + 1, ALL[at].name());
            let data = tempfile::tempdir_in(&folder)?;
            let (service, port) = ALL[at].start(data.path(), &ours, &nats)?;
            samples[at].push(ALL[at].load(&load, &service, port, request)?);
        }
    }
    tell(&samples, flush_us, request.quick)
}

fn tell(samples: &[Vec<Value>; 2], flush_us: f64, quick: bool) -> Result<()> {
    let best = |at: usize, name: &str, more: bool| {
        let values = samples[at].iter().filter_map(|round| round[name].as_f64());
        values.reduce(if more { f64::max } else { f64::min }).unwrap_or(f64::NAN)
    };
    println!("\nmessages, best of the rounds; a flush takes {} us here", short(flush_us));
    println!("{:<34} {:>12} {:>12}", "", "ours", "JetStream");
    for (name, title, more) in FIGURES {
        println!("{title:<34} {:>12} {:>12}", short(best(0, name, more)), short(best(1, name, more)));
    }
    println!();
    let goals = [
        ("ahead with one at a time", best(0, "alone_per_s", true) >= best(1, "alone_per_s", true)),
        ("ahead with 64 in flight", best(0, "rate_per_s", true) >= best(1, "rate_per_s", true)),
    ];
    for (goal, met) in goals {
        println!("{} {goal}", if met { "met   " } else { "missed" });
    }
    let row = |at: usize| -> Value {
        let figures: serde_json::Map<String, Value> = FIGURES
            .iter()
            .map(|(name, _, more)| ((*name).to_owned(), json!(best(at, name, *more))))
            .collect();
        figures.into()
    };
    let section = if quick { "messages-quick" } else { "messages" };
    keep(section, json!({"flush_us": flush_us, "ours": row(0), "nats": row(1), "rounds": samples}))
}
