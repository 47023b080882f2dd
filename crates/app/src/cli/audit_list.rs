//! `orchestr8 audit list`: the entries of the audit trail, as the server shows them to those who may read it.

use clap::Args;
use serde_json::{Value, json};

use super::Shell;
use super::reaching::{Intent, Reaching};
use super::words::{moment, text};
use crate::failure::Failure;
use crate::reach::{Reach, path};
use crate::terminal::columns;

const AUDIT: &str = "/v1/audit";

/// Entries on one page of the server.
const PAGE: usize = 500;

#[derive(Args)]
pub struct List {
    /// Only what is about this id: an execution, a session, a document, a message, a request.
    #[arg(long, value_name = "ID")]
    object: Option<String>,
    /// Only this action.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only what this principal did.
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Only what ended so: success, tool_error, refused, timeout, …
    #[arg(long, value_name = "END")]
    end: Option<String>,
    /// At most this many, the newest.
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50)]
    lines: usize,
    #[command(flatten)]
    reaching: Reaching,
}

impl List {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let entries = self.reaching.run(shell, Intent::Record, async |reach| self.fetch(reach).await)?;
        if shell.terminal.json {
            shell.terminal.value(&json!({"entries": entries}));
            return Ok(());
        }
        if entries.is_empty() {
            shell.terminal.note("no entry fits");
            return Ok(());
        }
        let row = |entry: &Value| {
            let mark = if entry["intact"] == false { " CHANGED" } else { "" };
            let end = entry["errorCode"].as_str().or(entry["outcome"].as_str()).unwrap_or(text(entry, "end"));
            [
                text(entry, "id").to_owned(),
                moment(&entry["at"]),
                text(entry, "action").to_owned(),
                text(entry, "principal").to_owned(),
                objects(entry),
                format!("{} {}", text(entry, "face"), text(entry, "source")),
                format!("{end}{mark}"),
            ]
        };
        let head = ["ENTRY", "WHEN", "ACTION", "PRINCIPAL", "OBJECT", "SOURCE", "END"].map(String::from);
        let rows: Vec<_> = std::iter::once(head).chain(entries.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        Ok(())
    }

    async fn fetch(&self, reach: &Reach) -> Result<Vec<Value>, Failure> {
        let (mut entries, mut cursor) = (Vec::new(), None);
        while entries.len() < self.lines {
            let limit = (self.lines - entries.len()).min(PAGE).to_string();
            let query = [
                ("object", self.object.clone()),
                ("action", self.action.clone()),
                ("principal", self.principal.clone()),
                ("end", self.end.clone()),
                ("limit", Some(limit)),
                ("cursor", cursor),
            ];
            let page = reach.get(&path(AUDIT, &query)).await?;
            entries.extend(page["entries"].as_array().cloned().unwrap_or_default());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        Ok(entries)
    }
}

/// The object of an entry, and how many more there are.
fn objects(entry: &Value) -> String {
    let more = entry["objects"].as_array().map_or(0, |objects| objects.len().saturating_sub(1));
    match (entry["object"].as_str(), more) {
        (None, _) => String::from("-"),
        (Some(object), 0) => object.to_owned(),
        (Some(object), more) => format!("{object} +{more}"),
    }
}
