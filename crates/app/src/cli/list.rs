//! `orchestr8 list`: executions, newest first.

use clap::Args;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;
use serde_json::Value;

use super::Shell;
use super::inputs::pairs;
use super::reaching::{Intent, Reaching};
use super::words::{self, cut, moment, text};
use crate::failure::Failure;
use crate::reach;
use crate::terminal::columns;

#[derive(Args)]
pub struct List {
    /// Only those with this status.
    #[arg(long, value_parser = ["queued", "running", "waiting", "paused", "cancelling", "compensating", "completed", "failed", "cancelled", "compensated"])]
    status: Option<String>,
    /// Only those of this workflow.
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Only those with this correlation id.
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
    /// Only those with this tag. Given several times: with all of them.
    #[arg(long = "where", value_name = "NAME=VALUE")]
    tags: Vec<String>,
    /// Only those created since: a moment, a day, or how long ago (2h).
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only those created until.
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=500))]
    limit: u64,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    #[command(flatten)]
    reaching: Reaching,
}

const ERROR_LETTERS: usize = 60;

impl List {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let now_ms = Real::new().now_ms();
        let when = |text: &Option<String>| text.as_deref().map(|text| words::since(text, now_ms)).transpose();
        pairs("--where", &self.tags)?;
        let mut query = vec![
            ("status", self.status.clone()),
            ("workflowId", self.workflow.clone()),
            ("correlationId", self.correlation.clone()),
            ("since", when(&self.since)?),
            ("until", when(&self.until)?),
            ("cursor", self.cursor.clone()),
            ("limit", Some(self.limit.to_string())),
        ];
        query.extend(self.tags.iter().map(|tag| ("where", Some(tag.clone()))));
        let path = reach::path("/v1/executions", &query);
        let page = self.reaching.run(shell, Intent::Record, async |reach| reach.get(&path).await)?;
        if shell.terminal.json {
            shell.terminal.value(&page);
            return Ok(());
        }
        let executions = page["executions"].as_array().cloned().unwrap_or_default();
        if executions.is_empty() {
            shell.terminal.note("there are no such executions; start one with orchestr8 run FILE");
            return Ok(());
        }
        let head = ["EXECUTION", "STATUS", "WORKFLOW", "CREATED", "TOOK", "ERROR"].map(String::from);
        let rows: Vec<[String; 6]> = std::iter::once(head).chain(executions.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        if let Some(cursor) = page["nextCursor"].as_str() {
            shell.terminal.note(&format!("there are more: --cursor {cursor}"));
        }
        Ok(())
    }
}

fn row(execution: &Value) -> [String; 6] {
    let workflow = &execution["workflow"];
    let error = match &execution["error"] {
        Value::String(error) => error.clone(),
        error => text(error, "message").to_owned(),
    };
    [
        text(execution, "executionId").to_owned(),
        text(execution, "status").to_owned(),
        format!("{} {}", text(workflow, "id"), text(workflow, "version")),
        moment(&execution["createdAt"]),
        execution["duration"].as_u64().map_or_else(String::new, words::duration),
        cut(&error, ERROR_LETTERS),
    ]
}
