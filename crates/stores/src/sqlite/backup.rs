//! A copy of the whole database as it was at one moment, made while it is in use.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use orchestr8_kernel::ports::store;
use orchestr8_sqlite_vfs::{Attachment, EncryptionKey};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::access::DataAccess;
use super::check;
use super::errors::store_error;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupReport {
    pub pages: u32,
    pub bytes: u64,
}

/// Why there is no backup. Nothing is left at the place it was to be written to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} exists already; a backup overwrites nothing")]
    Exists(PathBuf),
    #[error("{path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
    #[error("the copy does not pass its check: {0}")]
    Unsound(String),
    #[error("the copy could not be encrypted: {0}")]
    Encryption(#[from] orchestr8_sqlite_vfs::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Copies into a file beside the target, checks it, flushes it, and only then gives it its name. With a key the copy is
/// encrypted, with a data key of its own.
pub(super) fn run(
    source: &Connection,
    to: &Path,
    key: Option<&EncryptionKey>,
) -> Result<BackupReport, Error> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |cause| Error::Io { path, cause }
    };
    if to.symlink_metadata().is_ok() {
        return Err(Error::Exists(to.to_owned()));
    }
    let (partial, file) = Partial::create(to).map_err(at(to))?;
    let target = match key {
        None => DataAccess::Plain(partial.0.clone()),
        Some(key) => DataAccess::Encrypted(Attachment::begin(&partial.0, &file, key)?),
    };
    let pages = copy(source, &target)?;
    file.sync_all().map_err(at(&partial.0))?;
    let bytes = file.metadata().map_err(at(&partial.0))?.len();
    publish(&partial.0, to)?;
    File::open(folder_of(to)).and_then(|folder| folder.sync_all()).map_err(at(to))?;
    Ok(BackupReport { pages, bytes })
}

fn copy(source: &Connection, to: &DataAccess) -> Result<u32, Error> {
    let mut target = to.connect().map_err(store_error)?;
    let backup = Backup::new(source, &mut target).map_err(store_error)?;
    // All pages in one step: one moment of the source, and never a new start because somebody wrote in between.
    match backup.step(-1).map_err(store_error)? {
        StepResult::Done => {}
        _ => return Err(store::Error::Full(String::from("the database could not be read in one go")).into()),
    }
    drop(backup);
    // One file that needs no log beside it, even on a medium that cannot be written.
    let mode = target.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get::<_, String>(0));
    mode.map_err(store_error)?;
    match check::integrity(&target)?.into_iter().next() {
        Some(problem) => Err(Error::Unsound(problem)),
        None => Ok(target.pragma_query_value(None, "page_count", |row| row.get(0)).map_err(store_error)?),
    }
}

/// Gives the copy its name, unless somebody has taken it meanwhile.
fn publish(partial: &Path, to: &Path) -> Result<(), Error> {
    let renamed = match renameat_with(CWD, partial, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can refuse to replace; there the look at the beginning has to do.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::rename(partial, to),
        Err(rustix::io::Errno::EXIST) => return Err(Error::Exists(to.to_owned())),
        other => other.map_err(io::Error::from),
    };
    renamed.map_err(|cause| Error::Io { path: to.to_owned(), cause })
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file under its working name; it goes when this goes, unless it was renamed.
struct Partial(PathBuf);

impl Partial {
    fn create(to: &Path) -> io::Result<(Self, File)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = to.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
        let mut name = name.to_owned();
        name.push(format!(".{}-{}.partial", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        // In full, because SQLite reads a name that begins with `file:` as something else.
        let path = folder_of(to).canonicalize()?.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok((Self(path), file))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        let _ = std::fs::remove_file(&self.0);
    }
}
