//! `orchestr8 servers add|list|show|remove|restart|logs`: other MCP servers, while the server runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use http::Method;
use orchestr8_contract::Code;
use serde_json::{Map, Value, json};

use super::Shell;
use super::confirm::confirm;
use super::reaching::{Intent, Reaching};
use super::words::text;
use crate::failure::Failure;
use crate::reach::escape;
use crate::terminal::columns;

const SERVERS: &str = "/v1/servers";

#[derive(Subcommand)]
pub enum Servers {
    /// Add a server: a program with its arguments, or --url.
    Add(Box<Add>),
    /// List the servers and how it stands with each.
    List(Reaching),
    /// Show one server and its entry.
    Show(One),
    /// Remove a server that was added.
    Remove(Remove),
    /// Restart the instance that serves your tenant.
    Restart(One),
    /// Print what its program wrote to stderr last.
    Logs(One),
}

#[derive(Args)]
pub struct Add {
    /// What it is called; its tools are called NAME.TOOL.
    name: String,
    /// The address of a server that already runs.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// A header to send to it, as NAME: VALUE; ${SECRET} in it stands for a named secret. May be given more than once.
    #[arg(long = "header", value_name = "HEADER", requires = "url")]
    headers: Vec<String>,
    /// A variable of its program, as NAME=VALUE; ${SECRET} in it stands for a named secret. May be given more than once.
    #[arg(long = "env", value_name = "VARIABLE", conflicts_with = "url")]
    env: Vec<String>,
    /// The working directory of its program.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cwd: Option<PathBuf>,
    /// What its tools are called before the dot, instead of its name.
    #[arg(long)]
    prefix: Option<String>,
    /// Take only this tool, or those whose names begin so: read_*. May be given more than once.
    #[arg(long = "allow", value_name = "TOOL")]
    allow: Vec<String>,
    /// Leave this tool out. May be given more than once.
    #[arg(long = "deny", value_name = "TOOL")]
    deny: Vec<String>,
    /// How long a call may take.
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// How long an instance may be unused before it is stopped; 0 means for ever.
    #[arg(long, value_name = "MS")]
    idle_timeout_ms: Option<u64>,
    #[command(flatten)]
    reaching: Reaching,
    /// The program to start, and its arguments, after --.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Args)]
pub struct One {
    /// The server.
    name: String,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Remove {
    /// The server.
    name: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    reaching: Reaching,
}

impl Servers {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Servers::Add(add) => add.run(shell),
            Servers::List(reaching) => list(shell, reaching),
            Servers::Show(one) => one.show(shell),
            Servers::Remove(remove) => remove.run(shell),
            Servers::Restart(one) => one.restart(shell),
            Servers::Logs(one) => one.logs(shell),
        }
    }
}

impl Add {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let body = self.body()?;
        let added =
            self.reaching.run(shell, Intent::Record, async |reach| reach.post(SERVERS, &body).await)?;
        match shell.terminal.json {
            true => shell.terminal.value(&added),
            false => {
                let (name, tenant) = (text(&added, "name"), text(&added, "tenant"));
                shell.terminal.data(&format!("{name} is added for the tenant {tenant}"));
                shell.terminal.note(&format!("orchestr8 servers show {name} says whether it runs"));
            }
        }
        Ok(())
    }

    fn body(&self) -> Result<Value, Failure> {
        let mut body = Map::from_iter([(String::from("name"), Value::from(self.name.as_str()))]);
        let mut put = |name: &str, value: Value| {
            let is_empty = match &value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(members) => members.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            };
            if !is_empty {
                body.insert(name.to_owned(), value);
            }
        };
        put("url", json!(self.url));
        put("command", json!(self.command.first()));
        put("args", json!(self.command.iter().skip(1).collect::<Vec<_>>()));
        put("headers", pairs("--header", ':', &self.headers)?);
        put("env", pairs("--env", '=', &self.env)?);
        put("cwd", json!(self.cwd));
        put("prefix", json!(self.prefix));
        put("allow", json!(self.allow));
        put("deny", json!(self.deny));
        put("timeoutMs", json!(self.timeout_ms));
        put("idleTimeoutMs", json!(self.idle_timeout_ms));
        Ok(body.into())
    }
}

/// What stands before and after the first separator of each text.
fn pairs(flag: &str, separator: char, texts: &[String]) -> Result<Value, Failure> {
    let pair = |text: &String| match text.split_once(separator) {
        Some((name, value)) => Ok((name.trim().to_owned(), Value::from(value.trim_start()))),
        None => Err(Failure::new(
            Code::InvalidArgument,
            format!("{flag} takes a name and a value separated by '{separator}'"),
        )),
    };
    texts.iter().map(pair).collect::<Result<Map<_, _>, _>>().map(Value::from)
}

