//! Who sees what, and when: reads after writes, the order of one task, many at once, watchers.

use futures::future::join_all;
use orchestr8_kernel::ports::store::{Error, Statement};

use super::{Shared, batch, insert_item, ints, items, rows};

pub async fn whoever_has_the_answer_reads_what_was_written(store: Shared) {
    for id in 1..=200_i64 {
        store.commit(batch([insert_item(id)])).await.unwrap();
        assert_eq!(rows(&store, "SELECT 1 FROM item WHERE id = ?1", vec![id.into()]).await.len(), 1);
    }
}

pub async fn batches_of_one_task_happen_in_its_order(store: Shared) {
    store.commit(batch([insert_item(1)])).await.unwrap();
    // The guard fails unless the one before has happened.
    for revision in 0..100_i64 {
        let sql = "UPDATE item SET revision = revision + 1 WHERE id = 1 AND revision = ?1";
        store.commit(batch([Statement::new(sql, vec![revision.into()])])).await.unwrap();
    }
    assert_eq!(ints(&store, "SELECT revision FROM item").await, [100]);
}

pub async fn many_tasks_commit_at_once_and_nothing_is_lost(store: Shared) {
    let tasks = (0..64_i64).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..20 {
                store.commit(batch([insert_item(task * 20 + n)])).await.unwrap();
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    assert_eq!(items(&store).await, (0..64 * 20).collect::<Vec<_>>());
}

pub async fn watchers_wake_when_it_is_durable_and_only_for_their_topic(store: Shared) {
    let (mut jobs, other) = (store.watch("jobs"), store.watch("other"));
    let before = *jobs.borrow_and_update();
    let mut good = batch([insert_item(1)]);
    good.wake("jobs");
    store.commit(good).await.unwrap();
    assert!(jobs.has_changed().unwrap());
    assert_ne!(*jobs.borrow_and_update(), before);
    let mut bad = batch([insert_item(1)]);
    bad.wake("jobs");
    assert!(matches!(store.commit(bad).await, Err(Error::Refused(_))));
    assert!(!jobs.has_changed().unwrap());
    let mut bare = batch([]);
    bare.wake("jobs");
    store.commit(bare).await.unwrap();
    assert!(jobs.has_changed().unwrap());
    assert!(!other.has_changed().unwrap());
}

pub async fn whoever_is_woken_finds_what_he_was_woken_for(store: Shared) {
    let (mut jobs, reader) = (store.watch("jobs"), store.clone());
    let (found, mut next) = tokio::sync::mpsc::channel(1);
    let watcher = tokio::spawn(async move {
        for id in 0..50_i64 {
            jobs.changed().await.unwrap();
            assert_eq!(rows(&reader, "SELECT 1 FROM item WHERE id = ?1", vec![id.into()]).await.len(), 1);
            found.send(id).await.unwrap();
        }
    });
    for id in 0..50 {
        let mut job = batch([insert_item(id)]);
        job.wake("jobs");
        store.commit(job).await.unwrap();
        assert_eq!(next.recv().await, Some(id));
    }
    watcher.await.unwrap();
}
