//! `orchestr8 logs`: the journal of an execution, and with `-f` what comes.

use clap::Args;
use serde_json::Value;

use super::follow::{Seen, look};
use super::reaching::{Intent, Reaching};
use super::words::{self, is_final, text};
use super::{Shell, execution_id};
use crate::failure::Failure;
use crate::reach::{self, Reach, escape};
use crate::terminal::{DIM, PLAIN, RED, YELLOW, styled_line};

#[derive(Args)]
pub struct Logs {
    /// The execution: its id, at least eight characters of its beginning, or `last`.
    execution: String,
    /// Go on until it ends.
    #[arg(long, short)]
    follow: bool,
    /// Nothing below this level.
    #[arg(long, value_parser = ["debug", "info", "warn", "error"])]
    level: Option<String>,
    /// Only these types, such as step-complete.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    types: Vec<String>,
    /// Only entries after this one.
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    since: u64,
    #[command(flatten)]
    reaching: Reaching,
}

/// Entries read at once.
const PAGE: u64 = 500;

impl Logs {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        self.reaching.run(shell, Intent::Record, async |reach| self.print(shell, reach).await)
    }

    async fn print(&self, shell: &Shell, reach: &Reach) -> Result<(), Failure> {
        let id = &execution_id::resolve(reach, &self.execution).await?;
        let mut last = self.since;
        let mut seen: Option<Seen> = None;
        loop {
            // The state is read before the journal: what the state counts is then in it.
            if let Some(next) = look(reach, id, seen.as_ref()).await? {
                last = self.page_through(shell, reach, id, last).await?;
                let is_over = is_final(text(&next.execution, "status"));
                seen = Some(next);
                if !self.follow || is_over {
                    return Ok(());
                }
                if reach.is_embedded() {
                    shell.terminal.note(&format!(
                        "nothing more comes: no server runs; go on with orchestr8 resume {id}"
                    ));
                    return Ok(());
                }
            }
        }
    }

    /// Everything after `since`, page by page.
    async fn page_through(&self, shell: &Shell, reach: &Reach, id: &str, since: u64) -> Result<u64, Failure> {
        let mut last = since;
        let mut cursor: Option<String> = None;
        let journal = format!("/v1/executions/{}/journal", escape(id));
        loop {
            let types = (!self.types.is_empty()).then(|| self.types.join(","));
            let query = [
                ("since", (cursor.is_none() && since > 0).then(|| since.to_string())),
                ("cursor", cursor.clone()),
                ("limit", Some(PAGE.to_string())),
                ("level", self.level.clone()),
                ("types", types),
            ];
            let page = reach.get(&reach::path(&journal, &query)).await?;
            for entry in page["entries"].as_array().into_iter().flatten() {
                let sequence = entry["sequence"].as_u64().unwrap_or(0);
                if sequence > last {
                    last = sequence;
                    show(shell, entry);
                }
            }
            cursor = match &page["pagination"]["nextCursor"] {
                Value::Null => None,
                Value::String(cursor) => Some(cursor.clone()),
                cursor => Some(cursor.to_string()),
            };
            if cursor.is_none() || page["pagination"]["hasMore"] != true {
                return Ok(last);
            }
        }
    }
}

/// One entry, one line; with `--json` as it is.
fn show(shell: &Shell, entry: &Value) {
    if shell.terminal.json {
        shell.terminal.record(entry);
        return;
    }
    let level = text(entry, "level");
    let color = match level {
        "error" => RED,
        "warn" => YELLOW,
        _ => "",
    };
    let step = match text(entry, "stepId") {
        "" => String::new(),
        step => format!(" {step}"),
    };
    let data = match &entry["data"] {
        Value::Null => String::new(),
        data if data.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        data => format!(" {DIM}{data}{PLAIN}"),
    };
    let cut = if entry["truncated"].is_object() { " (cut)" } else { "" };
    let at = words::moment(&entry["at"]);
    let sequence = entry["sequence"].as_u64().unwrap_or(0);
    shell.terminal.data(&styled_line(&format!(
        "{DIM}{sequence:>5} {at}{PLAIN} {color}{level:5}{PLAIN} {}{step}{data}{cut}",
        text(entry, "type")
    )));
}
