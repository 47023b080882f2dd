//! A sealed database and a plain one beside it, to do the same to both.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use orchestr8_sqlite_vfs::{Attachment, EncryptionKey, open_connection, reserve_page_bytes};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

pub const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
    CREATE INDEX t_body ON t (substr(body, 1, 20));
    CREATE VIRTUAL TABLE words USING fts5 (body);";

pub fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

pub fn key() -> EncryptionKey {
    EncryptionKey::generate().unwrap()
}

pub fn beside(path: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", path.display()))
}

/// An image of an empty database with reserved bytes, in WAL mode.
pub fn image(schema: &str) -> Vec<u8> {
    let mut connection = Connection::open_in_memory().unwrap();
    reserve_page_bytes(&connection).unwrap();
    connection.execute_batch("PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL").unwrap();
    connection.execute_batch(schema).unwrap();
    let mut bytes = connection.serialize("main").unwrap().to_vec();
    bytes[18..20].copy_from_slice(&[2, 2]);
    bytes
}

pub fn create(path: &Path, key: &EncryptionKey) -> Attachment {
    std::fs::write(path, Attachment::seal_image(&image(SCHEMA), key).unwrap()).unwrap();
    Attachment::open(path, key).unwrap()
}

pub fn connect(attached: &Attachment) -> Connection {
    let connection = open_connection(attached, flags()).unwrap();
    connection
        .execute_batch("PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 20")
        .unwrap();
    connection
}

pub fn plain(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;
             PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 20",
        )
        .unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection
}

/// All rows of all tables.
pub fn content(connection: &Connection) -> Vec<(i64, Value)> {
    let mut all = Vec::new();
    for sql in ["SELECT id, body FROM t ORDER BY id", "SELECT rowid, body FROM words ORDER BY rowid"] {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        all.extend(rows.map(Result::unwrap));
    }
    all
}

pub fn check(connection: &Connection) {
    let found: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

/// A copy of a database into a new sealed file, as a backup is made.
pub fn back_up(from: &Connection, to: &Path, key: &EncryptionKey) -> Attachment {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(to).unwrap();
    let attached = Attachment::begin(to, &file, key).unwrap();
    let mut target = open_connection(&attached, flags()).unwrap();
    rusqlite::backup::Backup::new(from, &mut target).unwrap().step(-1).unwrap();
    let mode: String =
        target.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
    check(&target);
    attached
}
