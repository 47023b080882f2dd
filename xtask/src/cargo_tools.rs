//! Cargo subcommands that are not part of Rust, installed into the cache when the machine lacks them.
use crate::process;
use crate::workspace::{self, BUILD_LIMIT};
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const QUICK: Duration = Duration::from_secs(30);

/// True when `cargo <name>` works on this machine.
pub fn has(name: &str) -> bool {
    process::run(&mut workspace::cargo(&[name, "--version"]), QUICK, false).is_ok_and(|done| done.success)
}

/// A command that runs `cargo-<name> <name>`, installing the pinned version first if needed.
pub fn command(name: &str, version: &str, show: bool) -> Result<Command> {
    if has(name) {
        return Ok(workspace::cargo(&[name]));
    }
    let home = workspace::cache()?.join("cargo").join(format!("{name}-{version}"));
    let binary: PathBuf = home.join("bin").join(format!("cargo-{name}"));
    if !binary.exists() {
        let package = format!("cargo-{name}");
        let mut install = workspace::cargo(&["install", "--locked", "--version", version, "--root"]);
        install.arg(&home).arg(&package);
        process::run(&mut install, BUILD_LIMIT, show)?.require(&format!("installing {package}"))?;
    }
    let mut command = Command::new(binary);
    command.arg(name).current_dir(workspace::root());
    Ok(command)
}
