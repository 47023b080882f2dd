//! `orchestr8 knowledge rm`: documents and all below them are hidden, and gone for good after 90 days.

use clap::Args;
use http::Method;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::{Real, iso};
use serde_json::{Value, json};

use super::super::Shell;
use super::super::confirm::confirm;
use super::super::words::{moment, read_duration, text};
use super::Asking;
use super::shelf::{Shelf, document};
use super::tree::{Branches, counted};
use crate::failure::Failure;
use crate::reach;

#[derive(Args)]
pub struct Rm {
    /// The documents: their ids, or paths such as /Handbook/Setup.
    #[arg(required = true)]
    documents: Vec<String>,
    /// Why; it stands in the history.
    #[arg(long)]
    reason: Option<String>,
    /// Later: a moment, or in how long (7d).
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
    /// Show what would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    asking: Asking,
}

impl Rm {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let at = self.at.as_deref().map(when).transpose()?;
        let done = self.asking.run(shell, async |shelf| {
            let found = self.find(shelf).await?;
            let plan = plan(&found);
            if self.dry_run {
                shell.terminal.data(&plan);
                return Ok(None);
            }
            confirm(shell, self.yes, &plan)?;
            let mut done = Vec::new();
            for (entry, _) in &found {
                let query = [("reason", self.reason.clone()), ("delete_at", at.clone())];
                let path = reach::path(&document(text(entry, "id")), &query);
                done.push(shelf.ask(Method::DELETE, &path, None).await?);
            }
            Ok(Some(done))
        })?;
        let Some(done) = done else { return Ok(()) };
        if shell.terminal.json {
            shell.terminal.value(&json!({"documents": done}));
            return Ok(());
        }
        for answer in &done {
            let id = text(answer, "id");
            shell.terminal.data(id);
            shell.terminal.note(&match answer["deleted"] == true {
                true => format!(
                    "deleted; until {} bring it back with: orchestr8 knowledge restore {id}",
                    moment(&answer["purge_at"])
                ),
                false => format!("to be deleted at {}", moment(&answer["delete_at"])),
            });
        }
        Ok(())
    }

    /// Each with how many are below it.
    async fn find(&self, shelf: &Shelf<'_>) -> Result<Vec<(Value, usize)>, Failure> {
        let all = shelf.list(&[]).await?;
        let branches = Branches::of(&all);
        let mut found = Vec::new();
        for named in &self.documents {
            let id = shelf.id(named).await?;
            let entry = all.iter().find(|entry| text(entry, "id") == id).cloned();
            // What is not in the list any more is asked for by itself, and says so.
            let entry = match entry {
                Some(entry) => entry,
                None => shelf.document(&id, None).await?,
            };
            found.push((entry, branches.count(&id)));
        }
        Ok(found)
    }
}

fn plan(found: &[(Value, usize)]) -> String {
    let line = |(entry, below): &(Value, usize)| {
        let more = if *below == 0 { String::new() } else { format!(" with {} below it", counted(*below)) };
        format!("delete {}{more}", text(entry, "path"))
    };
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn when(text: &str) -> Result<String, Failure> {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return Ok(text.to_owned());
    }
    let later = read_duration(text).map_err(|wrong| {
        Failure::new(orchestr8_contract::Code::InvalidArgument, format!("'{text}' is no moment: {wrong}"))
            .hinting("write 2026-01-31T12:00:00Z, or in how long: 7d")
    })?;
    Ok(iso(Real::new().now_ms().saturating_add(i64::try_from(later.as_millis()).unwrap_or(i64::MAX))))
}
