//! Merkle logs: in step with what is committed, the same after a restart, and every change from outside is found and named.

use std::path::Path;

use futures::future::join_all;
use orchestr8_contract::merkle::{Frontier, Hash, root_of_path};
use orchestr8_kernel::ports::store::{Batch, Error, Link, Row, Statement, Store};
use rusqlite::Connection;

use super::file;
use crate::merkle::{
    AUDIT_LOG, KnownHead, LogDifference, LogSource, PrunedSet, RowCheck, RowProblem, leaf_of,
};
use crate::migrations::Migration;
use crate::sqlite::{self, Look, Options, Place, Sqlite};

const TABLE: Migration = Migration {
    name: "test/0001-note",
    sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
          CREATE TABLE copy (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;",
};

fn differs(row: &Row) -> Result<Option<RowProblem>, Error> {
    let same = row.optional_text(1)? == row.optional_text(2)?;
    let label = || format!("copy {}", row.int(0).unwrap_or_default());
    Ok((!same).then(|| RowProblem { number: 0, label: label(), what: "it is not the note" }))
}

const NOTES: LogSource = LogSource {
    name: "notes",
    chain: None,
    rows_sql: "SELECT id, text FROM note WHERE id > ?1 ORDER BY id LIMIT ?2",
    label_sql: "SELECT 'note ' || text FROM note WHERE id = ?1",
    missing_sql: "SELECT 'after ' || text FROM note WHERE id = ?1 - 1",
    checks: &[RowCheck {
        sql: "SELECT copy.id, copy.text, note.text FROM copy JOIN note USING (id) WHERE id > ?1 ORDER BY id LIMIT ?2",
        problem: differs,
    }],
};

fn open(place: Place) -> Sqlite {
    let options = Options { logs: vec![AUDIT_LOG, NOTES], ..Options::new(place, vec![TABLE]) };
    sqlite::open(options).unwrap()
}

fn note(text: &str) -> Batch {
    let mut batch = Batch::new();
    batch.then_logged(Statement::new("INSERT INTO note (text) VALUES (?1)", vec![text.into()]), "notes");
    batch.link(Link { chain: "actions".into(), at_ms: 1, body: format!("{{\"action\":\"{text}\"}}") });
    batch
}

fn root(texts: impl IntoIterator<Item = String>) -> Hash {
    let mut frontier = Frontier::new();
    texts.into_iter().for_each(|text| frontier.push(leaf_of("notes", &[text.into()])));
    frontier.root()
}

fn texts(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("n{number}"))
}

