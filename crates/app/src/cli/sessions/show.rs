//! `orchestr8 sessions show`: one session, what it took, and its conversation.

use clap::Args;
use serde_json::{Value, json};

use super::super::Shell;
use super::super::reaching::Reaching;
use super::super::telling::{Style, Telling};
use super::super::words::{moment, text};
use super::with_talk;
use crate::failure::Failure;
use crate::talk::{Talk, about};
use crate::terminal::{BOLD, PLAIN, columns, visible_line};

#[derive(Args)]
pub struct Show {
    /// The session.
    session: String,
    /// Only how it stands, without its conversation.
    #[arg(long)]
    brief: bool,
    #[command(flatten)]
    reaching: Reaching,
}

const STYLE: Style = Style { words: true, thinking: true, people: true, together: true };

impl Show {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let shown = with_talk(&self.reaching, shell, async |talk| self.look(shell, talk).await)?;
        if shell.terminal.json {
            shell.terminal.value(&shown);
            return Ok(());
        }
        shell.terminal.data(&head(&shown));
        let messages = shown["messages"].as_array().cloned().unwrap_or_default();
        if !messages.is_empty() {
            shell.terminal.data("");
            Telling::new(shell.terminal, STYLE).past(&messages);
        }
        Ok(())
    }

    async fn look(&self, shell: &Shell, talk: &mut Talk<'_>) -> Result<Value, Failure> {
        let id = self.session.as_str();
        let all = talk.ask(json!({"type": "list_sessions"})).await?;
        let is_working = |session: &Value| text(session, "sessionId") == id && session["isStreaming"] == true;
        if all["sessions"].as_array().is_some_and(|sessions| sessions.iter().any(is_working)) {
            shell
                .terminal
                .note("the agent is at work; this waits until it is done (sessions tail follows it)");
        }
        let session = talk.ask(about("get_state", id)).await?;
        let stats = talk.ask(about("get_session_stats", id)).await?;
        let context = talk.ask(about("get_context_usage", id)).await?;
        let mut shown = json!({"session": session, "stats": stats, "context": context});
        if !self.brief {
            shown["messages"] = talk.ask(about("get_messages", id)).await?["messages"].take();
        }
        Ok(shown)
    }
}

fn head(shown: &Value) -> String {
    let session = &shown["session"];
    let row = |name: &str, value: String| [format!("{BOLD}{name}{PLAIN}"), value];
    let mut rows = vec![row("session", text(session, "sessionId").to_owned())];
    for (name, member) in [("name", "sessionName"), ("folder", "cwd"), ("forked from", "parentSession")] {
        if let Some(value) = session[member].as_str() {
            rows.push(row(name, visible_line(value)));
        }
    }
    rows.push(row("model", format!("{}, thinking {}", model(session), text(session, "thinkingLevel"))));
    rows.push(row("created", moment(&session["createdAt"])));
    rows.push(row("spent", figures(&shown["stats"])));
    if let Some(tokens) = shown["context"]["tokens"].as_u64() {
        let percent = shown["context"]["percent"].as_f64().unwrap_or(0.0);
        rows.push(row("context", format!("{tokens} tokens, {percent:.1} % of the window")));
    }
    columns(&rows)
}

/// `provider/id` of a session, as it is told.
pub fn model(session: &Value) -> String {
    match (session["model"]["provider"].as_str(), session["model"]["id"].as_str()) {
        (Some(provider), Some(id)) => format!("{provider}/{id}"),
        (Some(_) | None, _) => String::from("(gone)"),
    }
}

/// What a session took so far.
pub fn figures(stats: &Value) -> String {
    let tokens = &stats["tokens"];
    format!(
        "{} messages, {} tool calls, {} tokens in, {} out, ${:.4}",
        stats["totalMessages"],
        stats["toolCalls"],
        tokens["input"].as_u64().unwrap_or(0)
            + tokens["cacheRead"].as_u64().unwrap_or(0)
            + tokens["cacheWrite"].as_u64().unwrap_or(0),
        tokens["output"],
        stats["cost"].as_f64().unwrap_or(0.0)
    )
}
