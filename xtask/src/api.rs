//! Every operation of the OpenAPI description against a running server, tried by schemathesis.
use crate::process;
use crate::report::{Tally, Verdict, tail};
use crate::server::Server;
use crate::{Request, python, workspace};
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Duration;

/// It makes some 25,000 requests, most of them from the edges of the schemas.
const LIMIT: Duration = Duration::from_secs(1800);
const SHOWN_LINES: usize = 120;

/// Random examples for each operation, on top of the systematic ones.
const EXAMPLES: &str = "3";

/// What waits has tests of its own: streams without an end, and workers who wait up to a minute for each task there is not.
const WAITING: &str = "^/(events|ws|workers/\\{queue\\}/poll|a2a/replies/\\{inbox\\})$";

/// Where descriptions are found, and what each is of.
const DESCRIPTIONS: [(&str, &str); 3] = [
    ("workflows", "/openapi.json"),
    ("messages", "/aacp/openapi.json"),
    ("knowledge", "/knowledge/openapi.json"),
];

pub fn stages(tally: &mut Tally, request: &Request) {
    for (name, path) in DESCRIPTIONS {
        tally.stage(&format!("api: schemathesis over {name}"), || run(path, request));
    }
}

fn run(path: &str, request: &Request) -> Result<Verdict> {
    let python = python::interpreter("conformance/workflows/api/requirements.txt", request.verbose)?;
    let server = Server::start(&workspace::orchestr8(workspace::TESTS, request)?)?;
    let base = server.url.strip_suffix("/mcp").context("the server's address")?;
    let work = tempfile::tempdir()?;
    let mut command = Command::new(python.with_file_name("schemathesis"));
    command.current_dir(work.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    command.args(["run", &format!("{base}{path}"), "--no-color", "--seed", "1", "--continue-on-failure"]);
    command.args(["--max-examples", EXAMPLES, "--request-timeout", "70", "--exclude-path-regex", WAITING]);
    // A schema cannot say everything that makes a workflow or a cron expression sound.
    command.args(["--exclude-checks", "positive_data_acceptance"]);
    let done = process::run(&mut command, LIMIT, request.verbose)?;
    if done.success {
        let note = done.stdout.lines().find(|line| line.contains("generated, ")).unwrap_or_default();
        return Ok(Verdict::pass(note.trim()));
    }
    Ok(Verdict::fail(format!("{}\n{}", tail(&done.output, SHOWN_LINES), tail(&server.log(), SHOWN_LINES))))
}
