//! Calls a server many times, an MCP server's `echo` tool or any path, and prints one JSON line of what that cost.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a measuring tool: it reads the wall clock and prints what it saw"
)]

mod apart;
mod ending;
mod floor;
mod http;
mod measure;
mod message;
mod pairs;
mod post;
mod retrieval;
mod sessions;
mod stdio;
mod usage;
mod ws;

use message::Era;
use std::process::ExitCode;

const USAGE: &str = "\
usage: load stdio [options] -- COMMAND...
       load http  [options] -- COMMAND...   {address} in COMMAND becomes 127.0.0.1 and a free port
       load floor ADDRESS                   is itself a server, that does the least a server can do for a call over HTTP
       load post  [options]                 calls a server that already runs; without options it says which there are
       load pairs ours|nats [options]       requests and answers between two parties; without options it says which there are
       load retrieval [options]             how well a server finds what answers questions; without options it says which there are
       load sessions [options] -- COMMAND...  commands of the session protocol; without options it says which there are

  --era legacy|modern   protocol generation (default legacy)
  --warm-up N           calls before anything is measured (default 500)
  --calls N             calls one after another (default 2000)
  --loaded-calls N      calls with several in flight (default 50000)
  --in-flight N         how many (default 10)";

/// What to do, as the command line says it.
pub struct Plan {
    pub era: Era,
    pub warm_up: usize,
    pub calls: usize,
    pub loaded_calls: usize,
    pub in_flight: usize,
    pub command: Vec<String>,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let transport = args.next().unwrap_or_default();
    let outcome = match transport.as_str() {
        "stdio" => parse(args).and_then(|plan| stdio::run(&plan)),
        "http" => parse(args).and_then(|plan| http::run(&plan)),
        "floor" => floor::run(args),
        "post" => post::run(args),
        "pairs" => pairs::run(args),
        "retrieval" => retrieval::run(args),
        "sessions" => sessions::run(args),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("load: {message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Plan, String> {
    let mut plan = Plan {
        era: Era::Legacy,
        warm_up: 500,
        calls: 2000,
        loaded_calls: 50_000,
        in_flight: 10,
        command: vec![],
    };
    while let Some(flag) = args.next() {
        if flag == "--" {
            plan.command = args.collect();
            break;
        }
        let value = args.next().ok_or_else(|| format!("{flag} needs a value\n{USAGE}"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag.as_str() {
            "--era" if value == "legacy" => plan.era = Era::Legacy,
            "--era" if value == "modern" => plan.era = Era::Modern,
            "--warm-up" => plan.warm_up = number()?,
            "--calls" => plan.calls = number()?,
            "--loaded-calls" => plan.loaded_calls = number()?,
            "--in-flight" => plan.in_flight = number()?,
            _ => return Err(format!("{flag} {value}: unknown\n{USAGE}")),
        }
    }
    if plan.command.is_empty() { Err(USAGE.to_owned()) } else { Ok(plan) }
}
