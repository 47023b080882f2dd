//! Damage: a torn log loses only what was never whole; a changed page or entry is found.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use orchestr8_contract::chain::Pruned;
use orchestr8_kernel::audit;
use orchestr8_kernel::ports::store::{self, Batch, Link, Statement, Store};
use rusqlite::Connection;

use super::{beside, file, insert, items, link, path, suite_opened};
use crate::chain::{self, Broken};
use crate::sqlite::{Error, Options, limits, open};
use crate::suite::TABLES;

/// A copy of the data as it lies on the disk now: what a process that dies now leaves behind.
fn left_behind(from: &tempfile::TempDir) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    std::fs::create_dir(to.path().join("data")).unwrap();
    for ending in ["", "-wal"] {
        std::fs::copy(beside(&path(from), ending), beside(&path(&to), ending)).unwrap();
    }
    to
}

fn overwrite(file: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(file).unwrap().write_all_at(bytes, at).unwrap();
}

/// Where the log's last whole page ends: behind it lies only reserved room.
fn log_end(folder: &tempfile::TempDir) -> u64 {
    let log = std::fs::read(beside(&path(folder), "-wal")).unwrap();
    let used = log.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    let frame = 8192 + 24;
    32 + (used - 32).div_ceil(frame) * frame
}

#[tokio::test]
async fn a_log_cut_or_garbled_at_its_end_recovers_to_a_whole_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    for id in 0..20 {
        let mut batch = insert(id);
        batch.merge(insert(id + 1000)).merge(link(&id.to_string()));
        store.commit(batch).await.unwrap();
    }
    let end = log_end(&folder);
    let mut seen = std::collections::BTreeSet::new();
    for back in [0, 1, 20, 5_000, 8_216, 8_217, 30_000, 100_000, 200_000, end - 33, end] {
        for garble in [false, true] {
            let torn = left_behind(&folder);
            let log = beside(&path(&torn), "-wal");
            if garble {
                overwrite(&log, end - back, &[0xa5; 512]);
            } else {
                OpenOptions::new().write(true).open(&log).unwrap().set_len(end - back).unwrap();
            }
            let store = suite_opened(&torn);
            let found = items(&store).await;
            let count = i64::try_from(found.len()).unwrap() / 2;
            let expected: Vec<i64> = (0..count).chain(1000..1000 + count).collect();
            assert_eq!(found, expected, "cut {back} bytes before the end");
            assert_eq!(store.verify_chain("audit").await.unwrap().entries, count.unsigned_abs());
            assert!(store.check().await.unwrap().is_sound());
            store.commit(insert(count)).await.unwrap();
            seen.insert(count);
        }
    }
    assert_eq!(seen.last(), Some(&20), "an unharmed log loses nothing");
    assert!(seen.len() > 3, "the cuts hit different commits: {seen:?}");
}

/// Fills a closed database with known entries.
async fn filled(entries: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    for n in 0..entries {
        let mut batch = link(&format!("body number {n:04}"));
        batch.merge(insert(i64::try_from(n).unwrap()));
        store.commit(batch).await.unwrap();
    }
    drop(store);
    assert!(!beside(&path(&folder), "-wal").exists(), "the log was moved into the file");
    folder
}

#[tokio::test]
async fn a_flipped_byte_in_a_chain_is_found_at_its_number() {
    let folder = filled(300).await;
    let content = std::fs::read(path(&folder)).unwrap();
    let wanted = b"body number 0122";
    let at = content.windows(wanted.len()).position(|window| window == wanted).unwrap();
    // A changed letter, and a byte that is no text any more.
    for flip in [1, 0x80] {
        overwrite(&path(&folder), at as u64 + 5, &[content[at + 5] ^ flip]);
        let store = suite_opened(&folder);
        let error = store.verify_chain("audit").await.unwrap_err();
        assert!(matches!(error, chain::Error::Broken(Broken { seq: 123, .. })), "{error}");
        let report = store.check().await.unwrap();
        assert!(!report.is_sound());
        assert_eq!(report.chains[0].state.as_ref().unwrap_err().seq, 123);
    }
}

