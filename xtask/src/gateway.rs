//! The gateway against a server of other people: what `@modelcontextprotocol/server-everything` offers directly and through us must be the same.
use crate::Request;
use crate::interop::Ready;
use crate::process;
use crate::report::{Tally, Verdict, tail};
use crate::server::{Service, free_port};
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(180);
const SHOWN_LINES: usize = 60;
const SERVER: &str = "@modelcontextprotocol/server-everything/dist/index.js";
/// At least so much is compared: a server that offers nothing would be the same as nothing.
const ITEMS: u64 = 30;

pub fn stages(tally: &mut Tally, ready: &Ready, request: &Request) {
    for transport in ["stdio", "http", "sse"] {
        tally.stage(&format!("interop gateway everything {transport}"), || case(ready, transport, request));
    }
}

fn case(ready: &Ready, transport: &str, request: &Request) -> Result<Verdict> {
    let folder = tempfile::tempdir()?;
    let (node, module) = (&ready.packages.node, ready.packages.module(SERVER));
    let config = folder.path().join("orchestr8.toml");
    let mut command = Command::new(node);
    command.arg(ready.packages.program("gateway.mjs")?);
    command.args(["--transport", transport, "--binary"]).arg(&ready.binary).arg("--config").arg(&config);
    let mut upstream = None;
    if transport != "stdio" {
        let port = free_port()?;
        let mut server = Command::new(node);
        let (word, path) = if transport == "sse" { ("sse", "sse") } else { ("streamableHttp", "mcp") };
        server.arg(&module).arg(word).env("PORT", port.to_string());
        upstream = Some(Service::start("everything", server, folder.path())?.listening(port)?);
        let url = format!("http://127.0.0.1:{port}/{path}");
        std::fs::write(&config, format!("[mcpServers.everything]\nurl = '{url}'\n"))?;
        command.args(["--url", &url]);
    } else {
        let said = |path: &std::path::Path| path.display().to_string();
        let args = format!("args = ['{}', 'stdio']\n", said(&module));
        std::fs::write(&config, format!("[mcpServers.everything]\ncommand = '{}'\n{args}", said(node)))?;
    }
    command.arg("--").arg(node).arg(&module).arg("stdio");
    let done = process::run(&mut command, LIMIT, request.verbose)?;
    let complaints = judge(&done.stdout);
    if done.success && complaints.is_empty() {
        return Ok(Verdict::pass(""));
    }
    let log = upstream.map(|service| service.log()).unwrap_or_default();
    let output = tail(&done.output, SHOWN_LINES);
    Ok(Verdict::fail(format!("{}\n{output}\n{}", complaints.join("\n"), tail(&log, SHOWN_LINES))))
}

/// What is wrong with the one JSON line of the comparison.
fn judge(stdout: &str) -> Vec<String> {
    let line = stdout.lines().last().context("nothing");
    let seen = match line.and_then(|line| Ok(serde_json::from_str::<Value>(line)?)) {
        Ok(seen) => seen,
        Err(error) => return vec![format!("the comparison did not report what it saw: {error}")],
    };
    let differences = seen["differences"].as_array().into_iter().flatten();
    let mut complaints: Vec<String> = differences.map(|found| format!("  {found}")).collect();
    if seen["items"].as_u64().unwrap_or_default() < ITEMS {
        complaints.push(format!("  at least {ITEMS} items should have been compared: {seen}"));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn differences_and_a_comparison_of_nothing_are_complaints() {
        assert_eq!(judge("noise\n{\"items\":38,\"differences\":[]}\n"), Vec::<String>::new());
        assert_eq!(judge("{\"items\":38,\"differences\":[{\"what\":\"x\"},{}]}").len(), 2);
        assert_eq!(judge("{\"items\":1,\"differences\":[]}").len(), 1);
        assert_eq!(judge("").len(), 1);
    }
}
