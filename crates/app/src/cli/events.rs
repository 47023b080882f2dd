//! `orchestr8 events`: what has happened to executions, and with `-f` what happens.

use clap::Args;
use orchestr8_contract::Code;
use serde_json::Value;

use super::reaching::{Intent, Reaching};
use super::words::{moment, text};
use super::{Shell, execution_id};
use crate::failure::Failure;
use crate::reach::{self, Event, Reach};
use crate::terminal::{DIM, PLAIN, styled_line};

#[derive(Args)]
pub struct Events {
    /// Go on as things happen, until Ctrl-C. Needs a server.
    #[arg(long, short)]
    follow: bool,
    /// Only what happens to this execution: its id, at least eight characters of its beginning, or `last`.
    #[arg(long, value_name = "ID")]
    execution: Option<String>,
    /// Only what came after the event with this id.
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Stop after so many events.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    reaching: Reaching,
}

impl Events {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        self.reaching.run(shell, Intent::Record, async |reach| self.print(shell, reach).await)
    }

    async fn print(&self, shell: &Shell, reach: &Reach) -> Result<(), Failure> {
        let left = self.limit.unwrap_or(u64::MAX);
        let execution = match &self.execution {
            Some(given) => Some(execution_id::resolve(reach, given).await?),
            None => None,
        };
        match (self.follow, reach.is_embedded()) {
            (false, _) => self.past(shell, reach, execution, left).await,
            (true, false) => self.future(shell, reach, execution, left).await,
            (true, true) => Err(Failure::new(
                Code::Unavailable,
                "no server runs, so nothing happens that could be followed",
            )
            .hinting("start one with orchestr8 serve; without -f you see what has happened")),
        }
    }

    /// What has happened until this moment. The stream has no end, but its greeting says how far it has come; so this reads
    /// all events up to there and leaves out the others itself.
    async fn past(
        &self,
        shell: &Shell,
        reach: &Reach,
        execution: Option<String>,
        mut left: u64,
    ) -> Result<(), Failure> {
        let now = match reach.events(EVENTS, None).await?.next().await? {
            Some(greeting) => number(&greeting.id),
            None => 0,
        };
        let after = self.after.clone().unwrap_or_else(|| String::from("0"));
        let mut last = number(&after);
        let mut events = reach.events(EVENTS, Some(&after)).await?;
        while last < now && left > 0 {
            let Some(event) = events.next().await? else { return Ok(()) };
            last = number(&event.id);
            let Some(value) = read(&event) else { continue };
            if execution.as_ref().is_none_or(|id| text(&value, "executionId") == id) {
                show(shell, &event, &value);
                left -= 1;
            }
        }
        Ok(())
    }

    /// What happens. A connection that breaks goes on where it was.
    async fn future(
        &self,
        shell: &Shell,
        reach: &Reach,
        execution: Option<String>,
        mut left: u64,
    ) -> Result<(), Failure> {
        let path = reach::path(EVENTS, &[("executionId", execution)]);
        let mut after = self.after.clone();
        while left > 0 {
            let mut events = reach.events(&path, after.as_deref()).await?;
            while let Some(event) = events.next().await? {
                after = Some(event.id.clone()).filter(|id| !id.is_empty()).or(after);
                if let Some(value) = read(&event) {
                    show(shell, &event, &value);
                    left -= 1;
                }
                if left == 0 {
                    break;
                }
            }
        }
        Ok(())
    }
}

const EVENTS: &str = "/v1/events";

fn number(id: &str) -> u64 {
    id.parse().unwrap_or(0)
}

/// An event that counts; greetings and figures do not.
fn read(event: &Event) -> Option<Value> {
    let value: Value = serde_json::from_str(&event.data).ok()?;
    let counts = !matches!(text(&value, "type"), "connection.established" | "metrics.update");
    counts.then_some(value)
}

fn show(shell: &Shell, event: &Event, value: &Value) {
    if shell.terminal.json {
        shell.terminal.record(value);
        return;
    }
    let kind = text(value, "type");
    let step = match text(value, "stepId") {
        "" => String::new(),
        step => format!(" {step}"),
    };
    let data = match &value["data"] {
        Value::Null => String::new(),
        data => format!(" {DIM}{data}{PLAIN}"),
    };
    let at = moment(&value["timestamp"]);
    let line = format!("{DIM}{:>6} {at}{PLAIN} {} {kind}{step}{data}", event.id, text(value, "executionId"));
    shell.terminal.data(&styled_line(&line));
}
