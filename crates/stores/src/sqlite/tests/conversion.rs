//! Encrypting, decrypting and changing the key of a data file that is there.

use orchestr8_kernel::ports::store::Store;

use super::encrypted::{fill, is_readable, key, opened, options, other_key};
use super::{beside, file, insert, items, path, suite_opened};
use crate::sqlite::{EncryptionKey, Error, Look, conversion, open};

#[tokio::test]
async fn there_and_back_the_content_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    fill(&store, 300).await;
    let head = store.verify_chain("audit").await.unwrap();
    assert!(
        matches!(conversion::encrypt(&path(&folder), &key()), Err(Error::Held { .. })),
        "while it is open"
    );
    drop(store);
    assert!(is_readable(&path(&folder)));
    let report = conversion::encrypt(&path(&folder), &key()).unwrap();
    assert!(report.rows >= 600 && report.tables > 5, "{report:?}");
    assert!(!is_readable(&path(&folder)));
    assert!(!beside(&path(&folder), ".converting").exists());
    let store = opened(&folder);
    assert_eq!(store.verify_chain("audit").await.unwrap(), head);
    store.commit(insert(999)).await.unwrap();
    drop(store);
    assert!(matches!(conversion::encrypt(&path(&folder), &key()), Err(Error::KeyMissing { .. })));
    assert!(matches!(conversion::decrypt(&path(&folder), &other_key()), Err(Error::WrongKey { .. })));
    conversion::decrypt(&path(&folder), &key()).unwrap();
    assert!(is_readable(&path(&folder)));
    let store = suite_opened(&folder);
    assert_eq!(items(&store).await.len(), 301);
    assert!(store.check().await.unwrap().is_sound());
    drop(store);
    conversion::encrypt(&path(&folder), &other_key()).unwrap();
    Look::at(&path(&folder), Some(&other_key())).unwrap();
}

#[tokio::test]
async fn the_log_of_a_killed_process_is_taken_along() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    fill(&store, 50).await;
    let left = tempfile::tempdir().unwrap();
    std::fs::create_dir(left.path().join("data")).unwrap();
    for ending in ["", "-wal"] {
        std::fs::copy(beside(&path(&folder), ending), beside(&path(&left), ending)).unwrap();
    }
    conversion::encrypt(&path(&left), &key()).unwrap();
    assert_eq!(items(&opened(&left)).await.len(), 50);
}

#[tokio::test]
async fn what_was_left_unfinished_is_removed_by_the_next_owner() {
    let folder = tempfile::tempdir().unwrap();
    fill(&suite_opened(&folder), 5).await;
    for ending in [".converting", ".converting-journal"] {
        std::fs::write(beside(&path(&folder), ending), "half a file").unwrap();
    }
    assert_eq!(items(&suite_opened(&folder)).await.len(), 5);
    assert!(!beside(&path(&folder), ".converting").exists());
    assert!(!beside(&path(&folder), ".converting-journal").exists());
}

#[tokio::test]
async fn a_new_key_replaces_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    fill(&opened(&folder), 5).await;
    let size = path(&folder).metadata().unwrap().len();
    let third = EncryptionKey::generate().unwrap();
    assert!(matches!(conversion::rekey(&path(&folder), &other_key(), &third), Err(Error::WrongKey { .. })));
    conversion::rekey(&path(&folder), &key(), &other_key()).unwrap();
    assert_eq!(path(&folder).metadata().unwrap().len(), size);
    assert!(matches!(open(options(file(&folder), Some(key()))), Err(Error::WrongKey { .. })));
    assert_eq!(items(&open(options(file(&folder), Some(other_key()))).unwrap()).await.len(), 5);
    let nowhere = folder.path().join("none");
    assert!(matches!(conversion::rekey(&nowhere, &key(), &other_key()), Err(Error::Io { .. })));
    assert!(!nowhere.exists());
}
