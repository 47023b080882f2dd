//! `orchestr8 backup <file>`: a copy of the store as it is at one moment, whether a server uses it or not.

use std::path::PathBuf;

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_stores::sqlite::backup;
use serde_json::json;

use super::Shell;
use crate::failure::Failure;

#[derive(Args)]
pub struct Backup {
    /// Where to write the copy. It must not exist yet.
    file: PathBuf,
    /// The folder of the data to copy.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Backup {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let (path, look) = super::look(shell, self.data_dir.clone())?;
        let report = look.backup(&self.file).map_err(failure)?;
        if shell.terminal.json {
            shell
                .terminal
                .value(&json!({"from": path, "to": self.file, "bytes": report.bytes, "pages": report.pages}));
        }
        let kib = report.bytes / 1024;
        shell.terminal.note(&format!("{kib} KiB copied and checked: {}", self.file.display()));
        shell.terminal.note(&format!(
            "to restore, stop orchestr8, delete {0}-wal and {0}-shm, and copy it over {0}",
            path.display()
        ));
        Ok(())
    }
}

fn failure(error: backup::Error) -> Failure {
    let (code, hint) = match &error {
        backup::Error::Exists(_) => (Code::IdConflict, "choose another name, or move that file away"),
        backup::Error::Io { .. } => (
            Code::StoreFailed,
            "check that the folder exists, can be written and has room; nothing is left there",
        ),
        backup::Error::Unsound(_) => (
            Code::StoreCorrupt,
            "the store itself is damaged: see `orchestr8 doctor`, and keep older backups",
        ),
        backup::Error::Encryption(_) => (Code::StoreFailed, "nothing is left there; see `orchestr8 doctor`"),
        backup::Error::Store(_) => (Code::StoreFailed, "try again; see `orchestr8 doctor`"),
    };
    Failure::new(code, error.to_string()).hinting(hint)
}
