//! Real clients of other people against our server: the official TypeScript and Python ones, and rmcp's.
use crate::node::{self, Packages};
use crate::process;
use crate::report::{Tally, Verdict, tail};
use crate::server::Server;
use crate::{Request, gateway, python, workspace};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const SHOWN_LINES: usize = 60;
/// The server's default `resources.maxConcurrentExecutions`: so many slow calls fill it.
const SLOTS: u64 = 10;
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

#[derive(Clone, Copy, PartialEq)]
enum Transport {
    Stdio,
    Http,
    /// That of revision 2024-11-05.
    Sse,
}

/// One of the client programs under `conformance/interop`.
struct Client {
    name: &'static str,
    /// How it may be told to connect, and the revision it must then speak.
    eras: &'static [(&'static str, &'static str)],
}

const EVERY_ERA: &[(&str, &str)] = &[("legacy", LEGACY), ("modern", MODERN), ("auto", MODERN)];
const CLIENTS: [Client; 4] = [
    Client { name: "typescript-1", eras: &[("legacy", LEGACY)] },
    Client { name: "typescript-2", eras: EVERY_ERA },
    Client { name: "python", eras: EVERY_ERA },
    Client { name: "rmcp", eras: EVERY_ERA },
];

/// What the programs need in order to run.
pub struct Ready {
    pub packages: Packages,
    python: PathBuf,
    rmcp: PathBuf,
    pub binary: PathBuf,
}

pub fn stages(tally: &mut Tally, request: &Request) {
    let mut ready = None;
    tally.stage("interop: clients and server", || {
        ready = Some(prepare(request)?);
        Ok(Verdict::default())
    });
    let Some(ready) = ready else { return };
    for client in &CLIENTS {
        for (era, revision) in client.eras {
            for transport in [Transport::Stdio, Transport::Http] {
                let word = if transport == Transport::Stdio { "stdio" } else { "http" };
                tally.stage(&format!("interop {} {era} {word}", client.name), || {
                    case(&ready, client.name, era, revision, transport, request)
                });
            }
        }
    }
    tally.stage("interop typescript-1 legacy sse", || {
        case(&ready, "typescript-1", "legacy", LEGACY, Transport::Sse, request)
    });
    gateway::stages(tally, &ready, request);
}

fn prepare(request: &Request) -> Result<Ready> {
    let show = request.verbose;
    Ok(Ready {
        packages: node::packages(&node::INTEROP, show)?,
        python: python::interpreter("conformance/interop/requirements.txt", show)?,
        rmcp: workspace::outside("conformance/interop/rmcp-client", show)?,
        binary: workspace::orchestr8(workspace::TESTS, request)?,
    })
}

fn case(
    ready: &Ready,
    client: &str,
    era: &str,
    revision: &str,
    transport: Transport,
    request: &Request,
) -> Result<Verdict> {
    let mut command = program(ready, client)?;
    command.args(["--era", era, "--slots", &SLOTS.to_string()]);
    let data = tempfile::tempdir()?;
    // A server of its own for each case: one client's leftovers must not decide another's result.
    let server = match (transport, &request.url) {
        (Transport::Stdio, _) => {
            command
                .arg("--")
                .arg(&ready.binary)
                .args(["mcp", "--conformance", "--data-dir"])
                .arg(data.path());
            None
        }
        (Transport::Http | Transport::Sse, Some(url)) => {
            command.args(["--url", url]);
            None
        }
        (Transport::Http | Transport::Sse, None) => {
            let server = Server::start(&ready.binary)?;
            command.args(["--url", &server.url]);
            Some(server)
        }
    };
    if transport == Transport::Sse {
        command.args(["--transport", "sse"]);
    }
    let done = process::run(&mut command, LIMIT, request.verbose)?;
    let complaints = judge(&done.stdout, revision);
    if done.success && complaints.is_empty() {
        return Ok(Verdict::pass(""));
    }
    let log = server.map(|server| server.log()).unwrap_or_default();
    let output = tail(&done.output, SHOWN_LINES);
    Ok(Verdict::fail(format!("{}\n{output}\n{}", complaints.join("\n"), tail(&log, SHOWN_LINES))))
}

fn program(ready: &Ready, client: &str) -> Result<Command> {
    let source = workspace::root().join("conformance/interop");
    let mut command = match client {
        "rmcp" => Command::new(&ready.rmcp),
        "python" => with(&ready.python, &source.join("python_client.py")),
        "typescript-1" => with(&ready.packages.node, &ready.packages.program("typescript-1.mjs")?),
        "typescript-2" => with(&ready.packages.node, &ready.packages.program("typescript-2.mjs")?),
        _ => bail!("no client called {client}"),
    };
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

fn with(interpreter: &Path, script: &Path) -> Command {
    let mut command = Command::new(interpreter);
    command.arg(script);
    command
}

/// What is wrong with the one JSON line a client program prints.
fn judge(stdout: &str, revision: &str) -> Vec<String> {
    let seen = match stdout
        .lines()
        .last()
        .context("nothing")
        .and_then(|line| Ok(serde_json::from_str::<Value>(line)?))
    {
        Ok(seen) => seen,
        Err(error) => return vec![format!("the client did not report what it saw: {error}")],
    };
    let mut complaints = Vec::new();
    let mut expect = |good: bool, what: &str| {
        if !good {
            complaints.push(format!("  {what}, but the client saw {seen}"));
        }
    };
    let tools: Vec<&str> = seen["tools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    expect(seen["revision"] == revision, &format!("it should speak {revision}"));
    expect(seen["server"] == "orchestr8", "the server should call itself orchestr8");
    expect(
        ["echo", "test_sleep"].iter().all(|name| tools.contains(name)),
        "echo and test_sleep should be listed",
    );
    expect(seen["echo"].as_str().is_some_and(|text| text.contains("hello")), "echo should answer hello");
    expect(seen["full"] == true, "slow calls should have filled every slot");
    expect(seen["cancelled"] == SLOTS, "every slow call should have been cancelled");
    expect(seen["freed"] == true, "cancelling should have freed the slots");
    expect(seen["closed"] == true, "the client should have closed the connection in peace");
    complaints
}

#[cfg(test)]
mod tests {
    use super::judge;

    const GOOD: &str = r#"{"revision":"2026-07-28","server":"orchestr8","tools":["echo","test_sleep"],"echo":"hello","full":true,"cancelled":10,"freed":true,"closed":true}"#;

    #[test]
    fn a_good_report_has_no_complaints() {
        assert_eq!(judge(&format!("noise\n{GOOD}\n"), "2026-07-28"), Vec::<String>::new());
    }

    #[test]
    fn each_wrong_field_is_named() {
        assert_eq!(judge(GOOD, "2025-11-25").len(), 1);
        assert_eq!(judge(&GOOD.replace("\"freed\":true", "\"freed\":false"), "2026-07-28").len(), 1);
        assert_eq!(judge(&GOOD.replace("\"cancelled\":10", "\"cancelled\":9"), "2026-07-28").len(), 1);
        assert_eq!(judge("{}", "2026-07-28").len(), 8);
    }

    #[test]
    fn silence_is_a_complaint() {
        assert_eq!(judge("", "2026-07-28").len(), 1);
    }
}
