//! Backup, check and shrinking, while the store is in use.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use orchestr8_kernel::ports::store::{Batch, Statement, Store};

use super::{insert, items, link, opened, path, suite_opened};
use crate::chain::Verified;
use crate::sqlite::{Place, backup};
use crate::suite::TABLES;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_under_load_opens_and_holds_a_moment_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    store.commit(link("first")).await.unwrap();
    let (done, written) = (Arc::new(tokio::sync::Notify::new()), Arc::new(AtomicI64::new(0)));
    let load = {
        let (store, done, written) = (store.clone(), done.clone(), written.clone());
        tokio::spawn(async move {
            for id in 0..i64::MAX {
                let mut pair = insert(id * 2);
                pair.merge(insert(id * 2 + 1)).merge(link(&id.to_string()));
                tokio::select! {
                    answer = store.commit(pair) => answer.unwrap(),
                    () = done.notified() => return,
                }
                written.store(id + 1, Ordering::SeqCst);
            }
        })
    };
    for round in 0..5 {
        let before = written.load(Ordering::SeqCst);
        let to = folder.path().join(format!("copy-{round}"));
        let report = store.backup(&to).await.unwrap();
        assert_eq!(report.bytes, to.metadata().unwrap().len());
        assert_eq!(report.bytes, u64::from(report.pages) * 8192);
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let copy = opened(Place::File(to), TABLES);
        let found = items(&copy).await;
        assert!(i64::try_from(found.len()).unwrap() >= before * 2, "what was acknowledged before is in it");
        assert_eq!(found, (0..i64::try_from(found.len()).unwrap()).collect::<Vec<_>>());
        assert!(found.len().is_multiple_of(2), "no half batch");
        let verified = copy.verify_chain("audit").await.unwrap();
        assert_eq!(verified.entries as usize, found.len() / 2 + 1);
        assert!(copy.check().await.unwrap().is_sound());
    }
    done.notify_one();
    load.await.unwrap();
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".partial")), "{left:?}");
}

#[tokio::test]
async fn a_backup_overwrites_nothing_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    let to = folder.path().join("precious");
    std::fs::write(&to, "precious").unwrap();
    assert!(matches!(store.backup(&to).await, Err(backup::Error::Exists(path)) if path == to));
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "precious");
    assert!(matches!(store.backup(&path(&folder)).await, Err(backup::Error::Exists(_))));
    let nowhere = folder.path().join("nowhere").join("copy");
    assert!(matches!(store.backup(&nowhere).await, Err(backup::Error::Io { path, .. }) if path == nowhere));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn memory_can_be_backed_up_and_checked_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(Place::Memory, TABLES);
    store.commit(insert(1)).await.unwrap();
    store.commit(link("one")).await.unwrap();
    assert!(store.check().await.unwrap().is_sound());
    let to = folder.path().join("copy");
    store.backup(&to).await.unwrap();
    assert_eq!(items(&opened(Place::File(to), TABLES)).await, [1]);
}

#[tokio::test]
async fn a_check_lists_every_chain() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    let empty = store.check().await.unwrap();
    assert!(empty.is_sound());
    assert!(empty.chains.is_empty());
    for chain in ["b", "", "a", "a"] {
        let mut batch = link("x");
        batch.links[0].chain = chain.into();
        store.commit(batch).await.unwrap();
    }
    let chains = store.check().await.unwrap().chains;
    let entries: Vec<_> = chains
        .iter()
        .map(|chain| (chain.name.as_str(), chain.state.as_ref().map(|Verified { entries, .. }| *entries)))
        .collect();
    assert_eq!(entries, [("", Ok(1)), ("a", Ok(2)), ("b", Ok(1))]);
}

#[tokio::test]
async fn space_freed_is_given_back_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    for id in 0..50_i64 {
        let sql = "INSERT INTO value (id, a_blob) VALUES (?1, ?2)";
        let cells = vec![id.into(), vec![0_u8; 80_000].into()];
        store.commit(crate::suite::batch([Statement::new(sql, cells)])).await.unwrap();
    }
    let mut batch = Batch::new();
    batch.then(Statement::new("DELETE FROM value", vec![]));
    store.commit(batch).await.unwrap();
    assert_eq!(store.shrink(100).await.unwrap(), 100);
    assert!(store.shrink(100_000).await.unwrap() > 300);
    assert_eq!(store.shrink(100_000).await.unwrap(), 0);
    assert!(store.check().await.unwrap().is_sound());
    drop(store);
    assert!(path(&folder).metadata().unwrap().len() < 500_000);
}
