//! The trail of a governed workspace and the data file that knows where it ends, as `audit verify` and `audit accept` use them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::Code;
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::{Batch, Error, Row, Statement};
use orchestr8_stores::sqlite::Look;
use orchestr8_workspace::ServerSigningKey;
use orchestr8_workspace::root::Root;
use orchestr8_workspace::trail::{self, TrailHeads};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::reaching::{Intent, Reaching};
use super::words::text;
use super::{Running, Shell};
use crate::failure::Failure;

/// Compares a trail with the end that the data file knows. Without a data file, or a record in it, it says that nothing was compared.
pub fn check_end(shell: &Shell, data_dir: Option<PathBuf>, root: &Root) -> Result<(), Failure> {
    let unknown = "the trail is compared with itself alone: no data file here knows where it ends";
    let Ok((_, look)) = super::look(shell, data_dir) else {
        shell.terminal.note(unknown);
        return Ok(());
    };
    let heads = TrailHeads::new(Arc::new(LookStore(Mutex::new(look))), ServerSigningKey::default(), root);
    match heads.compare(root) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            shell.terminal.note(unknown);
            Ok(())
        }
        Err(error @ (trail::Error::Tampered { .. } | trail::Error::Broken { .. })) => {
            let what = format!("{}: TAMPERED: {error}", root.path().display());
            Err(Failure::new(Code::StoreCorrupt, what)
                .hinting("compare with a backup; `orchestr8 audit accept --workspace DIR --reason TEXT` goes on with it as it is"))
        }
        Err(error @ (trail::Error::Locked | trail::Error::Io(_) | trail::Error::Closed)) => {
            Err(Failure::new(Code::StoreFailed, format!("{}: {error}", root.path().display())))
        }
    }
}

/// Goes on with a trail as it is.
pub fn accept(
    shell: &Shell,
    data_dir: Option<PathBuf>,
    workspace: &Path,
    reason: &str,
) -> Result<(), Failure> {
    let real = std::fs::canonicalize(workspace)
        .map_err(|error| Failure::new(Code::NotFound, format!("{}: {error}", workspace.display())))?;
    let body = json!({"workspace": real, "reason": reason});
    let reaching = Reaching { running: Running { data_dir, ..Running::default() }, ..Reaching::default() };
    let accepted: Value =
        reaching.run(shell, Intent::Record, async |reach| reach.post("/v1/trails/accept", &body).await)?;
    match shell.terminal.json {
        true => shell.terminal.value(&accepted),
        false => shell.terminal.data(&format!(
            "accepted: {} entries, head {}",
            accepted["entries"],
            text(&accepted, "head")
        )),
    }
    Ok(())
}

/// A data file that is only read.
struct LookStore(Mutex<Look>);

impl Store for LookStore {
    fn commit(&self, _: Batch) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(std::future::ready(Err(Error::Refused(String::from("the data file is only read")))))
    }

    fn query(&self, statement: Statement) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        Box::pin(std::future::ready(self.0.lock().query(&statement)))
    }

    fn watch(&self, _: &str) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}
