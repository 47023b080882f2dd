//! The same statements on a sealed and on a plain database give the same content, also after a crash.

use std::path::Path;

use orchestr8_sqlite_vfs::Attachment;
use proptest::prelude::*;
use rusqlite::{Connection, params};

use crate::fixture::{back_up, beside, check, connect, content, create, key, plain};

const CANARY: &str = "canary-4711-in-plain-text";

#[derive(Debug, Clone)]
enum Step {
    Insert {
        id: i64,
        bytes: usize,
    },
    Update {
        id: i64,
        bytes: usize,
    },
    Delete {
        id: i64,
    },
    /// Enough in one transaction to spill the cache into the log, and to write pages of it twice.
    Bulk {
        from: i64,
        rows: i64,
        commit: bool,
    },
    Checkpoint,
    Vacuum,
    Shrink,
    Reopen,
    /// What a process that dies now leaves behind.
    Crash,
    Backup,
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0_i64..40;
    prop_oneof![
        6 => (id.clone(), 0_usize..30_000).prop_map(|(id, bytes)| Step::Insert { id, bytes }),
        4 => (id.clone(), 0_usize..30_000).prop_map(|(id, bytes)| Step::Update { id, bytes }),
        3 => id.clone().prop_map(|id| Step::Delete { id }),
        2 => (100_i64..300, 1_i64..80, any::<bool>()).prop_map(|(from, rows, commit)| Step::Bulk { from, rows, commit }),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Vacuum),
        2 => Just(Step::Shrink),
        1 => Just(Step::Reopen),
        2 => Just(Step::Crash),
        1 => Just(Step::Backup),
    ]
}

fn body(id: i64, bytes: usize) -> Vec<u8> {
    format!("{CANARY} {id} ").bytes().cycle().take(bytes).collect()
}

fn run(connection: &Connection, step: &Step) {
    let insert = |id: i64, bytes: usize| {
        let sql = "INSERT OR REPLACE INTO t (id, body) VALUES (?1, ?2)";
        connection.execute(sql, params![id, body(id, bytes)]).unwrap();
        let sql = "INSERT OR REPLACE INTO words (rowid, body) VALUES (?1, ?2)";
        connection.execute(sql, params![id, format!("{CANARY} word{id}")]).unwrap();
    };
    match step {
        Step::Insert { id, bytes } => insert(*id, *bytes),
        Step::Update { id, bytes } => {
            let sql = "UPDATE t SET body = ?2 WHERE id = ?1";
            connection.execute(sql, params![id, body(*id, *bytes)]).unwrap();
        }
        Step::Delete { id } => {
            connection.execute("DELETE FROM t WHERE id = ?1", [id]).unwrap();
        }
        Step::Bulk { from, rows, commit } => {
            connection.execute_batch("BEGIN").unwrap();
            for id in *from..from + rows {
                insert(id, 9_000);
            }
            for id in *from..from + rows {
                connection.execute("UPDATE t SET body = substr(body, 2) WHERE id = ?1", [id]).unwrap();
            }
            connection.execute_batch(if *commit { "COMMIT" } else { "ROLLBACK" }).unwrap();
        }
        Step::Checkpoint => {
            connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        }
        Step::Vacuum => connection.execute_batch("VACUUM").unwrap(),
        Step::Shrink => {
            let mut statement = connection.prepare("PRAGMA incremental_vacuum(3)").unwrap();
            let mut rows = statement.raw_query();
            while rows.next().unwrap().is_some() {}
        }
        Step::Reopen | Step::Crash | Step::Backup => {}
    }
}

fn no_plain_text(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let Ok(bytes) = std::fs::read(beside(path, ending)) else { continue };
        for wanted in [CANARY, "SQLite format 3", "CREATE TABLE", "word1"] {
            let found = bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes());
            assert!(!found, "{wanted} in {}{ending}", path.display());
        }
    }
    assert!(!beside(path, "-journal").exists());
}

/// Copies data file and log while the connection is open.
fn crashed(path: &Path, to: &Path, attached: &Attachment) -> Attachment {
    for ending in ["", "-wal"] {
        let _ = std::fs::copy(beside(path, ending), beside(to, ending));
    }
    let again = Attachment::open(to, attached.key()).unwrap();
    again.check_log(true).unwrap();
    again
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_sealed_database_has_the_content_of_a_plain_one(steps in prop::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = root.join("sealed");
        let own = key();
        let attached = create(&path, &own);
        let mut sealed = connect(&attached);
        let expected = plain(&root.join("plain"));
        for (number, step) in steps.iter().enumerate() {
            run(&sealed, step);
            run(&expected, step);
            let copy = root.join(format!("copy-{number}"));
            match step {
                Step::Reopen => {
                    drop(sealed);
                    assert!(!beside(&path, "-wal").exists(), "the log was moved into the file");
                    sealed = connect(&attached);
                }
                Step::Crash => {
                    let again = crashed(&path, &copy, &attached);
                    let survivor = connect(&again);
                    assert_eq!(content(&survivor), content(&expected));
                    check(&survivor);
                    run(&survivor, &Step::Insert { id: 1, bytes: 9_999 });
                    check(&survivor);
                    no_plain_text(&copy);
                }
                Step::Backup => {
                    let backup = back_up(&sealed, &copy, &own);
                    assert_eq!(content(&connect(&backup)), content(&expected));
                    no_plain_text(&copy);
                }
                _ => {}
            }
        }
        assert_eq!(content(&sealed), content(&expected));
        check(&sealed);
        no_plain_text(&path);
    }
}

#[test]
fn readers_on_other_threads_see_whole_commits_while_the_log_is_moved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("sealed");
    let attached = create(&path, &key());
    let writer = connect(&attached);
    writer.execute("INSERT INTO t VALUES (1, x'00'), (2, x'00')", []).unwrap();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = 0;
                    while seen < 300 {
                        // Opening reads the first page without a lock, while it may be written.
                        let reader = connect(&attached);
                        let sql =
                            "SELECT (SELECT body FROM t WHERE id = 1) = (SELECT body FROM t WHERE id = 2)";
                        assert!(reader.query_row(sql, [], |row| row.get::<_, bool>(0)).unwrap());
                        seen = reader
                            .query_row("SELECT length(body) FROM t WHERE id = 1", [], |row| row.get(0))
                            .unwrap();
                    }
                })
            })
            .collect();
        for length in 1..=300 {
            writer.execute("UPDATE t SET body = zeroblob(?1)", [length]).unwrap();
            writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
