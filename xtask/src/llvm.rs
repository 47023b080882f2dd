//! The LLVM tools that read what instrumented programs have counted: rustup's own, or the system's.
use crate::process;
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const INSTALL_LIMIT: Duration = Duration::from_secs(600);
const QUICK: Duration = Duration::from_secs(30);

/// Where the two tools are that we need.
#[derive(Debug, Clone)]
pub struct Tools {
    pub cov: PathBuf,
    pub profdata: PathBuf,
}

impl Tools {
    fn within(folder: &Path) -> Option<Tools> {
        let tools = Tools { cov: folder.join("llvm-cov"), profdata: folder.join("llvm-profdata") };
        (tools.cov.exists() && tools.profdata.exists()).then_some(tools)
    }
}

/// Those of the compiler, which are asked for if they are missing, or else new enough ones of the system.
pub fn tools(show: bool) -> Result<Tools> {
    match of_compiler() {
        Some(tools) => Ok(tools),
        None => added(show).map_or_else(of_system, Ok),
    }
}

fn of_compiler() -> Option<Tools> {
    let done = process::run(&mut workspace::rustc(&["--print", "sysroot"]), QUICK, false).ok()?;
    let rustlib = Path::new(done.stdout.trim()).join("lib/rustlib");
    let hosts = std::fs::read_dir(rustlib).into_iter().flatten().filter_map(Result::ok);
    hosts.map(|host| host.path().join("bin")).find_map(|folder| Tools::within(&folder))
}

/// Asks rustup for them; a machine whose Rust came another way has no rustup.
fn added(show: bool) -> Option<Tools> {
    let mut command = Command::new("rustup");
    command.args(["component", "add", "llvm-tools"]).current_dir(workspace::root());
    process::run(&mut command, INSTALL_LIMIT, show).ok().filter(|done| done.success)?;
    of_compiler()
}

/// Other LLVM tools will do, if they are at least as new as the compiler's LLVM.
fn of_system() -> Result<Tools> {
    let rustc = process::run(&mut workspace::rustc(&["-vV"]), QUICK, false)?;
    let wanted = major(&rustc.stdout, "LLVM version:").context("rustc does not say which LLVM it has")?;
    let newest_first =
        (wanted..wanted + 4).rev().map(|major| PathBuf::from(format!("/usr/lib/llvm-{major}/bin")));
    for tools in newest_first.chain([PathBuf::from("/usr/bin")]).filter_map(|folder| Tools::within(&folder)) {
        let shown = process::run(Command::new(&tools.cov).arg("--version"), QUICK, false);
        let version = shown.ok().and_then(|done| major(&done.stdout, "LLVM version"));
        if version.is_some_and(|version| version >= wanted) {
            return Ok(tools);
        }
    }
    bail!("LLVM {wanted} tools are missing: rustup component add llvm-tools (or apt install llvm-{wanted})")
}

fn major(text: &str, label: &str) -> Option<u32> {
    let (_, rest) = text.split_once(label)?;
    rest.trim_start().split('.').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn llvm_versions_are_read_from_both_tools() {
        assert_eq!(major("LLVM version: 22.1.2\n", "LLVM version:"), Some(22));
        assert_eq!(major("Debian LLVM version 14.0.6\n", "LLVM version"), Some(14));
    }
}
