//! Line coverage per library crate, and the floors we promise.
use crate::Request;
use crate::cargo_tools;
use crate::process;
use crate::workspace;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const VERSION: &str = "0.9.1";
const LIMIT: Duration = Duration::from_secs(2 * 3600);
const INSTALL_LIMIT: Duration = Duration::from_secs(600);
const QUICK: Duration = Duration::from_secs(30);
const FLOOR_PERCENT: f64 = 80.0;
const KERNEL_FLOOR_PERCENT: f64 = 90.0;

/// Of the whole workspace, or of these crates by their own tests.
pub fn run(crates: &[&str], request: &Request) -> Result<bool> {
    let packages: Vec<String> = crates.iter().map(|folder| package(folder)).collect::<Result<_>>()?;
    let mut command = cargo_tools::command("llvm-cov", VERSION, request.verbose)?;
    if !has_llvm_tools() && !add_llvm_tools(request.verbose) {
        let (cov, profdata) = system_llvm_tools()?;
        command.env("LLVM_COV", cov).env("LLVM_PROFDATA", profdata);
    }
    // Instrumented code is slow, and the thousandth seed covers no new line.
    command.envs([("O8_SEEDS", "200"), ("O8_KILL_CYCLES", "5"), ("PROPTEST_CASES", "100")]);
    let report = tempfile::NamedTempFile::new()?;
    match packages.is_empty() {
        true => command.args(["--workspace", "--exclude", "xtask"]),
        false => command.args(packages.iter().flat_map(|package| ["--package", package])),
    };
    command.args(["--profile", "ci", "--json", "--output-path"]).arg(report.path());
    process::run(&mut command, LIMIT, request.verbose)?.require("cargo llvm-cov")?;
    let text = std::fs::read_to_string(report.path()).context("the coverage report")?;
    let mut covered = by_crate(&serde_json::from_str(&text).context("the coverage report")?);
    covered.retain(|name, _| crates.is_empty() || crates.contains(&name.as_str()));
    Ok(print(&covered))
}

/// What the crate in this folder is called.
fn package(folder: &str) -> Result<String> {
    let manifest = workspace::root().join("crates").join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).with_context(|| format!("there is no crate {folder}"))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.map(str::to_owned).with_context(|| format!("{} names no package", manifest.display()))
}

/// Lines seen and lines in all, per crate.
fn by_crate(report: &Value) -> BTreeMap<String, (u64, u64)> {
    let mut crates: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for file in report["data"][0]["files"].as_array().into_iter().flatten() {
        let Some(name) = file["filename"].as_str().and_then(crate_of) else { continue };
        let lines = &file["summary"]["lines"];
        let entry = crates.entry(name).or_default();
        entry.0 += lines["covered"].as_u64().unwrap_or(0);
        entry.1 += lines["count"].as_u64().unwrap_or(0);
    }
    crates
}

/// `…/crates/faces/mcp/src/wire.rs` belongs to `faces/mcp`; tests and benches belong to nobody.
fn crate_of(path: &str) -> Option<String> {
    let (_, inside) = path.rsplit_once("/crates/")?;
    let (name, file) = inside.split_once("/src/")?;
    let is_test = file == "tests.rs" || file.ends_with("/tests.rs") || file.contains("/tests/");
    (!is_test).then(|| name.to_owned())
}

fn print(covered: &BTreeMap<String, (u64, u64)>) -> bool {
    let mut good = !covered.is_empty();
    println!("{:<16} {:>8} {:>8}   lines", "crate", "covered", "floor");
    for (name, (seen, all)) in covered {
        let percent = *seen as f64 * 100.0 / (*all).max(1) as f64;
        let floor = match name.as_str() {
            // The app is mostly driven from outside, and what only tests use needs no tests of its own.
            "app" | "testing" => None,
            "kernel" => Some(KERNEL_FLOOR_PERCENT),
            _ => Some(FLOOR_PERCENT),
        };
        let below = floor.is_some_and(|floor| percent < floor);
        good &= !below;
        let floor = floor.map_or("-".to_owned(), |floor| format!("{floor:.0} %"));
        let word = if below { "   BELOW" } else { "" };
        println!("{name:<16} {percent:>6.1} % {floor:>8}   {seen}/{all}{word}");
    }
    good
}

