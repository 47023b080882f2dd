//! The public MCP conformance suite, both generations, against our own server.
use crate::node::{self, Packages};
use crate::process;
use crate::report::{Tally, Verdict, tail};
use crate::server::Server;
use crate::{Request, workspace};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);
const SHOWN_CHARS: usize = 600;
const SHOWN_LINES: usize = 60;

struct Suite {
    name: &'static str,
    package: &'static str,
    args: &'static [&'static str],
    /// How many checks must be made; fewer means that something silently did not run.
    checks: usize,
}

const SUITES: [Suite; 3] = [
    Suite {
        name: "conformance 0.1.16, everything",
        package: "conformance-0.1",
        args: &["--suite", "all"],
        checks: 46,
    },
    Suite {
        name: "conformance 0.2, revision 2025-11-25",
        package: "conformance-0.2",
        args: &["--requirements", "2025-11-25"],
        checks: 83,
    },
    Suite {
        name: "conformance 0.2, revision 2026-07-28",
        package: "conformance-0.2",
        args: &["--requirements", "2026-07-28"],
        checks: 197,
    },
];

pub fn stages(tally: &mut Tally, request: &Request) {
    let mut ready = None;
    tally.stage("conformance: packages and server", || {
        ready = Some(prepare(request)?);
        Ok(Verdict::default())
    });
    let Some((packages, server, url)) = ready else { return };
    for suite in &SUITES {
        tally.stage(suite.name, || {
            let mut verdict = run(suite, &packages, &url, request.verbose)?;
            if let Some(server) = server.as_ref().filter(|_| verdict.failed > 0) {
                verdict
                    .detail
                    .push_str(&format!("\nthe server's log ends with\n{}", tail(&server.log(), SHOWN_LINES)));
            }
            Ok(verdict)
        });
    }
}

fn prepare(request: &Request) -> Result<(Packages, Option<Server>, String)> {
    let packages = node::packages(&node::INTEROP, request.verbose)?;
    if let Some(url) = &request.url {
        return Ok((packages, None, url.clone()));
    }
    let server = Server::start(&workspace::orchestr8(workspace::TESTS, request)?)?;
    let url = server.url.clone();
    Ok((packages, Some(server), url))
}

fn run(suite: &Suite, packages: &Packages, url: &str, show: bool) -> Result<Verdict> {
    let results = tempfile::tempdir()?;
    let mut command = Command::new(&packages.node);
    command.arg(packages.module(suite.package).join("dist/index.js"));
    command.args(["server", "--url", url]).args(suite.args).arg("--output-dir").arg(results.path());
    command.current_dir(results.path());
    let done = process::run(&mut command, LIMIT, show)?;
    if done.timed_out {
        bail!("the suite took too long\n{}", tail(&done.output, SHOWN_LINES));
    }
    let found = read(results.path())?;
    // The suite's own totals must agree with the files it wrote, or we have misread one of them.
    let total = format!("Total: {} passed, {} failed", found.successes(), found.count("FAILURE"));
    if !done.stdout.contains(&total) {
        bail!("expected the suite to say {total:?}\n{}", tail(&done.output, SHOWN_LINES));
    }
    Ok(judge(suite, &found))
}

/// Checks by status, and what went wrong in words.
#[derive(Default)]
struct Found {
    counts: BTreeMap<String, usize>,
    complaints: Vec<String>,
}

impl Found {
    fn count(&self, status: &str) -> usize {
        self.counts.get(status).copied().unwrap_or(0)
    }

    fn successes(&self) -> usize {
        self.count("SUCCESS")
    }

    fn add(&mut self, scenario: &str, check: &Value) {
        let status = check["status"].as_str().unwrap_or("FAILURE");
        *self.counts.entry(status.to_owned()).or_default() += 1;
        if matches!(status, "FAILURE" | "WARNING") {
            let id = check["id"].as_str().unwrap_or("?");
            let reason = check["errorMessage"].as_str().or(check["description"].as_str()).unwrap_or_default();
            let reason: String =
                reason.chars().map(|c| if c == '\n' { ' ' } else { c }).take(SHOWN_CHARS).collect();
            self.complaints.push(format!("  {status} {scenario} / {id}: {reason}"));
        }
    }
}

