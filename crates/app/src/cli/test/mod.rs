//! `orchestr8 test`: runs workflows and checks what comes out, as `tests/*.test.json` says.

mod assertion;
mod case;
mod junit;

use std::path::{Path, PathBuf};

use clap::Args;
use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::follow::{End, Follow, Followed};
use super::reaching::{Intent, Reaching};
use super::words::{self, text};
use super::{Running, Shell};
use crate::failure::{Failure, exit};
use crate::reach::{Reach, escape};
use crate::terminal::{DIM, GREEN, PLAIN, RED, styled_line, visible_line};
use case::Case;

#[derive(Args)]
pub struct Test {
    /// A folder with *.test.json files, or one such file.
    #[arg(value_name = "PATH", default_value = "tests")]
    path: PathBuf,
    /// Only tests whose id or name contains this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Run the workflows on this server; without it they run in this process, and nothing of them is kept.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Also write the results to this file as JUnit XML, for CI systems.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// What became of one test.
struct Verdict {
    case: Case,
    duration_ms: u64,
    execution: String,
    /// Nothing: it passed.
    problems: Vec<String>,
    /// The workflow was refused or did not end, so that nothing could be checked.
    is_error: bool,
}

impl Test {
    /// 0: all passed; 1: one did not; 2: a test file is wrong.
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let cases = self.cases()?;
        if cases.is_empty() {
            return Err(Failure::new(Code::NotFound, format!("there is no test in {}", self.path.display()))
                .hinting("tests are files named *.test.json; orchestr8 init makes one"));
        }
        let running = Running { ephemeral: self.server.is_none(), ..Running::default() };
        let reaching =
            Reaching { server: self.server.clone(), embedded: self.server.is_none(), ca: None, running };
        let report = self.junit.as_deref().map(junit::Report::create).transpose()?;
        let (verdicts, failure) = reaching.run(shell, Intent::Execute, async |reach| {
            let mut verdicts = Vec::new();
            for case in &cases {
                match judge(shell, reach, case.clone()).await {
                    Ok(verdict) => {
                        tell(shell, &verdict);
                        verdicts.push(verdict);
                    }
                    Err(failure) => return Ok((verdicts, Some(failure))),
                }
            }
            Ok((verdicts, None))
        })?;
        if let Some(report) = report {
            report.write(&verdicts, &cases[verdicts.len()..])?;
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(summary(shell, &verdicts)),
        }
    }

    fn cases(&self) -> Result<Vec<Case>, Failure> {
        let mut cases = Vec::new();
        for file in files(&self.path)? {
            cases.extend(case::read(&file)?);
        }
        let wanted = |case: &Case| {
            self.filter.as_ref().is_none_or(|part| case.id.contains(part) || case.name.contains(part))
        };
        cases.retain(wanted);
        Ok(cases)
    }
}

/// The test files of a folder and of the folders in it, in order.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable =
        |path: &Path, cause: &std::io::Error| super::files::unreadable(&path.display().to_string(), cause);
    if std::fs::metadata(path).map_err(|cause| unreadable(path, &cause))?.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let entries = std::fs::read_dir(path).map_err(|cause| unreadable(path, &cause))?;
    for entry in entries {
        let entry = entry.map_err(|cause| unreadable(path, &cause))?;
        let inner = entry.path();
        // Links are not followed: they may lead round in circles.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files(&inner)?);
        } else if inner.to_string_lossy().ends_with(".test.json") {
            found.push(inner);
        }
    }
    found.sort();
    Ok(found)
}

async fn judge(shell: &Shell, reach: &Reach, case: Case) -> Result<Verdict, Failure> {
    let quiet = shell.quiet();
    let body = json!({"workflow": case.workflow, "inputs": case.inputs});
    let started = match reach.post("/v1/workflows/execute", &body).await {
        Ok(started) => started,
        Err(failure) => {
            let problems = [vec![failure.message], failure.lines].concat();
            return Ok(Verdict { case, duration_ms: 0, execution: String::new(), problems, is_error: true });
        }
    };
    let id = text(&started, "executionId").to_owned();
    let follow = Follow { shell: &quiet, reach, limit: Some(case.timeout), after: 0 };
    let Followed { end, execution } = follow.to_the_end(&id).await?;
    let duration_ms = execution["duration"].as_u64().unwrap_or(0);
    let (problems, is_error) = match end {
        End::Final => (case.check(&execution), false),
        End::Interrupted => return Err(Failure::new(Code::Cancelled, "the tests were interrupted")),
        End::TimedOut | End::Blocked => {
            reach
                .post(&format!("/v1/executions/{}/cancel", escape(&id)), &json!({"graceful": false}))
                .await?;
            let limit = words::duration(u64::try_from(case.timeout.as_millis()).unwrap_or(u64::MAX));
            (vec![format!("it is still {} after {limit}", text(&execution, "status"))], true)
        }
    };
    Ok(Verdict { case, duration_ms, execution: id, problems, is_error })
}

fn tell(shell: &Shell, verdict: &Verdict) {
    if shell.terminal.json {
        return;
    }
    let took = words::duration(verdict.duration_ms);
    let name = visible_line(&verdict.case.name);
    if verdict.problems.is_empty() {
        if !shell.terminal.quiet {
            shell.terminal.data(&format!("{GREEN}ok{PLAIN}    {name} {DIM}{took}{PLAIN}"));
        }
        return;
    }
    shell.terminal.data(&format!("{RED}FAIL{PLAIN}  {name} {DIM}({}){PLAIN}", verdict.case.file.display()));
    for problem in &verdict.problems {
        shell.terminal.data(&styled_line(&format!("      {problem}")));
    }
}

fn summary(shell: &Shell, verdicts: &[Verdict]) -> u8 {
    let failed = verdicts.iter().filter(|verdict| !verdict.problems.is_empty()).count();
    let passed = verdicts.len() - failed;
    if shell.terminal.json {
        let tests: Vec<Value> = verdicts
            .iter()
            .map(|verdict| {
                json!({"id": verdict.case.id, "name": verdict.case.name, "file": verdict.case.file,
                    "passed": verdict.problems.is_empty(), "problems": verdict.problems,
                    "durationMs": verdict.duration_ms, "executionId": verdict.execution})
            })
            .collect();
        shell.terminal.value(&json!({"passed": passed, "failed": failed, "tests": tests}));
    } else {
        shell.terminal.data(&format!("{passed} passed, {failed} failed"));
    }
    if failed == 0 { exit::OK } else { exit::FAILED }
}
