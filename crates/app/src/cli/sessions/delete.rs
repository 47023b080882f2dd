//! `orchestr8 sessions delete`: a session and everything in it is gone; a turn under way is stopped first.

use clap::Args;
use serde_json::{Value, json};

use super::super::Shell;
use super::super::confirm::confirm;
use super::super::reaching::Reaching;
use super::super::words::text;
use super::with_talk;
use crate::failure::Failure;
use crate::talk::{Talk, about};

#[derive(Args)]
pub struct Delete {
    /// The session.
    session: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    reaching: Reaching,
}

impl Delete {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let answer = with_talk(&self.reaching, shell, async |talk| self.delete(shell, talk).await)?;
        match shell.terminal.json {
            true => shell.terminal.value(&answer),
            false => shell.terminal.data(&format!("session {} is deleted", self.session)),
        }
        Ok(())
    }

    async fn delete(&self, shell: &Shell, talk: &mut Talk<'_>) -> Result<Value, Failure> {
        let id = self.session.as_str();
        let all = talk.ask(json!({"type": "list_sessions"})).await?;
        let found =
            all["sessions"].as_array().into_iter().flatten().find(|session| text(session, "sessionId") == id);
        if let Some(found) = found {
            let working = if found["isStreaming"] == true { ", stop its agent" } else { "" };
            let plan = format!("delete session {id} with its {} messages{working}", found["messageCount"]);
            confirm(shell, self.yes, &plan)?;
        }
        if found.is_some_and(|found| found["isStreaming"] == true) {
            // In its own turn the deletion would wait for the end of what it is to end.
            talk.ask(about("abort", id)).await?;
        }
        let deleted = talk.ask(about("delete_session", id)).await?;
        Ok(json!({"sessionId": id, "deleted": deleted["deleted"] == true}))
    }
}
