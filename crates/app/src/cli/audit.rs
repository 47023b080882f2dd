//! `orchestr8 audit verify`: proves that no entry of the audit trail was changed, removed or put in between.

use std::path::PathBuf;

use clap::Subcommand;
use orchestr8_contract::Code;
use orchestr8_kernel::audit::CHAIN;
use orchestr8_kernel::ports::store;
use orchestr8_stores::chain;
use serde_json::json;

use super::Shell;
use crate::failure::Failure;

#[derive(Subcommand)]
pub enum Audit {
    /// Check every entry against the one before it.
    Verify {
        /// The folder of the data to check.
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// A head noted earlier: it must still be in the trail.
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
    },
}

impl Audit {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let Audit::Verify { data_dir, head } = self;
        let (path, look) = super::look(shell, data_dir.clone())?;
        let verified = look.verify_chain(CHAIN).map_err(|error| match error {
            chain::Error::Broken(broken) => {
                Failure::new(Code::StoreCorrupt, format!("{}: {broken}", path.display()))
                    .hinting("entries before it hold; compare with a backup to see what was changed")
            }
            chain::Error::Store(error) => {
                Failure::new(Code::StoreFailed, error.to_string()).hinting("see `orchestr8 doctor`")
            }
        })?;
        let failed = |error: store::Error| {
            Failure::new(Code::StoreFailed, error.to_string()).hinting("see `orchestr8 doctor`")
        };
        if let Some(head) = head
            && look.entry_of(CHAIN, head).map_err(failed)?.is_none()
        {
            let message = format!("{}: no entry has the hash {head}", path.display());
            return Err(Failure::new(Code::StoreCorrupt, message)
                .hinting("entries were cut off since it was noted, or it is of another trail"));
        }
        if shell.terminal.json {
            shell.terminal.value(&json!({"ok": true, "entries": verified.entries, "head": verified.head}));
        } else {
            shell.terminal.data(&format!("ok: {} entries, head {}", verified.entries, verified.head));
        }
        Ok(())
    }
}
