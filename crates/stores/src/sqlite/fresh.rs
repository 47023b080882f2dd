//! A data file that was not there before: made whole in memory and put in its place in one step.
//!
//! SQLite would write it in several transactions, the switch to a write-ahead log and the migrations, with a dozen flushes
//! between them. This way there are two, and a crash leaves either no data file or all of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use orchestr8_sqlite_vfs::{Attachment, EncryptionKey, reserve_page_bytes};
use rusqlite::{Connection, MAIN_DB};

use super::errors::store_error;
use super::limits;
use super::open::{Error, guard, migrate};
use crate::migrations::Migration;

/// Where the header of a database says how it is written and read, and what stands there for a write-ahead log.
const VERSIONS: std::ops::Range<usize> = 18..20;
const WITH_LOG: [u8; 2] = [2, 2];

/// Only whoever has the lock may, and nobody may have the file open.
pub(super) fn create(
    path: &Path,
    migrations: &[Migration],
    key: Option<&EncryptionKey>,
) -> Result<(), Error> {
    let bytes = match key {
        None => image(migrations, false)?,
        Some(key) => Attachment::seal_image(&image(migrations, true)?, key)?,
    };
    put(path, &bytes).map_err(|cause| Error::Io { path: path.to_owned(), cause })
}

/// The bytes of an empty database in the shape that the migrations give it.
fn image(migrations: &[Migration], reserve: bool) -> Result<Vec<u8>, Error> {
    let mut connection = Connection::open_in_memory().map_err(store_error)?;
    guard(&connection).map_err(store_error)?;
    if reserve {
        reserve_page_bytes(&connection).map_err(store_error)?;
    }
    connection.pragma_update(None, "page_size", limits::PAGE_BYTES).map_err(store_error)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(store_error)?;
    migrate(&connection, migrations)?;
    let mut bytes = connection.serialize(MAIN_DB).map_err(store_error)?.to_vec();
    if let Some(versions) = bytes.get_mut(VERSIONS) {
        versions.copy_from_slice(&WITH_LOG);
    }
    Ok(bytes)
}

pub(super) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The log of a data file that is gone says nothing about this one, but SQLite would take it for its own.
    for ending in ["-wal", "-shm", "-journal"] {
        match fs::remove_file(beside(path, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    let unfinished = beside(path, ".new");
    // What a crash left; a link there is removed and not followed.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::TABLES;

    #[test]
    fn the_image_is_a_sound_database_with_our_settings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        create(&path, TABLES, None).unwrap();
        assert!(!beside(&path, ".new").exists());
        let connection = Connection::open(&path).unwrap();
        let text = |name: &str| {
            connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap()
        };
        assert_eq!(text("journal_mode"), String::from("wal").into());
        assert_eq!(text("page_size"), i64::from(limits::PAGE_BYTES).into());
        assert_eq!(text("auto_vacuum"), 2.into());
        assert_eq!(text("integrity_check"), String::from("ok").into());
    }

    #[test]
    fn the_log_of_a_data_file_that_is_gone_is_not_taken_for_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("data"), folder.path().join("other"));
        create(&other, TABLES, None).unwrap();
        let connection = Connection::open(&other).unwrap();
        connection.execute_batch("CREATE TABLE left_over (x TEXT) STRICT").unwrap();
        fs::copy(beside(&other, "-wal"), beside(&path, "-wal")).unwrap();
        create(&path, TABLES, None).unwrap();
        let left: i64 = Connection::open(&path)
            .unwrap()
            .query_row("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'left_over'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(left, 0);
    }
}
