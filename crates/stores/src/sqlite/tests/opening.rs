//! Opening: whose file it is, who may read it, its settings and its migrations.

use std::os::unix::fs::PermissionsExt;

use orchestr8_kernel::ports::store::Store;
use rusqlite::Connection;

use super::{beside, file, insert, items, opened, path, suite_opened};
use crate::migrations::{self, Migration};
use crate::sqlite::{Error, Options, Place, Sync, open};
use crate::suite::TABLES;

const MORE: Migration = Migration { name: "test/0001-more", sql: "CREATE TABLE more (x TEXT) STRICT" };

fn with(folder: &tempfile::TempDir, migrations: &[Migration]) -> Result<crate::Sqlite, Error> {
    open(Options::new(file(folder), migrations.to_vec()))
}

#[tokio::test]
async fn what_was_committed_is_there_after_closing() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    store.commit(insert(1)).await.unwrap();
    drop(store);
    let store = suite_opened(&folder);
    store.commit(insert(2)).await.unwrap();
    assert_eq!(items(&store).await, [1, 2]);
}

#[tokio::test]
async fn files_are_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    store.commit(insert(1)).await.unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let data = path(&folder);
    assert_eq!(mode(data.parent().unwrap()), 0o700);
    for ending in ["", "-wal", "-shm", ".lock"] {
        assert_eq!(mode(&beside(&data, ending)), 0o600, "{ending}");
    }
}

#[tokio::test]
async fn the_settings_are_those_we_promise() {
    for (sync, level) in [(Sync::Full, 2), (Sync::Normal, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(Options { sync, ..Options::new(file(&folder), TABLES.to_vec()) }).unwrap();
        let read = |connection: &Connection, name: &str| {
            connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap()
        };
        let settings = store.0.on_writer(move |engine| {
            let names = [
                "synchronous",
                "page_size",
                "foreign_keys",
                "trusted_schema",
                "cell_size_check",
                "auto_vacuum",
            ];
            names.map(|name| read(&engine.connection, name))
        });
        assert_eq!(settings.await.unwrap(), [level, 8192, 1, 0, 1, 2]);
        let log = store.0.on_writer(|engine| {
            engine.connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0)).unwrap()
        });
        assert_eq!(log.await.unwrap(), "wal");
    }
}

#[test]
fn a_file_has_one_owner_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    let error = with(&folder, TABLES).err().unwrap();
    assert!(matches!(&error, Error::Held { pid: Some(pid), .. } if *pid == std::process::id()));
    assert!(error.to_string().contains(&format!("the process {}", std::process::id())), "{error}");
    drop(store);
    with(&folder, TABLES).unwrap();
}

#[test]
fn a_database_of_another_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("other.sqlite3");
    let other = Connection::open(&data).unwrap();
    other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
    drop(other);
    let before = std::fs::read(&data).unwrap();
    let error = open(Options::new(Place::File(data.clone()), vec![])).err().unwrap();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read(&data).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("notes.txt");
    std::fs::write(&data, "dear diary ".repeat(1000)).unwrap();
    assert!(open(Options::new(Place::File(data.clone()), vec![])).is_err());
    assert_eq!(std::fs::read_to_string(&data).unwrap(), "dear diary ".repeat(1000));
}

#[test]
fn a_path_that_cannot_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data"), "a file where a folder should be").unwrap();
    let error = with(&folder, TABLES).err().unwrap();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(error.to_string().contains("store.sqlite3"), "{error}");
}

#[tokio::test]
async fn new_migrations_are_applied_to_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    store.commit(insert(1)).await.unwrap();
    drop(store);
    let store = with(&folder, &[TABLES, &[MORE]].concat()).unwrap();
    store.commit(insert(2)).await.unwrap();
    assert_eq!(items(&store).await, [1, 2]);
}

#[tokio::test]
async fn a_newer_database_and_a_changed_migration_are_refused_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let both = [TABLES, &[MORE]].concat();
    let store = with(&folder, &both).unwrap();
    store.commit(insert(1)).await.unwrap();
    drop(store);
    let newer = with(&folder, TABLES).err().unwrap();
    assert!(
        matches!(&newer, Error::Migrations(migrations::Error::Newer(name)) if name == MORE.name),
        "{newer}"
    );
    let changed = Migration { sql: "CREATE TABLE more (y TEXT) STRICT", ..MORE };
    let changed = with(&folder, &[TABLES, &[changed]].concat()).err().unwrap();
    assert!(
        matches!(&changed, Error::Migrations(migrations::Error::Changed(name)) if name == MORE.name),
        "{changed}"
    );
    assert_eq!(items(&with(&folder, &both).unwrap()).await, [1]);
}

const BAD: Migration = Migration {
    name: "test/0002-bad",
    sql: "CREATE TABLE half (x TEXT) STRICT; INSERT INTO half VALUES ('a'); CREATE TABLE broken (",
};

fn tables(folder: &tempfile::TempDir) -> Vec<String> {
    let connection = Connection::open(path(folder)).unwrap();
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema ORDER BY name").unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_migration_that_fails_leaves_a_fresh_file_empty() {
    let folder = tempfile::tempdir().unwrap();
    let error = with(&folder, &[TABLES, &[BAD, MORE]].concat()).err().unwrap();
    assert!(matches!(&error, Error::Migration { name, .. } if name == BAD.name), "{error}");
    assert_eq!(tables(&folder), [""; 0]);
    let good = Migration { sql: "CREATE TABLE half (x TEXT) STRICT", ..BAD };
    let store = with(&folder, &[TABLES, &[good, MORE]].concat()).unwrap();
    store.commit(insert(1)).await.unwrap();
    assert_eq!(items(&store).await, [1]);
}

#[tokio::test]
async fn an_upgrade_that_fails_leaves_the_file_as_the_older_program_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    store.commit(insert(1)).await.unwrap();
    drop(store);
    let before = tables(&folder);
    let error = with(&folder, &[TABLES, &[MORE, BAD]].concat()).err().unwrap();
    assert!(matches!(&error, Error::Migration { name, .. } if name == BAD.name), "{error}");
    assert_eq!(tables(&folder), before, "not even the one before it");
    assert_eq!(items(&suite_opened(&folder)).await, [1]);
}

#[test]
fn tables_must_be_strict() {
    let loose = Migration { name: "test/0001-loose", sql: "CREATE TABLE loose (x TEXT)" };
    let error = open(Options::new(Place::Memory, vec![loose])).err().unwrap();
    assert!(matches!(&error, Error::NotStrict(name) if name == "loose"), "{error}");
}

#[tokio::test]
async fn memory_forgets() {
    let store = opened(Place::Memory, TABLES);
    store.commit(insert(1)).await.unwrap();
    assert_eq!(items(&store).await, [1]);
    drop(store);
    assert!(items(&opened(Place::Memory, TABLES)).await.is_empty());
}
