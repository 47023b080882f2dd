//! `orchestr8 knowledge restore`: what was deleted is back, with all that went with it.

use clap::Args;
use orchestr8_contract::Code;
use serde_json::json;

use super::super::Shell;
use super::super::words::text;
use super::Asking;
use super::shelf::{Shelf, document, is_id};
use super::tree::deleted;
use crate::failure::Failure;

#[derive(Args)]
pub struct Restore {
    /// The deleted document: its id, or its title if only one has it.
    document: String,
    #[command(flatten)]
    asking: Asking,
}

impl Restore {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let answer = self.asking.run(shell, async |shelf| {
            let id = self.id(shelf).await?;
            shelf.post(&format!("{}/restore", document(&id)), &json!({})).await
        })?;
        match shell.terminal.json {
            true => shell.terminal.value(&answer),
            false => shell.terminal.note(&format!("restored, revision {}", answer["revision"])),
        }
        Ok(())
    }

    async fn id(&self, shelf: &Shelf<'_>) -> Result<String, Failure> {
        if is_id(&self.document) {
            return Ok(self.document.clone());
        }
        let title = self.document.rsplit('/').next().unwrap_or(&self.document).replace("%2F", "/");
        let all = deleted(shelf).await?;
        let ids: Vec<&str> =
            all.iter().filter(|entry| text(entry, "title") == title).map(|entry| text(entry, "id")).collect();
        match ids.as_slice() {
            [id] => Ok((*id).to_owned()),
            [] => Err(Failure::new(Code::NotFound, format!("nothing deleted is titled '{title}'"))
                .hinting("`orchestr8 knowledge tree --deleted` lists what can be restored")),
            several => Err(Failure::new(
                Code::IdConflict,
                format!("{} deleted documents are titled '{title}'", several.len()),
            )
            .listing(several.iter().map(|id| (*id).to_owned()).collect())
            .hinting("name the one you mean by its id")),
        }
    }
}
