//! Every Rust test of the workspace: unit, property, simulation, integration, transcripts.
use crate::cargo_tools;
use crate::coverage::Probe;
use crate::process::{self, Finished};
use crate::report::{Tally, Verdict, tail};
use crate::workspace;
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

/// Long enough for a cold build and every test on a small machine.
pub const LIMIT: Duration = Duration::from_secs(2 * 3600);
const SHOWN_LINES: usize = 300;
const EXAMPLES: &str = "documentation examples";

/// Every test, and what the tests cover: one build and one run for both. Without LLVM's tools only the tests.
pub fn counted(tally: &mut Tally, show: bool) {
    let probe = match Probe::new(show) {
        Ok(probe) => probe,
        Err(reason) => {
            stages(tally, show);
            return tally.stage("coverage", || {
                Ok(Verdict { note: format!("not measured: {reason:#}"), ..Verdict::default() })
            });
        }
    };
    tally.stage("unit tests", || {
        let mut command = rust_tests(&["--workspace"], &[]);
        probe.attach(&mut command);
        run(&mut command, LIMIT, show)
    });
    tally.stage("coverage", || probe.verdict());
    // With the crates that are built already.
    let mut command = examples();
    probe.attach(&mut command);
    tally.stage(EXAMPLES, || run(&mut command, LIMIT, show));
}

/// What `cargo xtask test --quick` leaves out: tests that compute or wait for more than a second or so.
const QUICK: &str = "not (binary(simulation) or binary(bursts) or binary(crash) or test(model::) or test(kill) or test(random) \
     or (package(orchestr8) and kind(test) and not test(transcript)))";

/// The tests of a change that is being made: those that take no time.
pub fn quick(tally: &mut Tally, show: bool) {
    tally.stage("unit tests, the quick ones", || {
        run(&mut rust_tests(&["--workspace"], &["-E", QUICK]), LIMIT, show)
    });
}

/// Builds every test, so that the time of the build is told apart from the time of the tests.
pub fn build(tally: &mut Tally, show: bool) {
    tally.stage("build of all tests", || {
        let mut command = workspace::cargo(&["test", "--no-run", "--profile", workspace::TESTS, "--tests"]);
        select(&mut command, &["--workspace"]);
        process::run(&mut command, LIMIT, show)?.require("building the tests")?;
        Ok(Verdict::pass(""))
    });
}

pub fn stages(tally: &mut Tally, show: bool) {
    tally.stage("unit tests", || run(&mut rust_tests(&["--workspace"], &[]), LIMIT, show));
    tally.stage(EXAMPLES, || run(&mut examples(), LIMIT, show));
}

fn examples() -> Command {
    let mut command = workspace::cargo(&["test", "--doc", "--profile", workspace::TESTS]);
    select(&mut command, &["--workspace"]);
    command
}

/// Only the transcripts: what a client says and what we answer, word for word.
pub fn transcripts(tally: &mut Tally, show: bool) {
    tally.stage("transcripts", || {
        run(&mut rust_tests(&["--package", "orchestr8"], &["transcript"]), LIMIT, show)
    });
}

/// A test command for nextest where it is installed, for plain cargo elsewhere. What failed tests said is repeated at the end,
/// where it is still seen when thousands of lines came after it.
pub fn rust_tests(selection: &[&str], filter: &[&str]) -> Command {
    let head: &[&str] = if cargo_tools::has("nextest") {
        &[
            "nextest",
            "run",
            "--no-fail-fast",
            "--failure-output=immediate-final",
            "--cargo-profile",
            workspace::TESTS,
        ]
    } else {
        &["test", "--no-fail-fast", "--profile", workspace::TESTS, "--tests"]
    };
    let mut command = workspace::cargo(head);
    select(&mut command, selection);
    command.args(filter);
    command
}

/// Of which crates; where the program is among them, it is built as for a run.
pub fn select(command: &mut Command, selection: &[&str]) {
    command.args(selection);
    if selection.iter().any(|word| ["--workspace", "orchestr8"].contains(word)) {
        command.args(workspace::AS_TESTED);
    }
}

pub fn run(command: &mut Command, limit: Duration, show: bool) -> Result<Verdict> {
    Ok(verdict(process::run(command, limit, show)?))
}

fn verdict(done: Finished) -> Verdict {
    let (passed, mut failed) = count(&done.output);
    if !done.success && failed == 0 {
        failed = 1;
    }
    let mut detail = tail(&done.output, SHOWN_LINES);
    if done.timed_out {
        detail.push_str("\nthe tests took too long and were ended");
    }
    let flaky = flaky(&done.output);
    let note = match flaky.is_empty() {
        true => format!("{passed} passed"),
        false => format!("{passed} passed; FLAKY, passed when repeated: {}", flaky.join(", ")),
    };
    Verdict { passed, failed, note, detail }
}

/// The tests that failed and then passed (`FLAKY 2/2 [   0.2s] crate::it name`).
fn flaky(output: &str) -> Vec<&str> {
    let mut names: Vec<&str> = output
        .lines()
        .filter_map(|line| line.trim().strip_prefix("FLAKY ")?.rsplit_once(' ').map(|(_, name)| name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Adds up the summary lines of nextest (`Summary [..] 5 tests run: 4 passed, 1 failed, 0 skipped`)
/// and of cargo's own harness (`test result: ok. 4 passed; 1 failed; …`), which under nextest only repeats what one failed test said.
fn count(output: &str) -> (usize, usize) {
    let (mut passed, mut failed) = (0, 0);
    let is_nextest = output.lines().any(|line| line.trim().starts_with("Summary ["));
    for line in output.lines() {
        let line = line.trim();
        let counts = if let Some(rest) = line.strip_prefix("test result:").filter(|_| !is_nextest) {
            rest
        } else if line.starts_with("Summary [") {
            line.split_once(" run:").map_or("", |(_, rest)| rest)
        } else {
            continue;
        };
        passed += number_before(counts, "passed");
        failed += number_before(counts, "failed") + number_before(counts, "timed out");
    }
    (passed, failed)
}

fn number_before(text: &str, word: &str) -> usize {
    let Some((before, _)) = text.split_once(word) else { return 0 };
    before.split_whitespace().next_back().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{count, flaky};

    #[test]
    fn flaky_tests_are_named_once() {
        let line = "   FLAKY 2/2 [   0.300s] (3/7) orchestr8::it stdio::a_call";
        assert_eq!(flaky(&format!("{line}\n PASS [ 0.1s] x y\n{line}\n")), ["stdio::a_call"]);
    }

    #[test]
    fn reads_the_summary_of_nextest() {
        let output =
            "     Summary [   0.036s] 7 tests run: 4 passed (1 slow), 2 failed, 1 timed out, 3 skipped";
        assert_eq!(count(output), (4, 3));
    }

    #[test]
    fn what_a_failed_test_said_of_itself_is_not_counted_again() {
        let output = "test result: FAILED. 0 passed; 1 failed; 0 ignored\nSummary [ 0.1s] 3 tests run: 2 passed, 1 failed, 0 skipped";
        assert_eq!(count(output), (2, 1));
    }

    #[test]
    fn adds_the_summaries_of_cargo_test() {
        let output = "test result: ok. 4 passed; 0 failed; 0 ignored\ntest result: FAILED. 1 passed; 2 failed; 0 ignored";
        assert_eq!(count(output), (5, 2));
    }

    #[test]
    fn a_test_name_is_not_a_summary() {
        assert_eq!(count("PASS [ 0.1s] kernel 3 passed"), (0, 0));
    }
}
