//! What the VFS does not open: other keys, other kinds of files, files that are not attached.

use orchestr8_sqlite_vfs::{Attachment, Error, VFS_NAME, open_connection};
use rusqlite::{Connection, ErrorCode};

use crate::fixture::{beside, connect, content, create, flags, key, plain};

#[test]
fn another_key_a_plain_file_and_anything_else_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let own = key();
    drop(create(&root.join("sealed"), &own));
    plain(&root.join("plain"));
    std::fs::write(root.join("other"), [7; 20_000]).unwrap();
    std::fs::write(root.join("short"), "").unwrap();
    let open = |name: &str| Attachment::open(&root.join(name), &own);
    assert!(open("sealed").is_ok());
    assert!(matches!(Attachment::open(&root.join("sealed"), &key()), Err(Error::WrongKey(_))));
    assert!(matches!(open("plain"), Err(Error::NotEncrypted(_))));
    assert!(matches!(open("other"), Err(Error::Unknown(_))));
    assert!(matches!(open("short"), Err(Error::Unknown(_))));
    assert!(matches!(open("none"), Err(Error::Io { .. })));
    let attached = open("sealed").unwrap();
    connect(&attached);
    assert!(
        matches!(Attachment::open(&root.join("sealed"), &key()), Err(Error::WrongKey(_))),
        "while it is open"
    );
    drop(attached);
    let stranger = Connection::open_with_flags_and_vfs(root.join("sealed"), flags(), VFS_NAME);
    assert_eq!(stranger.unwrap_err().sqlite_error_code(), Some(ErrorCode::CannotOpen), "not attached");
}

#[test]
fn a_planted_journal_is_not_looked_at_and_none_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("sealed");
    let attached = create(&path, &key());
    connect(&attached).execute("INSERT INTO t VALUES (1, x'01')", []).unwrap();
    // Out of the mode with a log, where SQLite would look for a journal.
    let connection = connect(&attached);
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |row| row.get(0)).unwrap();
    assert_eq!(mode, "memory");
    drop(connection);
    let planted = [b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7".as_slice(), &[0xff; 9000]].concat();
    std::fs::write(beside(&path, "-journal"), &planted).unwrap();
    let connection = connect(&attached);
    assert_eq!(content(&connection).len(), 1);
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).unwrap();
    let refused = connection.execute("INSERT INTO t VALUES (2, x'02')", []).unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::CannotOpen));
    assert_eq!(std::fs::read(beside(&path, "-journal")).unwrap(), planted);
}

#[test]
fn temporary_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("sealed");
    let attached = create(&path, &key());
    let connection = open_connection(&attached, flags()).unwrap();
    connection
        .execute_batch("PRAGMA temp_store = FILE; PRAGMA cache_size = 5; PRAGMA temp.cache_size = 1")
        .unwrap();
    let spill = "CREATE TEMP TABLE x AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
                 SELECT randomblob(500) AS b FROM n";
    assert_eq!(connection.execute_batch(spill).unwrap_err().sqlite_error_code(), Some(ErrorCode::CannotOpen));
}

#[test]
fn after_a_change_of_keys_only_the_new_one_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("sealed");
    let (old, new) = (key(), key());
    let attached = create(&path, &old);
    connect(&attached).execute("INSERT INTO t VALUES (1, x'01')", []).unwrap();
    drop(attached);
    Attachment::rekey(&path, &old, &new).unwrap();
    assert!(matches!(Attachment::open(&path, &old), Err(Error::WrongKey(_))));
    assert_eq!(content(&connect(&Attachment::open(&path, &new).unwrap())).len(), 1);
    assert!(matches!(Attachment::rekey(&path, &old, &key()), Err(Error::WrongKey(_))));
}
