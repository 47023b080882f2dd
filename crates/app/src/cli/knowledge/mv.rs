//! `orchestr8 knowledge mv`: a document goes below another one, or to another place among its siblings.

use clap::Args;
use serde_json::json;

use super::super::Shell;
use super::Asking;
use super::shelf::document;
use crate::failure::Failure;

#[derive(Args)]
pub struct Mv {
    /// The document: its id, or its path such as /Handbook/Setup.
    document: String,
    /// What it goes below; `/` is the root.
    parent: String,
    /// Put it before this one.
    #[arg(long, value_name = "DOCUMENT", conflicts_with = "at")]
    before: Option<String>,
    /// Put it at this number among them, from 0 [default: at the end].
    #[arg(long, value_name = "NUMBER")]
    at: Option<u64>,
    /// Only if the document is at this revision.
    #[arg(long, short, value_name = "NUMBER")]
    revision: Option<u64>,
    #[command(flatten)]
    asking: Asking,
}

impl Mv {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let answer = self.asking.run(shell, async |shelf| {
            let id = shelf.id(&self.document).await?;
            let mut args = json!({"new_parent_id": shelf.parent(&self.parent).await?});
            if let Some(before) = &self.before {
                args["position"] = json!({"before": shelf.id(before).await?});
            }
            if let Some(at) = self.at {
                args["position"] = json!({"ordering": at});
            }
            if let Some(revision) = self.revision {
                args["last_known_revision"] = revision.into();
            }
            shelf.post(&format!("{}/move", document(&id)), &args).await
        })?;
        match shell.terminal.json {
            true => shell.terminal.value(&answer),
            false => shell.terminal.note(&format!("moved, revision {}", answer["revision"])),
        }
        Ok(())
    }
}