fn read(results: &Path) -> Result<Found> {
    let mut found = Found::default();
    let mut folders: Vec<_> =
        std::fs::read_dir(results)?.filter_map(Result::ok).map(|entry| entry.path()).collect();
    folders.sort();
    for folder in folders {
        let Ok(text) = std::fs::read_to_string(folder.join("checks.json")) else { continue };
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let checks: Value = serde_json::from_str(&text).with_context(|| name.clone())?;
        for check in checks.as_array().into_iter().flatten() {
            found.add(scenario(&name), check);
        }
    }
    Ok(found)
}

/// `server-tools-list-2026-01-01T…` is the scenario `tools-list`.
fn scenario(folder: &str) -> &str {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    match name.char_indices().rev().find(|(at, _)| is_date(&name[*at..])) {
        Some((at, _)) => &name[..at],
        None => name,
    }
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() > 11
        && bytes[0] == b'-'
        && bytes[1..5].iter().all(u8::is_ascii_digit)
        && bytes[5] == b'-'
        && bytes[11] == b'T'
}

/// A warning counts as failed: the suite says SHOULD, and we mean to. What the suite skips by itself
/// (it announces the check but cannot make it yet) counts as made, so the totals match the published ones.
fn judge(suite: &Suite, found: &Found) -> Verdict {
    let skipped = found.count("SKIPPED");
    let bad = found.count("FAILURE") + found.count("WARNING");
    let good = found.successes() + skipped;
    let missing = suite.checks.saturating_sub(good + bad);
    let mut detail = found.complaints.join("\n");
    if missing > 0 {
        detail.push_str(&format!("\n  {missing} of {} checks were never made", suite.checks));
    }
    let mut note = format!("{good}/{}", (good + bad).max(suite.checks));
    if skipped > 0 {
        note.push_str(&format!(", {skipped} of them skipped by the suite"));
    }
    Verdict { passed: good, failed: bad + missing, note, detail }
}

#[cfg(test)]
mod tests {
    use super::{Found, SUITES, judge, scenario};
    use serde_json::json;

    fn found(statuses: &[(&str, usize)]) -> Found {
        let mut found = Found::default();
        for (status, times) in statuses {
            for _ in 0..*times {
                found.add("x", &json!({"id": "some-check", "status": status, "errorMessage": "why"}));
            }
        }
        found
    }

    #[test]
    fn everything_made_and_good() {
        let verdict = judge(&SUITES[2], &found(&[("SUCCESS", 196), ("SKIPPED", 1), ("INFO", 9)]));
        assert_eq!((verdict.passed, verdict.failed), (197, 0));
        assert_eq!(verdict.note, "197/197, 1 of them skipped by the suite");
    }

    #[test]
    fn a_warning_fails_and_is_named() {
        let verdict = judge(&SUITES[0], &found(&[("SUCCESS", 45), ("WARNING", 1)]));
        assert_eq!((verdict.passed, verdict.failed), (45, 1));
        assert_eq!(verdict.detail, "  WARNING x / some-check: why");
    }

    #[test]
    fn a_check_that_was_never_made_fails() {
        let verdict = judge(&SUITES[1], &found(&[("SUCCESS", 80)]));
        assert_eq!((verdict.passed, verdict.failed, verdict.note.as_str()), (80, 3, "80/83"));
    }

    #[test]
    fn scenario_names_may_contain_dates_of_their_own() {
        assert_eq!(scenario("server-tools-list-2026-11-15T20-53-04-578Z"), "tools-list");
        assert_eq!(scenario("server-json-schema-2020-12-2026-11-15T20-53-04-578Z"), "json-schema-2020-12");
    }
}
