//! Turns a plain data file into an encrypted one and back, and changes its key. No other process may own the file.
//!
//! The content is copied into a new file beside the old one, compared with it row by row, flushed, and renamed over it. A
//! process that dies at any moment leaves the one or the other, whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use orchestr8_sqlite_vfs::{Attachment, EncryptionKey, RESERVED_BYTES, VFS_NAME};
use rusqlite::Connection;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};

use super::access::DataAccess;
use super::check;
use super::errors::store_error;
use super::fresh::beside;
use super::open::{self, Error};
use super::options::Sync;

/// What was converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversionReport {
    pub tables: usize,
    pub rows: u64,
    pub bytes: u64,
}

/// The name of SQLite's own VFS.
const PLAIN_VFS: &str = "unix";

/// What the new file is called until it is whole.
const UNFINISHED: &str = ".converting";

/// Encrypts a plain data file.
pub fn encrypt(path: &Path, key: &EncryptionKey) -> Result<ConversionReport, Error> {
    convert(path, None, Some(key))
}

/// Writes an encrypted data file as a plain one.
pub fn decrypt(path: &Path, key: &EncryptionKey) -> Result<ConversionReport, Error> {
    convert(path, Some(key), None)
}

/// Wraps the data key of a file with another key. No page is written: pages are encrypted with the data key.
pub fn rekey(path: &Path, old: &EncryptionKey, new: &EncryptionKey) -> Result<(), Error> {
    exists(path)?;
    let (path, _lock) = open::own(path)?;
    Ok(Attachment::rekey(&path, old, new)?)
}

/// Removes what a conversion that was cut off left. Only the owner of the data file may.
pub(super) fn remove_unfinished(data: &Path) -> io::Result<()> {
    let unfinished = beside(data, UNFINISHED);
    // Nearly always there is nothing.
    if unfinished.symlink_metadata().is_err() {
        return Ok(());
    }
    for ending in ["-wal", "-shm", "-journal", ""] {
        remove(&beside(&unfinished, ending))?;
    }
    Ok(())
}

fn convert(
    path: &Path,
    from: Option<&EncryptionKey>,
    to: Option<&EncryptionKey>,
) -> Result<ConversionReport, Error> {
    exists(path)?;
    let (path, _lock) = open::own(path)?;
    let io = |cause| Error::Io { path: path.clone(), cause };
    let source_access = DataAccess::new(&path, from)?;
    source_access.check_log(true)?;
    let source = open::writer(&source_access, Sync::Full)?;
    empty_log(&source, &path)?;
    let unfinished = beside(&path, UNFINISHED);
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&unfinished);
    let file = file.map_err(io)?;
    let target_access = match to {
        None => DataAccess::Plain(unfinished.clone()),
        Some(key) => DataAccess::Encrypted(Attachment::begin(&unfinished, &file, key)?),
    };
    let copied = copy(&source, &target_access);
    drop(source);
    let (tables, rows) = match copied {
        Ok(copied) => copied,
        Err(error) => {
            remove_unfinished(&path).map_err(io)?;
            return Err(error);
        }
    };
    file.sync_all().map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    // The log of the old file is empty, and must not be taken for the log of the new one.
    for ending in ["-wal", "-shm", "-journal"] {
        remove(&beside(&path, ending)).map_err(io)?;
    }
    fs::rename(&unfinished, &path).map_err(io)?;
    File::open(path.parent().unwrap_or(Path::new("/"))).and_then(|folder| folder.sync_all()).map_err(io)?;
    Ok(ConversionReport { tables, rows, bytes })
}

fn exists(path: &Path) -> Result<(), Error> {
    path.metadata().map(|_| ()).map_err(|cause| Error::Io { path: path.to_owned(), cause })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Moves all of the log into the data file.
fn empty_log(source: &Connection, path: &Path) -> Result<(), Error> {
    let busy = source.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    match busy.map_err(store_error)? {
        false => Ok(()),
        true => Err(Error::Held { path: path.to_owned(), pid: None }),
    }
}

/// Copies everything, and proves that the copy is sound and has the same content. Gives the tables and rows.
fn copy(source: &Connection, to: &DataAccess) -> Result<(usize, u64), Error> {
    let (vfs, reserved) = match to.key() {
        None => (PLAIN_VFS, 0),
        Some(_) => (VFS_NAME, RESERVED_BYTES),
    };
    // The connection may open no other file but this one.
    source.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 1).map_err(store_error)?;
    // The statement names the VFS, so it has to be there.
    drop(to.connect().map_err(store_error)?);
    let name = format!("file:{}?vfs={vfs}&reserve={reserved}", escaped(to.path()));
    source.execute("VACUUM INTO ?1", [name]).map_err(store_error)?;
    let target = open::writer(to, Sync::Full)?;
    let differs = |what: String| Error::CopyDiffers { path: to.path().to_owned(), what };
    let report = check::run(&target);
    if !report.is_sound() {
        return Err(differs(format!("{report:?}")));
    }
    let tables = tables(source).map_err(store_error)?;
    if tables != self::tables(&target).map_err(store_error)? {
        return Err(differs(String::from("the tables")));
    }
    let mut rows = 0;
    for table in &tables {
        let digest = digest(source, table).map_err(store_error)?;
        if digest != self::digest(&target, table).map_err(store_error)? {
            return Err(differs(format!("the table {}", table.name)));
        }
        rows += digest.0;
    }
    empty_log(&target, to.path())?;
    Ok((tables.len(), rows))
}

/// A table with rows of its own, and the statement that defines it.
#[derive(PartialEq, Eq)]
struct TableShape {
    name: String,
    sql: String,
    has_rowid: bool,
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<TableShape>> {
    let mut statement = connection.prepare(
        "SELECT s.name, COALESCE(s.sql, ''), l.wr = 0 FROM sqlite_schema s
         JOIN pragma_table_list l ON l.schema = 'main' AND l.name = s.name
         WHERE s.type = 'table' AND s.rootpage > 0 ORDER BY s.name",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(TableShape { name: row.get(0)?, sql: row.get(1)?, has_rowid: row.get(2)? })
    })?;
    rows.collect()
}

/// How many rows a table has, and a hash of all of them in the order of their keys.
fn digest(connection: &Connection, table: &TableShape) -> rusqlite::Result<(u64, [u8; 32])> {
    let name = table.name.replace('"', "\"\"");
    let sql = match table.has_rowid {
        true => format!("SELECT rowid, * FROM \"{name}\" NOT INDEXED ORDER BY rowid"),
        false => format!("SELECT * FROM \"{name}\" NOT INDEXED"),
    };
    let mut statement = connection.prepare(&sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let (mut count, mut hash) = (0, Sha256::new());
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            let number;
            let (kind, bytes): (u8, &[u8]) = match row.get_ref(column)? {
                ValueRef::Null => (0, &[]),
                ValueRef::Integer(integer) => {
                    number = integer.to_be_bytes();
                    (1, &number)
                }
                ValueRef::Real(real) => {
                    number = real.to_be_bytes();
                    (2, &number)
                }
                ValueRef::Text(text) => (3, text),
                ValueRef::Blob(blob) => (4, blob),
            };
            hash.update([kind]);
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
        count += 1;
    }
    Ok((count, hash.finalize().into()))
}

/// A path as it stands in a URI.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                text.push(char::from(*byte))
            }
            other => text.push_str(&format!("%{other:02x}")),
        }
    }
    text
}
