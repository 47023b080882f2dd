//! What the SQLite store is opened with.

use std::path::PathBuf;
use std::sync::Arc;

use orchestr8_sqlite_vfs::EncryptionKey;

use super::faults::{FailPlan, NoFaults};
use crate::merkle::{AUDIT_LOG, LogSource};
use crate::migrations::Migration;

/// Called once when the store can no longer vouch for what is on the disk. The app's logs the text and aborts the process;
/// the default aborts. If it returns, the store is closed and everybody who waits finds it so.
pub type OnFatal = Arc<dyn Fn(&str) + Send + std::marker::Sync>;

#[derive(Clone)]
pub struct Options {
    pub place: Place,
    pub sync: Sync,
    /// With it the data file is encrypted: a new one is made so, and a plain one is refused.
    pub key: Option<EncryptionKey>,
    /// The lists of all crates that persist, joined, in the order in which they are applied.
    pub migrations: Vec<Migration>,
    /// The Merkle logs that are kept.
    pub logs: Vec<LogSource>,
    /// Restart the logs from the rows that are there, whatever was recorded about them. For people who have decided that the
    /// data is to be used although it does not agree with a signed head.
    pub adopt_logs: bool,
    /// Threads for long reads, and as many connections for short ones. Memory has none.
    pub readers: usize,
    /// The database may not grow beyond this many pages; a batch that needs more gets `Error::Full`.
    pub pages_max: Option<u32>,
    pub on_fatal: OnFatal,
    /// What goes wrong on purpose, for tests.
    pub faults: Arc<dyn FailPlan>,
}

/// Where the data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Beside it lie the log (`-wal`, `-shm`) and the lock of the process that owns it (`.lock`).
    File(PathBuf),
    /// Gone when the store is closed.
    Memory,
}

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// When it is on stable storage: it survives a killed process and a loss of power.
    #[default]
    Full,
    /// The relaxed mode, `store.sync = "normal"`: when the operating system has it. A killed process loses nothing. A loss
    /// of power or a crash of the operating system may lose the newest commits, up to all since the log was last moved into
    /// the database file (128 MiB of log), though acknowledged; never older ones, never half a batch, and the file stays
    /// sound: what remains is a prefix of the commits in their order.
    Normal,
}

impl Options {
    pub fn new(place: Place, migrations: Vec<Migration>) -> Self {
        Self {
            place,
            sync: Sync::Full,
            key: None,
            migrations,
            logs: vec![AUDIT_LOG],
            adopt_logs: false,
            readers: 2,
            pages_max: None,
            on_fatal: Arc::new(|_| std::process::abort()),
            faults: Arc::new(NoFaults),
        }
    }
}
