//! Formatting and clippy, with warnings denied.
use crate::process;
use crate::report::{Tally, Verdict, tail};
use crate::workspace::{self, BUILD_LIMIT};
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

const FORMAT_LIMIT: Duration = Duration::from_secs(300);
const SHOWN_LINES: usize = 200;

/// Crates with their own lock file; `cargo fmt --all` does not see them.
pub const OUTSIDE: [&str; 3] = ["benches/load", "benches/rmcp-echo", "conformance/interop/rmcp-client"];

pub fn stages(tally: &mut Tally, show: bool) {
    format_stage(tally, show);
    clippy_stage(tally, show);
}

pub fn format_stage(tally: &mut Tally, show: bool) {
    tally.stage("format", || format(show));
}

pub fn clippy_stage(tally: &mut Tally, show: bool) {
    tally.stage("clippy", || {
        // The profile and the features the tests use, so that build scripts (SQLite's C code above all) run once, not twice.
        let profile = ["--profile", workspace::TESTS];
        let mut command = workspace::cargo(&["clippy", "--workspace", "--all-targets"]);
        command.args(profile).args(workspace::AS_TESTED).args(["--", "-D", "warnings"]);
        verdict(&mut command, BUILD_LIMIT, show)
    });
}

fn format(show: bool) -> Result<Verdict> {
    let mut detail = String::new();
    let mut commands = vec![workspace::cargo(&["fmt", "--all", "--check"])];
    for folder in OUTSIDE {
        let manifest = workspace::root().join(folder).join("Cargo.toml");
        let mut command = workspace::cargo(&["fmt", "--check", "--manifest-path"]);
        command.arg(manifest);
        commands.push(command);
    }
    for command in &mut commands {
        detail.push_str(&verdict(command, FORMAT_LIMIT, show)?.detail);
    }
    Ok(Verdict::of(detail.is_empty(), detail))
}

fn verdict(command: &mut Command, limit: Duration, show: bool) -> Result<Verdict> {
    let done = process::run(command, limit, show)?;
    let output = if done.output.is_empty() { "failed without a word".to_owned() } else { done.output };
    Ok(Verdict::of(done.success, tail(&output, SHOWN_LINES)))
}