async fn head(store: &Sqlite) -> (KnownHead, Vec<[u8; 8]>) {
    let states = store.checkpoint_logs().await.unwrap();
    let notes = states.into_iter().find(|state| state.log == "notes").unwrap();
    (KnownHead { size: notes.size, root: notes.root, at_ms: 1 }, notes.fingerprints.1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_has_what_was_committed_and_nothing_that_was_undone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(file(&folder));
    let commits = (0..60).map(|number| {
        let mut batch = note(&format!("n{}", number / 2));
        if number % 2 == 1 {
            batch.then_one(Statement::new("DELETE FROM copy WHERE id = ?1", vec![7.into()]));
        }
        store.commit(batch)
    });
    assert_eq!(join_all(commits).await.iter().filter(|answer| answer.is_ok()).count(), 30);
    let (whole, fingerprints) = head(&store).await;
    let stored = store.query(Statement::new("SELECT text FROM note ORDER BY id", vec![])).await.unwrap();
    let stored: Vec<String> = stored.iter().map(|row| row.text(0).unwrap().to_owned()).collect();
    assert_eq!((whole.size, whole.root), (30, root(stored)));
    assert_eq!(fingerprints.len(), 30);
    store.commit(note("one more")).await.unwrap();
    let before = store.log_heads().unwrap();
    assert_eq!(store.compare_log("notes", &whole).unwrap(), None);
    drop(store);
    let again = open(file(&folder));
    assert_eq!(again.log_heads().unwrap(), before, "from the checkpoint and the row after it");
    assert_eq!(again.compare_log("notes", &whole).unwrap(), None);
    let (both, _) = head(&again).await;
    assert_eq!((both.size, both.root), (31, before[1].2));
}

/// What a check says after a change of the data file.
async fn after(change: &str) -> Option<LogDifference> {
    let folder = tempfile::tempdir().unwrap();
    let store = open(file(&folder));
    for (number, text) in texts(40).enumerate() {
        store.commit(note(&text)).await.unwrap();
        if number % 10 == 0 {
            let mut batch = Batch::new();
            let cells = vec![(number as i64 + 1).into(), text.into()];
            batch.then(Statement::new("INSERT INTO copy (id, text) VALUES (?1, ?2)", cells));
            store.commit(batch).await.unwrap();
        }
    }
    let (head, fingerprints) = head(&store).await;
    drop(store);
    let Place::File(path) = file(&folder) else { unreachable!() };
    Connection::open(&path).unwrap().execute_batch(change).unwrap();
    let known = |index: u64| fingerprints.get(usize::try_from(index).unwrap()).copied();
    let report = Look::at(&path, None).unwrap().verify_log(&NOTES, &[head], &known).unwrap();
    let blind = Look::at(&path, None).unwrap().verify_log(&NOTES, &[head], &|_| None).unwrap();
    assert_eq!(
        report.difference.is_some(),
        blind.difference.is_some(),
        "the head alone shows that there is one"
    );
    report.difference
}

#[tokio::test]
async fn every_change_is_found_and_the_first_entry_is_named() {
    assert_eq!(after("SELECT 1").await, None);
    let found = |number, label: &str, what: &str| {
        let what = what.to_owned();
        Some(LogDifference { log: "notes", number, label: Some(label.to_owned()), what })
    };
    let changed = "it is not the entry that was recorded under this number";
    let missing = "it is missing and was not deleted for its age";
    assert_eq!(after("UPDATE note SET text = 'x' WHERE id IN (7, 9)").await, found(7, "note x", changed));
    assert_eq!(after("DELETE FROM note WHERE id = 12").await, found(12, "after n10", missing));
    let swap = "UPDATE note SET id = -1 WHERE id = 5; UPDATE note SET id = 5 WHERE id = 6; UPDATE note SET id = 6 WHERE id = -1";
    assert_eq!(after(swap).await, found(5, "note n5", changed));
    let insert = "UPDATE note SET id = id + 1000 WHERE id > 20; UPDATE note SET id = id - 999 WHERE id > 20;
        INSERT INTO note (id, text) VALUES (21, 'forged')";
    assert_eq!(after(insert).await, found(21, "note forged", changed));
    let close_up = "DELETE FROM note WHERE id = 12; UPDATE note SET id = id + 1000 WHERE id > 12; UPDATE note SET id = id - 1001 WHERE id > 12";
    assert_eq!(after(close_up).await, found(12, "note n12", changed));
    assert_eq!(
        after("UPDATE copy SET text = 'x' WHERE id = 11").await,
        found(0, "copy 11", "it is not the note")
    );
    let truncated = after("DELETE FROM note WHERE id > 33").await.unwrap();
    assert_eq!(
        (truncated.number, truncated.what.as_str()),
        (34, "it is missing: the log ends with entry 33, and a signed head covers 40")
    );
    let all = after("DELETE FROM note").await.unwrap();
    assert_eq!(all.number, 1);
}

#[tokio::test]
async fn a_start_finds_an_older_copy_and_a_changed_tail() {
    let folder = tempfile::tempdir().unwrap();
    let Place::File(path) = file(&folder) else { unreachable!() };
    let older = folder.path().join("older");
    let store = open(file(&folder));
    for text in texts(20) {
        store.commit(note(&text)).await.unwrap();
    }
    store.backup(&older).await.unwrap();
    store.commit(note("n20")).await.unwrap();
    let (newest, _) = head(&store).await;
    store.commit(note("n21")).await.unwrap();
    drop(store);
    let compare = |path: &Path| open(Place::File(path.to_owned())).compare_log("notes", &newest).unwrap();
    assert_eq!(compare(&path), None);
    assert_eq!(compare(&older).unwrap().number, 21);
    Connection::open(&path)
        .unwrap()
        .execute_batch("DELETE FROM merkle_checkpoint; UPDATE note SET text = 'x' WHERE id = 3")
        .unwrap();
    assert_eq!(compare(&path).unwrap().number, 21, "without the checkpoint everything is read");
}

#[tokio::test]
async fn rows_that_come_from_outside_stop_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let Place::File(path) = file(&folder) else { unreachable!() };
    let store = open(file(&folder));
    store.commit(note("n0")).await.unwrap();
    Connection::open(&path).unwrap().execute_batch("INSERT INTO note (text) VALUES ('forged')").unwrap();
    assert!(matches!(store.commit(note("n1")).await, Err(Error::Corrupt(_))));
    Connection::open(&path).unwrap().execute_batch("DELETE FROM note WHERE text = 'forged'").unwrap();
    store.commit(note("n1")).await.unwrap();
    assert_eq!(head(&store).await.0.root, root(texts(2)));
}

