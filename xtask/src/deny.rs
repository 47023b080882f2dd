//! `cargo deny`: licences, sources, duplicates and known holes of our dependencies.
use crate::report::{Tally, Verdict, tail};
use crate::{Request, cargo_tools, process};
use anyhow::Result;
use std::time::Duration;

const VERSION: &str = "0.20.2";
const LIMIT: Duration = Duration::from_secs(600);
const FETCH_LIMIT: Duration = Duration::from_secs(120);
const SKIPPED: &str = "SKIPPED: their database cannot be fetched from here; known holes were NOT looked for";
const SHOWN_LINES: usize = 200;

pub fn run(request: &Request) -> Result<bool> {
    let mut tally = Tally::default();
    // Apart, because only the second needs the network: its database of advisories is fetched each time.
    tally.stage("licences, sources, duplicates", || check(&["licenses", "sources", "bans"], request));
    tally.stage("advisories", || match is_fetched(request)? {
        true => check(&["--disable-fetch", "advisories"], request),
        // What cannot be looked up is no finding; whoever reads this must know that nobody has looked.
        false => Ok(Verdict { note: SKIPPED.to_owned(), ..Verdict::default() }),
    });
    Ok(tally.close())
}

/// Whether the newest advisories are here now.
fn is_fetched(request: &Request) -> Result<bool> {
    let mut command = cargo_tools::command("deny", VERSION, request.verbose)?;
    command.args(["fetch", "db"]);
    Ok(process::run(&mut command, FETCH_LIMIT, request.verbose)?.success)
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
