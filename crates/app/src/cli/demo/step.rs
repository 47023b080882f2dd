//! A step of the demo as a program of its own: it notes that it began, works a moment, and does its thing once for each key.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use orchestr8_contract::Code;
use serde_json::json;

use super::notes::Notes;
use crate::cli::Shell;
use crate::failure::Failure;
use crate::runtime::block_on;

#[derive(Args)]
pub struct Step {
    /// Which one.
    name: String,
    /// Where it notes what it does.
    #[arg(long, value_name = "FILE")]
    notes: PathBuf,
    /// The same for every attempt.
    #[arg(long)]
    key: String,
    /// How long it works.
    #[arg(long, value_name = "MS")]
    work_ms: u64,
}

impl Step {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let notes = Notes::at(self.notes.clone());
        let failed =
            |cause: std::io::Error| Failure::new(Code::StoreFailed, format!("nothing can be noted: {cause}"));
        notes.add("begun", &self.name).map_err(failed)?;
        block_on(async {
            tokio::time::sleep(Duration::from_millis(self.work_ms)).await;
            Ok(())
        })?;
        let is_new = notes.is_new(&self.key).map_err(failed)?;
        if is_new {
            notes.add("done", &self.name).map_err(failed)?;
        }
        shell.terminal.value(&json!({"done": self.name, "repeat": !is_new}));
        Ok(())
    }
}
