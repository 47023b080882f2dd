//! `orchestr8 knowledge export`: the tree as a folder of Markdown. Run again it writes what has changed since, or the rest.

use std::path::PathBuf;

use clap::Args;
use orchestr8_knowledge::folder::{Side, Ways};

use super::super::super::Shell;
use super::super::Asking;
use super::sync::Meeting;
use crate::failure::Failure;

#[derive(Args)]
pub struct Export {
    /// The folder; it is made if it is not there.
    folder: PathBuf,
    /// Only what is below this document [default: all documents].
    #[arg(long, value_name = "DOCUMENT")]
    document: Option<String>,
    /// Overwrite files that were changed in the folder; each is kept beside as *.mine.
    #[arg(long)]
    force: bool,
    /// Show what would be written, and write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    asking: Asking,
}

impl Export {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let is_new = !self.folder.exists();
        if is_new {
            std::fs::create_dir_all(&self.folder).map_err(|cause| {
                super::super::super::files::unreadable(&self.folder.display().to_string(), &cause)
            })?;
        }
        let meeting = Meeting {
            root: &self.folder,
            document: self.document.as_deref(),
            ways: Ways { push: false, pull: true, remove: false, prefer: self.force.then_some(Side::Tree) },
            dry_run: self.dry_run,
            yes: true,
            word: "exporting",
        };
        let done = meeting.run(shell, &self.asking);
        if is_new && (self.dry_run || done.is_err()) {
            // Made for nothing; it stays if something is in it.
            let _ = std::fs::remove_dir(&self.folder);
        }
        done
    }
}
