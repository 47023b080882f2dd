//! `orchestr8 witness list|forget`: the heads of other servers' audit logs that this server remembers.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Shell;
use super::confirm::confirm;
use super::reaching::{Intent, Reaching};
use super::words::{moment, text};
use crate::failure::Failure;
use crate::reach::path;
use crate::terminal::columns;

const HEADS: &str = "/v1/witness/heads";

#[derive(Subcommand)]
pub enum Witness {
    /// List the newest head of each log.
    List(List),
    /// Forget the heads of a log, so that it can begin again: after a planned restore of the other server, or a change of its key.
    Forget(Forget),
}

#[derive(Args)]
pub struct List {
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Forget {
    /// The log, as `witness list` has it.
    origin: String,
    /// The principal that has sent its heads.
    #[arg(long, value_name = "NAME")]
    principal: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    reaching: Reaching,
}

impl Witness {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Witness::List(list) => list.run(shell),
            Witness::Forget(forget) => forget.run(shell),
        }
    }
}

impl List {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let page = self.reaching.run(shell, Intent::Record, async |reach| reach.get(HEADS).await)?;
        let heads = page["heads"].as_array().cloned().unwrap_or_default();
        if shell.terminal.json {
            shell.terminal.value(&json!({"heads": heads}));
            return Ok(());
        }
        if heads.is_empty() {
            shell.terminal.note("no server has sent heads here");
            return Ok(());
        }
        let row = |head: &Value| {
            [
                text(head, "origin").to_owned(),
                text(head, "principal").to_owned(),
                head["size"].to_string(),
                moment(&head["at"]),
                text(head, "root").to_owned(),
            ]
        };
        let head = ["LOG", "PRINCIPAL", "ENTRIES", "SIGNED", "ROOT"].map(String::from);
        let rows: Vec<_> = std::iter::once(head).chain(heads.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        Ok(())
    }
}

impl Forget {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let plan =
            format!("the heads of {} are forgotten; what they proved is no longer proven", self.origin);
        confirm(shell, self.yes, &plan)?;
        let query = [("origin", Some(self.origin.clone())), ("principal", Some(self.principal.clone()))];
        let target = path(HEADS, &query);
        let done = self.reaching.run(shell, Intent::Record, async |reach| reach.delete(&target).await)?;
        match shell.terminal.json {
            true => shell.terminal.value(&done),
            false => shell.terminal.data(&format!("{} is forgotten", self.origin)),
        }
        Ok(())
    }
}
