//! `orchestr8 knowledge webhooks`: the addresses that are told of changes, and how that goes.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::super::Shell;
use super::super::words::{cut, text};
use super::Asking;
use crate::failure::Failure;
use crate::reach::escape;
use crate::terminal::columns;

#[derive(Subcommand)]
pub enum Webhooks {
    /// List the addresses, with what waits for each and what failed.
    List(List),
    /// Tell an address of changes.
    Add(Add),
    /// Tell an address nothing more; what waits for it is dropped.
    Remove(Remove),
}

#[derive(Args)]
pub struct List {
    #[command(flatten)]
    asking: Asking,
}

#[derive(Args)]
pub struct Add {
    /// Where changes are sent to, by POST.
    url: String,
    /// Only these; may be given again [default: all].
    #[arg(long = "event", value_name = "EVENT", value_parser = ["document.created", "document.updated", "document.deleted", "document.moved"])]
    events: Vec<String>,
    /// The environment variable that holds the secret which signs what is sent.
    #[arg(long, value_name = "VARIABLE")]
    secret_env: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Args)]
pub struct Remove {
    /// The id of the webhook.
    webhook: String,
    #[command(flatten)]
    asking: Asking,
}

const LETTERS: usize = 60;

impl Webhooks {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Webhooks::List(command) => command.run(shell),
            Webhooks::Add(command) => command.run(shell),
            Webhooks::Remove(command) => command.run(shell),
        }
    }
}

impl List {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let answer = self.asking.run(shell, async |shelf| shelf.get("/webhooks").await)?;
        let webhooks = answer["webhooks"].as_array().cloned().unwrap_or_default();
        if shell.terminal.json {
            shell.terminal.value(&answer);
        } else if webhooks.is_empty() {
            shell.terminal.note("nobody is told of changes");
        } else {
            let head = ["WEBHOOK", "WAITING", "FAILED", "URL", "LAST FAILURE"].map(String::from);
            let rows: Vec<[String; 5]> = std::iter::once(head).chain(webhooks.iter().map(row)).collect();
            shell.terminal.data(&columns(&rows));
        }
        Ok(())
    }
}

fn row(webhook: &Value) -> [String; 5] {
    let short = |name: &str| cut(text(webhook, name), LETTERS);
    [
        short("id"),
        webhook["waiting"].to_string(),
        webhook["failed"].to_string(),
        short("url"),
        short("last_failure"),
    ]
}

impl Add {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let mut args = json!({"url": self.url});
        if !self.events.is_empty() {
            args["events"] = self.events.clone().into();
        }
        if let Some(name) = &self.secret_env {
            // Never on the command line, which others of this machine can see.
            let secret = shell.environment.get(name).ok_or_else(|| {
                Failure::new(
                    orchestr8_contract::Code::InvalidArgument,
                    format!("{name} is not in the environment"),
                )
            })?;
            args["secret"] = secret.into();
        }
        let answer = self.asking.run(shell, async |shelf| shelf.post("/webhooks", &args).await)?;
        match shell.terminal.json {
            true => shell.terminal.value(&answer),
            false => shell.terminal.data(text(&answer, "id")),
        }
        Ok(())
    }
}

impl Remove {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let path = format!("/webhooks/{}", escape(&self.webhook));
        let answer = self.asking.run(shell, async |shelf| shelf.ask(Method::DELETE, &path, None).await)?;
        match shell.terminal.json {
            true => shell.terminal.value(&answer),
            false => shell.terminal.note("removed"),
        }
        Ok(())
    }
}
