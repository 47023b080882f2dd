//! `orchestr8 sessions list`: the sessions there are, newest first.

use clap::Args;
use serde_json::{Value, json};

use super::super::Shell;
use super::super::reaching::Reaching;
use super::super::words::{cut, moment, text};
use super::{model, with_talk};
use crate::failure::Failure;
use crate::terminal::columns;

#[derive(Args)]
pub struct List {
    #[command(flatten)]
    reaching: Reaching,
}

const NAME_LETTERS: usize = 40;

impl List {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let mut answer =
            with_talk(&self.reaching, shell, async |talk| talk.ask(json!({"type": "list_sessions"})).await)?;
        let mut sessions = answer["sessions"].as_array().cloned().unwrap_or_default();
        sessions.sort_by_key(|session| std::cmp::Reverse(text(session, "createdAt").to_owned()));
        if shell.terminal.json {
            answer["sessions"] = Value::Array(sessions);
            shell.terminal.value(&answer);
            return Ok(());
        }
        if sessions.is_empty() {
            shell.terminal.note("there are no sessions; begin one with orchestr8 chat");
            return Ok(());
        }
        let head = ["SESSION", "STATE", "MODEL", "MESSAGES", "CREATED", "NAME"].map(String::from);
        let rows: Vec<[String; 6]> = std::iter::once(head).chain(sessions.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        Ok(())
    }
}

fn row(session: &Value) -> [String; 6] {
    let state = if session["isStreaming"] == true { "working" } else { "idle" };
    [
        text(session, "sessionId").to_owned(),
        state.to_owned(),
        model(session),
        session["messageCount"].to_string(),
        moment(&session["createdAt"]),
        cut(text(session, "sessionName"), NAME_LETTERS),
    ]
}
