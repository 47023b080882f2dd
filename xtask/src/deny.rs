//! `cargo deny`: licences, sources, duplicates and known holes of our dependencies.
use crate::report::{Tally, Verdict, tail};
use crate::{Request, cargo_tools, process};
use anyhow::Result;
use std::time::Duration;

const VERSION: &str = "0.20.2";
const LIMIT: Duration = Duration::from_secs(600);
const SHOWN_LINES: usize = 200;

pub fn run(request: &Request) -> Result<bool> {
    let mut tally = Tally::default();
    // Apart, because only the second needs the network: its database of advisories is fetched each time.
    tally.stage("licences, sources, duplicates", || check(&["licenses", "sources", "bans"], request));
    tally.stage("advisories", || check(&["advisories"], request));
    Ok(tally.close())
}

fn check(what: &[&str], request: &Request) -> Result<Verdict> {
    let mut command = cargo_tools::command("deny", VERSION, request.verbose)?;
    command.args(["check", "--hide-inclusion-graph"]).args(what);
    let done = process::run(&mut command, LIMIT, request.verbose)?;
    let warnings = done.output.lines().filter(|line| line.starts_with("warning")).count();
    let mut verdict = Verdict::of(done.success, tail(&done.output, SHOWN_LINES));
    if warnings > 0 {
        verdict.note = format!("{warnings} warnings; --verbose shows them");
    }
    Ok(verdict)
}