/// True when rustup's own llvm-tools are installed; cargo-llvm-cov then finds them by itself.
fn has_llvm_tools() -> bool {
    let Ok(done) = process::run(&mut rustc(&["--print", "sysroot"]), QUICK, false) else { return false };
    let rustlib = Path::new(done.stdout.trim()).join("lib/rustlib");
    let hosts = std::fs::read_dir(rustlib).into_iter().flatten().filter_map(Result::ok);
    hosts.map(|host| host.path().join("bin/llvm-profdata")).any(|tool| tool.exists())
}

/// Asks rustup for them; a machine whose Rust came another way has no rustup.
fn add_llvm_tools(show: bool) -> bool {
    let mut command = Command::new("rustup");
    command.args(["component", "add", "llvm-tools"]).current_dir(workspace::root());
    process::run(&mut command, INSTALL_LIMIT, show).is_ok_and(|done| done.success) && has_llvm_tools()
}

/// Other llvm tools will do, if they are at least as new as the compiler's LLVM.
fn system_llvm_tools() -> Result<(PathBuf, PathBuf)> {
    let rustc = process::run(&mut rustc(&["-vV"]), QUICK, false)?;
    let wanted = major(&rustc.stdout, "LLVM version:").context("rustc does not say which LLVM it has")?;
    let newest_first =
        (wanted..wanted + 4).rev().map(|major| PathBuf::from(format!("/usr/lib/llvm-{major}/bin")));
    for folder in newest_first.chain([PathBuf::from("/usr/bin")]) {
        let (cov, profdata) = (folder.join("llvm-cov"), folder.join("llvm-profdata"));
        let shown = process::run(Command::new(&cov).arg("--version"), QUICK, false);
        let version = shown.ok().and_then(|done| major(&done.stdout, "LLVM version"));
        if version.is_some_and(|version| version >= wanted) && profdata.exists() {
            return Ok((cov, profdata));
        }
    }
    bail!(
        "coverage needs LLVM {wanted} tools: rustup component add llvm-tools (or apt install llvm-{wanted})"
    )
}

fn rustc(args: &[&str]) -> Command {
    let mut command = Command::new("rustc");
    command.args(args).current_dir(workspace::root());
    command
}

fn major(text: &str, label: &str) -> Option<u32> {
    let (_, rest) = text.split_once(label)?;
    rest.trim_start().split('.').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{by_crate, crate_of, major, print};
    use serde_json::json;

    #[test]
    fn files_are_added_up_per_crate() {
        let file = |name: &str, covered: u64| json!({"filename": format!("/x/crates/{name}"), "summary": {"lines": {"covered": covered, "count": 10}}});
        let files = [file("kernel/src/a.rs", 9), file("kernel/src/b/c.rs", 10), file("app/tests/it/d.rs", 0)];
        let covered = by_crate(&json!({"data": [{"files": files}]}));
        assert_eq!(covered.into_iter().collect::<Vec<_>>(), [("kernel".to_owned(), (19, 20))]);
        assert_eq!(crate_of("/x/crates/faces/mcp/src/wire.rs").as_deref(), Some("faces/mcp"));
        assert_eq!(crate_of("/x/crates/kernel/src/ledger/tests.rs"), None);
    }

    #[test]
    fn the_kernel_has_a_higher_floor_and_nothing_measured_is_not_good() {
        let one = |name: &str, seen: u64| [(name.to_owned(), (seen, 100))].into();
        assert!(print(&one("tools", 85)));
        assert!(!print(&one("kernel", 85)));
        assert!(!print(&std::collections::BTreeMap::new()));
    }

    #[test]
    fn a_crate_is_found_by_its_folder() {
        assert_eq!(super::package("faces/mcp").unwrap(), "orchestr8-mcp");
        assert!(super::package("no-such-crate").is_err());
    }

    #[test]
    fn llvm_versions_are_read_from_both_tools() {
        assert_eq!(major("LLVM version: 22.1.2\n", "LLVM version:"), Some(22));
        assert_eq!(major("Debian LLVM version 14.0.6\n", "LLVM version"), Some(14));
    }
}