#[tokio::test]
async fn an_entry_cut_out_of_a_chain_or_of_another_type_is_found() {
    let folder = filled(50).await;
    let tamper = |sql: &str| Connection::open(path(&folder)).unwrap().execute_batch(sql).unwrap();
    tamper("UPDATE chain SET at_ms = at_ms + 1 WHERE seq = 40");
    let broken = |error| match error {
        chain::Error::Broken(broken) => broken.seq,
        chain::Error::Store(error) => panic!("{error}"),
    };
    assert_eq!(broken(suite_opened(&folder).verify_chain("audit").await.unwrap_err()), 40);
    tamper("DELETE FROM chain WHERE seq = 30");
    assert_eq!(broken(suite_opened(&folder).verify_chain("audit").await.unwrap_err()), 30);
    tamper("INSERT INTO chain SELECT name, 0, at_ms, body, prev_hash, entry_hash FROM chain WHERE seq = 1");
    assert_eq!(broken(suite_opened(&folder).verify_chain("audit").await.unwrap_err()), 1);
    // A column that no longer holds what it says, as damage to its type byte leaves it.
    tamper(
        "DELETE FROM chain WHERE seq = 0; PRAGMA writable_schema = 1;
            UPDATE sqlite_schema SET sql = replace(sql, 'STRICT, ', '') WHERE name = 'chain'",
    );
    tamper("UPDATE chain SET at_ms = 'text' WHERE seq = 20");
    let strict = "PRAGMA writable_schema = 1; UPDATE sqlite_schema
                  SET sql = replace(sql, 'WITHOUT ROWID', 'STRICT, WITHOUT ROWID') WHERE name = 'chain'";
    tamper(strict);
    assert_eq!(broken(suite_opened(&folder).verify_chain("audit").await.unwrap_err()), 20);
}

#[tokio::test]
async fn a_garbled_page_is_found_and_said() {
    let folder = filled(300).await;
    let pages = path(&folder).metadata().unwrap().len() / 8192;
    let whole = std::fs::read(path(&folder)).unwrap();
    let mut checked = 0;
    for page in 1..pages {
        overwrite(&path(&folder), page * 8192, &[0xa5; 4096]);
        match open(Options::new(file(&folder), TABLES.to_vec())) {
            Ok(store) => {
                assert!(!store.check().await.unwrap().is_sound(), "page {page} of {pages}");
                checked += 1;
            }
            // What has to be read to open it is found at once.
            Err(error) => assert!(matches!(error, Error::Store(store::Error::Corrupt(_))), "{error}"),
        }
        std::fs::write(path(&folder), &whole).unwrap();
    }
    assert!(checked > 5, "{checked} of {pages}");
    assert!(suite_opened(&folder).check().await.unwrap().is_sound());
}

#[tokio::test]
async fn a_reference_to_nothing_is_found() {
    let folder = filled(1).await;
    let other = Connection::open(path(&folder)).unwrap();
    other.execute_batch("PRAGMA foreign_keys = OFF; INSERT INTO piece (id, item) VALUES (1, 99)").unwrap();
    drop(other);
    let report = suite_opened(&folder).check().await.unwrap();
    assert_eq!(report.problems, ["row 1 of `piece` refers to a row of `item` that is not there"]);
    assert!(!report.is_sound());
}

/// Deleting takes about as long as proving, so in some of the rounds it comes between two slices.
#[tokio::test]
async fn a_chain_whose_old_entries_go_while_it_is_proved_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    for round in 0..20 {
        let chain = format!("chain-{round}");
        let mut batch = Batch::new();
        for _ in 0..4 * limits::VERIFY_SLICE {
            batch.link(Link { chain: chain.clone().into(), at_ms: 7, body: "{}".into() });
        }
        store.commit(batch).await.unwrap();
        let through = 3 * limits::VERIFY_SLICE;
        let find = "SELECT entry_hash FROM chain WHERE name = ?1 AND seq = ?2";
        let found = Statement::new(find, vec![chain.as_str().into(), through.into()]);
        let through_hash = store.query(found).await.unwrap()[0].text(0).unwrap().to_owned();
        let mut going = Batch::new();
        let told = audit::pruned(&Pruned { through_hash, through_seq: through }, 9);
        going.link(Link { chain: chain.clone().into(), ..told });
        let old = "DELETE FROM chain WHERE name = ?1 AND seq <= ?2";
        going.then(Statement::new(old, vec![chain.as_str().into(), through.into()]));
        let (proved, gone) = tokio::join!(store.verify_chain(&chain), store.commit(going));
        gone.unwrap();
        proved.unwrap();
        let left = store.verify_chain(&chain).await.unwrap();
        assert_eq!(i64::try_from(left.entries).unwrap(), limits::VERIFY_SLICE + 1);
    }
}
