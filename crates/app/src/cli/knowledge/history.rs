//! `orchestr8 knowledge history`: who changed a document, when and how.

use clap::Args;
use serde_json::Value;

use super::super::Shell;
use super::super::words::{cut, moment, text};
use super::Asking;
use super::shelf::document;
use crate::failure::Failure;
use crate::reach;
use crate::terminal::columns;

#[derive(Args)]
pub struct History {
    /// The document: its id, or its path such as /Handbook/Setup. A deleted one is named by its id.
    document: String,
    /// Only those before this revision.
    #[arg(long, value_name = "REVISION")]
    before: Option<u64>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    #[command(flatten)]
    asking: Asking,
}

const LETTERS: usize = 50;

impl History {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let answer = self.asking.run(shell, async |shelf| {
            let id = shelf.id(&self.document).await?;
            let before = self.before.map(|number| number.to_string());
            let query = [("before_revision", before), ("limit", Some(self.limit.to_string()))];
            shelf.get(&reach::path(&format!("{}/history", document(&id)), &query)).await
        })?;
        if shell.terminal.json {
            shell.terminal.value(&answer);
            return Ok(());
        }
        let revisions = answer["revisions"].as_array().cloned().unwrap_or_default();
        let head = ["REVISION", "WHEN", "WHAT", "BY", "TITLE", "REASON"].map(String::from);
        let rows: Vec<[String; 6]> = std::iter::once(head).chain(revisions.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        let last = revisions.last().and_then(|revision| revision["revision"].as_u64());
        if let Some(last) = last.filter(|last| *last > 1 && revisions.len() as u64 == self.limit) {
            shell.terminal.note(&format!("there are more: --before {last}"));
        }
        Ok(())
    }
}

fn row(revision: &Value) -> [String; 6] {
    let short = |name: &str| cut(text(revision, name), LETTERS);
    [
        revision["revision"].to_string(),
        moment(&revision["at"]),
        short("op"),
        short("by"),
        short("title"),
        short("reason"),
    ]
}