#[tokio::test]
async fn deleted_entries_leave_their_hashes_and_proofs_hold() {
    let folder = tempfile::tempdir().unwrap();
    let Place::File(path) = file(&folder) else { unreachable!() };
    let store = open(file(&folder));
    for text in texts(50) {
        store.commit(note(&text)).await.unwrap();
    }
    let (before, _) = head(&store).await;
    let mut set = PrunedSet::default();
    for old in ["id <= 9", "id IN (10, 20, 31, 32)"] {
        let sql = format!("SELECT id, text FROM note WHERE {old}");
        let rows = store.query(Statement { sql: sql.into(), cells: vec![] }).await.unwrap();
        let mut batch = Batch::new();
        set.add(&NOTES, &rows, &|_| String::from("signed"), &mut batch).unwrap();
        batch.then(Statement { sql: format!("DELETE FROM note WHERE {old}").into(), cells: vec![] });
        store.commit(batch).await.unwrap();
    }
    assert_eq!(PrunedSet::load(&store, &NOTES).await.unwrap(), set);
    let report = store.verify_log(NOTES, vec![before], |_| None).await.unwrap();
    assert_eq!((report.difference, report.pruned, report.heads), (None, 13, 1));
    assert_eq!(report.pruned_note, Some((String::from("signed"), set.digest())));
    let look = Look::at(&path, None).unwrap();
    let (proven_root, entries) = look.prove(&NOTES, &[11, 50], 50).unwrap().unwrap();
    assert_eq!(proven_root, before.root);
    for entry in entries {
        assert_eq!(root_of_path(entry.leaf, entry.number - 1, 50, &entry.path), Some(before.root));
    }
    assert!(look.prove(&NOTES, &[10], 50).unwrap().is_none(), "it is gone");
    drop(store);
    assert_eq!(open(file(&folder)).compare_log("notes", &before).unwrap(), None);
    // An attacker who deletes more rows and stores their hashes changes the signed set.
    let change = "DELETE FROM note WHERE id = 40; INSERT INTO merkle_pruned SELECT 'notes', 39, 0, hash FROM merkle_pruned LIMIT 1";
    Connection::open(&path).unwrap().execute_batch(change).unwrap();
    let forged = Look::at(&path, None).unwrap().verify_log(&NOTES, &[before], &|_| None).unwrap();
    assert_ne!(forged.pruned_note.unwrap().1, set.digest());
}

#[tokio::test]
async fn a_data_file_from_before_the_logs_is_taken_up_with_its_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let Place::File(path) = file(&folder) else { unreachable!() };
    drop(open(file(&folder)));
    let old = "INSERT INTO note (id, text) VALUES (4, 'a'), (5, 'b'), (90, 'c')";
    Connection::open(&path).unwrap().execute_batch(old).unwrap();
    let store = open(file(&folder));
    store.commit(note("d")).await.unwrap();
    let (head, _) = head(&store).await;
    assert_eq!(head.size, 91);
    drop(store);
    let store = open(file(&folder));
    let report = store.verify_log(NOTES, vec![head], |_| None).await.unwrap();
    assert_eq!((report.difference, report.pruned, report.size), (None, 87, 91));
}
