//! Changes from outside: flipped bytes, moved pages, cut logs. Nothing that was changed is ever read as content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use orchestr8_sqlite_vfs::{
    Attachment, EncryptionKey, FRAME_SLOT_BYTES, HEADER_SLOT_BYTES, LogDamage, PAGE_BYTES, PROLOGUE_BYTES,
    open_connection,
};
use proptest::prelude::*;

use crate::fixture::{beside, check, connect, content, create, flags, key};

const ROWS: i64 = 60;

/// Data file, log and key, as a killed process leaves them.
struct Remains {
    data: Vec<u8>,
    log: Vec<u8>,
    key: EncryptionKey,
}

/// A data file with content, and a log with one commit for each of the later rows. Made once for each number of rows.
fn left_behind(root: &Path, in_log: i64) -> (PathBuf, EncryptionKey) {
    static MADE: Mutex<BTreeMap<i64, Remains>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap();
    let remains = made.entry(in_log).or_insert_with(|| remains(&root.join("sealed"), in_log, key()));
    let copy = root.join("copy");
    std::fs::write(&copy, &remains.data).unwrap();
    std::fs::write(beside(&copy, "-wal"), &remains.log).unwrap();
    (copy, remains.key.clone())
}

fn remains(path: &Path, in_log: i64, key: EncryptionKey) -> Remains {
    let attached = create(path, &key);
    let connection = connect(&attached);
    for id in 0..ROWS {
        connection.execute("INSERT INTO t VALUES (?1, randomblob(3000))", [id]).unwrap();
        if id + in_log == ROWS - 1 {
            connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        }
    }
    let read = |ending: &str| std::fs::read(beside(path, ending)).unwrap();
    Remains { data: read(""), log: read("-wal"), key }
}

/// Reads everything there is; true if all of it is what was written.
fn reads_whole(path: &Path, key: &EncryptionKey) -> rusqlite::Result<usize> {
    let attached = Attachment::open(path, key).unwrap();
    let connection = open_connection(&attached, flags())?;
    let found: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
    if found != "ok" {
        return Err(rusqlite::Error::InvalidQuery);
    }
    let mut statement = connection.prepare("SELECT body FROM t ORDER BY id")?;
    let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_flipped_byte_of_the_data_file_is_an_error(at in PROLOGUE_BYTES..PROLOGUE_BYTES + 20 * PAGE_BYTES, bit in 0_u8..8) {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = left_behind(&folder.path().canonicalize().unwrap(), 0);
        std::fs::remove_file(beside(&path, "-wal")).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        prop_assert!(bytes.len() > PROLOGUE_BYTES + 20 * PAGE_BYTES);
        bytes[at] ^= 1 << bit;
        std::fs::write(&path, bytes).unwrap();
        prop_assert!(reads_whole(&path, &key).is_err());
    }

    #[test]
    fn a_flipped_byte_of_the_log_is_found_or_ends_it_at_the_last_commit(at in 0_usize..50 * FRAME_SLOT_BYTES, bit in 0_u8..8) {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = left_behind(&folder.path().canonicalize().unwrap(), 25);
        let log = beside(&path, "-wal");
        let mut bytes = std::fs::read(&log).unwrap();
        // The frames of this generation are those of the last 25 commits; older ones lie behind them.
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        std::fs::write(&log, bytes).unwrap();
        let attached = Attachment::open(&path, &key).unwrap();
        match attached.check_log(true) {
            Err(LogDamage::Header) => prop_assert!(at < HEADER_SLOT_BYTES),
            Err(LogDamage::Frame(frame)) => {
                prop_assert_eq!(usize::try_from(frame).unwrap(), (at - HEADER_SLOT_BYTES) / FRAME_SLOT_BYTES);
            }
            Err(LogDamage::Io(error)) => panic!("{error}"),
            // It was the last transaction, or behind the end.
            Ok(()) => {
                let rows = i64::try_from(content(&connect(&attached)).len()).unwrap();
                prop_assert!(rows == ROWS || rows == ROWS - 1, "{} rows, byte {}", rows, at);
            }
        }
    }
}

#[test]
fn a_log_that_was_cut_anywhere_recovers_to_whole_commits() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (path, key) = left_behind(&root, ROWS - 1);
    let whole = std::fs::read(beside(&path, "-wal")).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for (number, cut) in (0..whole.len()).step_by(whole.len() / 40).enumerate() {
        let torn = root.join(format!("torn-{number}"));
        std::fs::copy(&path, &torn).unwrap();
        std::fs::write(beside(&torn, "-wal"), &whole[..cut]).unwrap();
        let attached = Attachment::open(&torn, &key).unwrap();
        attached.check_log(true).unwrap();
        let connection = connect(&attached);
        let rows = content(&connection);
        check(&connection);
        assert!(rows.iter().enumerate().all(|(at, (id, _))| *id == i64::try_from(at).unwrap()));
        seen.insert(rows.len());
    }
    assert!(seen.len() > 10, "{seen:?}");
}

#[test]
fn pages_do_not_open_in_another_place_or_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (path, key) = left_behind(&root, 0);
    std::fs::remove_file(beside(&path, "-wal")).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let page =
        |number: usize| PROLOGUE_BYTES + number * PAGE_BYTES..PROLOGUE_BYTES + (number + 1) * PAGE_BYTES;
    for (from, to) in [(3, 4), (4, 3), (0, 1), (9, 12)] {
        let mut moved = whole.clone();
        moved.copy_within(page(from), page(to).start);
        std::fs::write(&path, &moved).unwrap();
        assert!(reads_whole(&path, &key).is_err(), "page {from} in the place of {to}");
    }
    // The same content under the same key, in another file.
    let other_root = root.join("other");
    std::fs::create_dir(&other_root).unwrap();
    let foreign = remains(&other_root.join("sealed"), 0, key.clone()).data;
    for number in [0, 3, 10] {
        let mut mixed = whole.clone();
        mixed[page(number)].copy_from_slice(&foreign[page(number)]);
        std::fs::write(&path, &mixed).unwrap();
        assert!(reads_whole(&path, &key).is_err(), "page {number} of another file");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(reads_whole(&path, &key).unwrap(), usize::try_from(ROWS).unwrap());
}

#[test]
fn frames_do_not_open_in_another_place_and_a_foreign_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (path, key) = left_behind(&root, 25);
    let log = beside(&path, "-wal");
    let whole = std::fs::read(&log).unwrap();
    let frame = |number: usize| {
        HEADER_SLOT_BYTES + number * FRAME_SLOT_BYTES..HEADER_SLOT_BYTES + (number + 1) * FRAME_SLOT_BYTES
    };
    let mut moved = whole.clone();
    moved.copy_within(frame(2), frame(5).start);
    std::fs::write(&log, &moved).unwrap();
    let attached = Attachment::open(&path, &key).unwrap();
    assert!(matches!(attached.check_log(true), Err(LogDamage::Frame(5))));
    assert!(attached.check_log(false).is_ok(), "without flushes it may have been a loss of power");
    let plain_log = [&[0x37, 0x7f, 0x06, 0x82][..], &[0; 9000]].concat();
    std::fs::write(&log, plain_log).unwrap();
    assert!(matches!(attached.check_log(true), Err(LogDamage::Header)));
    assert!(reads_whole(&path, &key).is_err());
}