impl One {
    fn path(&self) -> String {
        format!("{SERVERS}/{}", escape(&self.name))
    }

    fn show(&self, shell: &Shell) -> Result<(), Failure> {
        let path = self.path();
        let server = self.reaching.run(shell, Intent::Record, async |reach| reach.get(&path).await)?;
        if shell.terminal.json {
            shell.terminal.value(&server);
            return Ok(());
        }
        let words = |name: &str| {
            let all = server[name].as_array().into_iter().flatten().filter_map(Value::as_str);
            all.collect::<Vec<_>>().join(", ")
        };
        let entry = &server["entry"];
        let reached = entry["url"].as_str().or(entry["command"].as_str()).unwrap_or_default();
        let mut rows = vec![
            ["server", text(&server, "name")].map(str::to_owned),
            ["reached at", reached].map(str::to_owned),
            ["phase", text(&server, "phase")].map(str::to_owned),
            [String::from("tools"), words("toolNames")],
        ];
        for (label, value) in [
            ("quarantined", words("quarantined")),
            ("problem", text(&server, "problem").to_owned()),
            ("next attempt", text(&server, "nextAttemptAt").to_owned()),
            ("last error", server["lastError"]["message"].as_str().unwrap_or_default().to_owned()),
            ("added by", text(&server, "addedBy").to_owned()),
        ] {
            if !value.is_empty() {
                rows.push([label.to_owned(), value]);
            }
        }
        for refused in server["refused"].as_array().into_iter().flatten() {
            rows.push([
                String::from("left out"),
                format!("{}: {}", text(refused, "tool"), text(refused, "why")),
            ]);
        }
        shell.terminal.data(&columns(&rows));
        Ok(())
    }

    fn restart(&self, shell: &Shell) -> Result<(), Failure> {
        let path = format!("{}/restart", self.path());
        let done = self.reaching.run(shell, Intent::Record, async |reach| {
            reach.send(Method::POST, &path, &[], None).await?.accepted()
        })?;
        match shell.terminal.json {
            true => shell.terminal.value(&done),
            false => shell.terminal.data(&format!("{} restarts", self.name)),
        }
        Ok(())
    }

    fn logs(&self, shell: &Shell) -> Result<(), Failure> {
        let path = format!("{}/logs", self.path());
        let logs = self.reaching.run(shell, Intent::Record, async |reach| reach.get(&path).await)?;
        if shell.terminal.json {
            shell.terminal.value(&logs);
            return Ok(());
        }
        let lines: Vec<&str> =
            logs["lines"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match lines.is_empty() {
            true => shell.terminal.note("it has written nothing to stderr since orchestr8 started"),
            false => shell.terminal.data(&lines.join("\n")),
        }
        Ok(())
    }
}

impl Remove {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        confirm(shell, self.yes, &format!("the server {} is removed, with its accepted tools", self.name))?;
        let path = format!("{SERVERS}/{}", escape(&self.name));
        let done = self.reaching.run(shell, Intent::Record, async |reach| {
            reach.send(Method::DELETE, &path, &[], None).await?.accepted()
        })?;
        match shell.terminal.json {
            true => shell.terminal.value(&done),
            false => shell.terminal.data(&format!("{} is removed", self.name)),
        }
        Ok(())
    }
}

fn list(shell: &Shell, reaching: &Reaching) -> Result<(), Failure> {
    let page = reaching.run(shell, Intent::Record, async |reach| reach.get(SERVERS).await)?;
    if shell.terminal.json {
        shell.terminal.value(&page);
        return Ok(());
    }
    let servers = page["servers"].as_array().cloned().unwrap_or_default();
    if servers.is_empty() {
        shell.terminal.note("there are no other servers; add one with orchestr8 servers add, or name it in mcpServers of the settings");
        return Ok(());
    }
    let row = |server: &Value| {
        [
            text(server, "name").to_owned(),
            text(server, "phase").to_owned(),
            server["tools"].to_string(),
            text(server, "source").to_owned(),
            text(server, "problem").to_owned(),
        ]
    };
    let head = ["SERVER", "PHASE", "TOOLS", "FROM", "PROBLEM"].map(String::from);
    shell.terminal.data(&columns(&std::iter::once(head).chain(servers.iter().map(row)).collect::<Vec<_>>()));
    Ok(())
}
