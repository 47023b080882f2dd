//! Encrypted data files: nothing readable beside or in them, the right key or none at all, backups that stand alone.

use std::path::Path;

use orchestr8_kernel::ports::store::{self, Store};

use super::{beside, file, insert, items, link, path};
use crate::sqlite::{EncryptionKey, Error, Look, Options, Place, Sqlite, conversion, open};
use crate::suite::TABLES;

pub fn key() -> EncryptionKey {
    EncryptionKey::parse(&"17".repeat(32)).unwrap()
}

pub fn other_key() -> EncryptionKey {
    EncryptionKey::parse(&"18".repeat(32)).unwrap()
}

pub fn options(place: Place, key: Option<EncryptionKey>) -> Options {
    Options { key, ..Options::new(place, TABLES.to_vec()) }
}

pub fn opened(folder: &tempfile::TempDir) -> Sqlite {
    open(options(file(folder), Some(key()))).unwrap()
}

/// A store with rows and chain entries that begin with a word to look for.
pub async fn fill(store: &Sqlite, rows: i64) {
    for id in 0..rows {
        let mut batch = insert(id);
        batch.merge(link(&format!("canary entry {id:04}")));
        store.commit(batch).await.unwrap();
    }
}

pub fn is_readable(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    ["canary", "SQLite format 3", "CREATE TABLE"]
        .iter()
        .any(|word| bytes.windows(word.len()).any(|window| window == word.as_bytes()))
}

#[tokio::test]
async fn nothing_readable_is_on_the_disk_and_everything_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(&folder);
    fill(&store, 200).await;
    let data = path(&folder);
    for ending in ["", "-wal", "-shm"] {
        assert!(beside(&data, ending).metadata().unwrap().len() > 0);
        assert!(!is_readable(&beside(&data, ending)), "{ending}");
    }
    assert!(store.check().await.unwrap().is_sound());
    drop(store);
    assert!(!beside(&data, "-wal").exists(), "the log was moved into the file");
    assert!(!is_readable(&data));
    let store = opened(&folder);
    assert_eq!(items(&store).await.len(), 200);
    assert_eq!(store.verify_chain("audit").await.unwrap().entries, 200);
    store.commit(insert(1000)).await.unwrap();
    store.shrink(100).await.unwrap();
}

#[tokio::test]
async fn another_key_no_key_and_a_plain_file_are_refused_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    fill(&opened(&folder), 20).await;
    let before = std::fs::read(path(&folder)).unwrap();
    let refused = |key| open(options(file(&folder), key)).err().unwrap();
    assert!(matches!(refused(None), Error::KeyMissing { .. }));
    assert!(matches!(refused(Some(other_key())), Error::WrongKey { .. }));
    assert!(matches!(Look::at(&path(&folder), None), Err(Error::KeyMissing { .. })));
    assert!(matches!(Look::at(&path(&folder), Some(&other_key())), Err(Error::WrongKey { .. })));
    assert_eq!(std::fs::read(path(&folder)).unwrap(), before);
    let plain = tempfile::tempdir().unwrap();
    fill(&open(options(file(&plain), None)).unwrap(), 1).await;
    let before = std::fs::read(path(&plain)).unwrap();
    assert!(matches!(open(options(file(&plain), Some(key()))), Err(Error::NotEncrypted { .. })));
    assert!(matches!(Look::at(&path(&plain), Some(&key())), Err(Error::NotEncrypted { .. })));
    assert_eq!(std::fs::read(path(&plain)).unwrap(), before);
}

#[tokio::test]
async fn what_is_opened_without_the_key_keeps_the_log_of_a_killed_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(&folder);
    fill(&store, 30).await;
    let left = tempfile::tempdir().unwrap();
    std::fs::create_dir(left.path().join("data")).unwrap();
    for ending in ["", "-wal"] {
        std::fs::copy(beside(&path(&folder), ending), beside(&path(&left), ending)).unwrap();
    }
    for key in [None, Some(other_key())] {
        assert!(open(options(file(&left), key.clone())).is_err());
        assert!(Look::at(&path(&left), key.as_ref()).is_err());
        assert!(matches!(conversion::encrypt(&path(&left), &other_key()), Err(Error::KeyMissing { .. })));
    }
    assert_eq!(items(&opened(&left)).await.len(), 30);
}

#[tokio::test]
async fn a_backup_is_one_encrypted_file_and_becomes_a_store_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(&folder);
    fill(&store, 100).await;
    for (name, by_look) in [("one", false), ("two", true)] {
        let copy = folder.path().join(name);
        if by_look {
            Look::at(&path(&folder), Some(&key())).unwrap().backup(&copy).unwrap();
        } else {
            store.backup(&copy).await.unwrap();
        }
        assert!(!is_readable(&copy));
        assert!(matches!(Look::at(&copy, None), Err(Error::KeyMissing { .. })));
        let look = Look::at(&copy, Some(&key())).unwrap();
        assert_eq!(look.verify_chain("audit").unwrap().entries, 100);
        drop(look);
        assert!(!beside(&copy, "-wal").exists() && !beside(&copy, "-journal").exists());
        let restored = tempfile::tempdir().unwrap();
        std::fs::create_dir(restored.path().join("data")).unwrap();
        std::fs::copy(&copy, path(&restored)).unwrap();
        let again = opened(&restored);
        again.commit(insert(500)).await.unwrap();
        assert_eq!(items(&again).await.len(), 101);
        assert!(again.check().await.unwrap().is_sound());
    }
}

#[tokio::test]
async fn a_log_that_was_changed_is_refused_and_not_cut() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(&folder);
    fill(&store, 30).await;
    let left = tempfile::tempdir().unwrap();
    std::fs::create_dir(left.path().join("data")).unwrap();
    for ending in ["", "-wal"] {
        std::fs::copy(beside(&path(&folder), ending), beside(&path(&left), ending)).unwrap();
    }
    let log = beside(&path(&left), "-wal");
    let whole = std::fs::read(&log).unwrap();
    let mut changed = whole.clone();
    changed[64 + 8256 + 5000] ^= 1;
    std::fs::write(&log, &changed).unwrap();
    assert!(matches!(open(options(file(&left), Some(key()))), Err(Error::LogDamaged { .. })));
    assert!(matches!(Look::at(&path(&left), Some(&key())), Err(Error::LogDamaged { .. })));
    assert_eq!(std::fs::read(&log).unwrap(), changed);
    std::fs::write(&log, &whole).unwrap();
    assert_eq!(items(&opened(&left)).await.len(), 30);
}

#[tokio::test]
async fn reading_a_changed_page_fails() {
    let folder = tempfile::tempdir().unwrap();
    fill(&opened(&folder), 300).await;
    let whole = std::fs::read(path(&folder)).unwrap();
    for page in 1..whole.len() / 8192 {
        let mut changed = whole.clone();
        changed[page * 8192 + 4000] ^= 0x10;
        std::fs::write(path(&folder), &changed).unwrap();
        match open(options(file(&folder), Some(key()))) {
            Ok(store) => assert!(!store.check().await.unwrap().is_sound(), "page {page}"),
            Err(error) => assert!(matches!(error, Error::Store(store::Error::Corrupt(_))), "{error}"),
        }
    }
    std::fs::write(path(&folder), &whole).unwrap();
    assert!(opened(&folder).check().await.unwrap().is_sound());
}
