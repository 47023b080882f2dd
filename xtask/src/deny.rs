//! `cargo deny`: licences, advisories, duplicates and sources of our dependencies.
use crate::Request;
use crate::cargo_tools;
use crate::process;
use anyhow::Result;
use std::time::Duration;

const VERSION: &str = "0.20.2";
const LIMIT: Duration = Duration::from_secs(600);

pub fn run(request: &Request) -> Result<bool> {
    let mut command = cargo_tools::command("deny", VERSION, request.verbose)?;
    command.args(["--all-features", "check", "--hide-inclusion-graph"]);
    Ok(process::run(&mut command, LIMIT, true)?.success)
}
