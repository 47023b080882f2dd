//! Line coverage per library crate, and the floors we promise.
//!
//! The tests that count are the tests of `cargo xtask test`: our own crates are compiled with counters, once, and what they
//! count is read afterwards. Only our own: what others wrote is built as always and shared with every other build.
use crate::Request;
use crate::llvm::{self, Tools};
use crate::process;
use crate::report::Verdict;
use crate::unit;
use crate::workspace;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const READ_LIMIT: Duration = Duration::from_secs(600);
const FLOOR_PERCENT: f64 = 80.0;
const KERNEL_FLOOR_PERCENT: f64 = 90.0;
/// Set for cargo, which then starts this program in place of the compiler.
const STAND_IN: &str = "XTASK_STANDS_IN_FOR_RUSTC";
/// Programs of one build share this many files of counts, however many of them run.
const POOL: usize = 4;

/// Lines seen and lines in all, per crate.
type Covered = BTreeMap<String, (u64, u64)>;

/// Of the whole workspace, or of these crates by their own tests.
pub fn run(crates: &[&str], request: &Request) -> Result<bool> {
    let packages: Vec<String> = crates.iter().map(|folder| package(folder)).collect::<Result<_>>()?;
    let mut selection: Vec<&str> = packages.iter().flat_map(|package| ["--package", package]).collect();
    if selection.is_empty() {
        selection = vec!["--workspace", "--exclude", "xtask"];
    }
    let probe = Probe::new(request.verbose)?;
    let mut command = unit::rust_tests(&selection, &[]);
    // Instrumented code is slow, and the thousandth seed covers no new line.
    command.envs([("O8_SEEDS", "200"), ("O8_KILL_CYCLES", "5"), ("PROPTEST_CASES", "100")]);
    probe.attach(&mut command);
    process::run(&mut command, unit::LIMIT, request.verbose)?.require("the tests")?;
    let mut covered = probe.read(&selection)?;
    covered.retain(|name, _| crates.is_empty() || crates.contains(&name.as_str()));
    let (table, good) = judge(&covered);
    println!("{table}");
    Ok(good)
}

/// What a run of tests needs to be counted, and reads the counts after it.
pub struct Probe {
    tools: Tools,
    counts: tempfile::TempDir,
}

impl Probe {
    pub fn new(show: bool) -> Result<Probe> {
        Ok(Probe { tools: llvm::tools(show)?, counts: tempfile::tempdir()? })
    }

    /// Makes a cargo command build with counters and its programs leave their counts.
    pub fn attach(&self, command: &mut Command) {
        let counts = self.counts.path().join(format!("%{POOL}m.profraw"));
        if let Ok(own) = std::env::current_exe() {
            command.env("RUSTC_WORKSPACE_WRAPPER", own).env(STAND_IN, "1");
        }
        command.env("LLVM_PROFILE_FILE", counts);
    }

    /// The verdict on what the tests of the whole workspace have covered.
    pub fn verdict(&self) -> Result<Verdict> {
        let covered = self.read(&["--workspace"])?;
        let (table, good) = judge(&covered);
        let (seen, all) = covered.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let note = format!("{:.1} % of {all} lines in {} crates", percent(seen, all), covered.len());
        Ok(Verdict { note, ..Verdict::of(good, table) })
    }

    fn read(&self, selection: &[&str]) -> Result<Covered> {
        let merged = self.counts.path().join("all.profdata");
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.counts.path())? {
            let path = entry?.path();
            files.extend(path.extension().is_some_and(|ending| ending == "profraw").then_some(path));
        }
        let mut merge = Command::new(&self.tools.profdata);
        merge.args(["merge", "-sparse", "-o"]).arg(&merged).args(files);
        process::run(&mut merge, READ_LIMIT, false)?.require("llvm-profdata")?;
        let mut export = Command::new(&self.tools.cov);
        export.args(["export", "-summary-only", "-instr-profile"]).arg(&merged);
        for program in self.programs(selection)? {
            export.arg("-object").arg(program);
        }
        let done = process::run(&mut export, READ_LIMIT, false)?.require("llvm-cov")?;
        Ok(by_crate(&serde_json::from_str(&done.stdout).context("the coverage report")?))
    }

    /// What cargo built for the tests: it builds nothing again, and says where everything is.
    fn programs(&self, selection: &[&str]) -> Result<Vec<PathBuf>> {
        let mut command = workspace::cargo(&["test", "--no-run", "--profile", workspace::TESTS, "--tests"]);
        unit::select(&mut command, selection);
        command.arg("--message-format=json");
        self.attach(&mut command);
        let done = process::run(&mut command, unit::LIMIT, false)?.require("cargo test --no-run")?;
        let messages = done.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(messages.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?))).collect())
    }
}

/// True when cargo has started us in place of the compiler.
pub fn stands_in() -> bool {
    std::env::var_os(STAND_IN).is_some()
}

/// Becomes the compiler that cargo asked for, with counters. Returns only if that fails.
pub fn become_rustc(mut args: impl Iterator<Item = std::ffi::OsString>) -> std::io::Error {
    let rustc = args.next().unwrap_or_default();
    Command::new(rustc).args(args).arg("-Cinstrument-coverage").exec()
}

/// What the crate in this folder is called.
fn package(folder: &str) -> Result<String> {
    let manifest = workspace::root().join("crates").join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).with_context(|| format!("there is no crate {folder}"))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.map(str::to_owned).with_context(|| format!("{} names no package", manifest.display()))
}

fn by_crate(report: &Value) -> Covered {
    let mut crates = Covered::new();
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

/// The table that people read, and whether every crate is above its floor.
fn judge(covered: &Covered) -> (String, bool) {
    let mut good = !covered.is_empty();
    let mut table = format!("{:<16} {:>8} {:>8}   lines", "crate", "covered", "floor");
    for (name, (seen, all)) in covered {
        let percent = percent(*seen, *all);
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
        table.push_str(&format!("\n{name:<16} {percent:>6.1} % {floor:>8}   {seen}/{all}{word}"));
    }
    (table, good)
}

fn percent(seen: u64, all: u64) -> f64 {
    seen as f64 * 100.0 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::{Covered, by_crate, crate_of, judge};
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
        assert!(judge(&one("tools", 85)).1);
        assert!(!judge(&one("kernel", 85)).1);
        assert!(!judge(&Covered::new()).1);
    }

    #[test]
    fn a_crate_is_found_by_its_folder() {
        assert_eq!(super::package("faces/mcp").unwrap(), "orchestr8-mcp");
        assert!(super::package("no-such-crate").is_err());
    }
}
