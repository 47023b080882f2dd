//! What goes wrong while committing: a full disk, a write that fails, every fail point.

use std::sync::Arc;

use futures::future::join_all;
use orchestr8_kernel::ports::store::{Batch, Error, Statement, Store};
use parking_lot::Mutex;

use super::{file, insert, items, link, suite_opened};
use crate::sqlite::{FailPlan, Fault, Options, Place, Point, Sqlite, open};
use crate::suite::TABLES;

/// One fault, at the n-th time this point is reached.
struct Once {
    point: Point,
    fault: Fault,
    left: Mutex<usize>,
}

impl FailPlan for Once {
    fn at(&self, point: Point) -> Fault {
        let mut left = self.left.lock();
        if point != self.point || *left == 0 {
            return Fault::None;
        }
        *left -= 1;
        if *left == 0 { self.fault } else { Fault::None }
    }
}

fn failing(place: Place, point: Point, fault: Fault, nth: usize) -> (Sqlite, Arc<Mutex<Vec<String>>>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let log = said.clone();
    let store = open(Options {
        on_fatal: Arc::new(move |text| log.lock().push(text.to_owned())),
        faults: Arc::new(Once { point, fault, left: Mutex::new(nth) }),
        ..Options::new(place, TABLES.to_vec())
    });
    (store.unwrap(), said)
}

fn numbered(id: i64) -> Batch {
    let mut batch = insert(id);
    batch.merge(link(&id.to_string()));
    batch
}

#[tokio::test]
async fn a_disk_reported_full_before_the_commit_changes_nothing_and_the_store_goes_on() {
    for point in [Point::BeforeBegin, Point::AfterBatch, Point::BeforeCommit] {
        let folder = tempfile::tempdir().unwrap();
        let (store, said) = failing(file(&folder), point, Fault::Full, 2);
        store.commit(numbered(1)).await.unwrap();
        assert!(matches!(store.commit(numbered(2)).await, Err(Error::Full(_))), "{point:?}");
        store.commit(numbered(3)).await.unwrap();
        assert_eq!(items(&store).await, [1, 3]);
        assert_eq!(store.verify_chain("audit").await.unwrap().entries, 2);
        assert!(said.lock().is_empty());
    }
}

/// In a group the failure of one transaction must not reach the batches in it: each is tried alone.
#[tokio::test]
async fn a_group_that_fails_is_tried_batch_by_batch() {
    for nth in [1, 5, 20] {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = failing(file(&folder), Point::AfterBatch, Fault::Full, nth);
        let answers = join_all((1..=20).map(|id| store.commit(numbered(id)))).await;
        let good: Vec<i64> =
            (1..=20).zip(&answers).filter(|(_, answer)| answer.is_ok()).map(|(id, _)| id).collect();
        assert_eq!(items(&store).await, good);
        assert_eq!(store.verify_chain("audit").await.unwrap().entries as usize, good.len());
        assert!(good.len() >= 19, "{good:?}");
    }
}

#[tokio::test]
async fn a_write_that_fails_stops_the_store_and_what_was_acknowledged_is_there() {
    for point in Point::ALL {
        let folder = tempfile::tempdir().unwrap();
        let (store, said) = failing(file(&folder), point, Fault::Broken, 3);
        store.commit(numbered(1)).await.unwrap();
        store.commit(numbered(2)).await.unwrap();
        assert!(matches!(store.commit(numbered(3)).await, Err(Error::Closed)), "{point:?}");
        assert!(matches!(store.commit(numbered(4)).await, Err(Error::Closed)), "never again");
        assert_eq!(said.lock().len(), 1, "said once: {said:?}");
        drop(store);
        let store = suite_opened(&folder);
        let expected: &[i64] = if point == Point::AfterCommit { &[1, 2, 3] } else { &[1, 2] };
        assert_eq!(items(&store).await, expected, "{point:?}");
        assert_eq!(store.verify_chain("audit").await.unwrap().entries as usize, expected.len());
    }
}

#[tokio::test]
async fn a_failure_after_the_commit_is_never_told_as_undone() {
    let folder = tempfile::tempdir().unwrap();
    let (store, said) = failing(file(&folder), Point::AfterCommit, Fault::Full, 1);
    assert!(matches!(store.commit(numbered(1)).await, Err(Error::Closed)));
    assert_eq!(said.lock().len(), 1);
}

#[tokio::test]
async fn a_panic_in_the_writer_is_fatal() {
    let folder = tempfile::tempdir().unwrap();
    let (store, said) = failing(file(&folder), Point::BeforeBegin, Fault::None, 1);
    let answer = store.0.on_writer(|_| panic!("on purpose")).await;
    assert!(matches!(answer, Err::<(), _>(Error::Closed)));
    assert!(matches!(store.commit(numbered(1)).await, Err(Error::Closed)));
    drop(store);
    assert_eq!(*said.lock(), ["the store's writer panicked"]);
}

#[tokio::test]
async fn a_full_database_says_so_and_works_again_once_there_is_room() {
    for place in [None, Some(Place::Memory)] {
        let folder = tempfile::tempdir().unwrap();
        let place = place.unwrap_or_else(|| file(&folder));
        let store = open(Options { pages_max: Some(60), ..Options::new(place, TABLES.to_vec()) }).unwrap();
        let big = |id: i64| {
            let sql = "INSERT INTO value (id, a_blob) VALUES (?1, ?2)";
            crate::suite::batch([Statement::new(sql, vec![id.into(), vec![1_u8; 20_000].into()])])
        };
        let mut kept = 0;
        let error = loop {
            match store.commit(big(kept)).await {
                Ok(()) => kept += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Full(_)), "{error}");
        assert!(kept > 3);
        // Among many that do not fit, the one that does still gets through.
        let mut answers =
            join_all((100..110).map(|id| store.commit(big(id))).chain([store.commit(insert(1))])).await;
        answers.pop().unwrap().unwrap();
        assert!(answers.iter().all(|answer| matches!(answer, Err(Error::Full(_)))));
        let count = Statement::new("SELECT COUNT(*) FROM value", vec![]);
        assert_eq!(
            store.query(count).await.unwrap()[0].int(0).unwrap(),
            kept,
            "nothing of what failed is there"
        );
        store
            .commit(crate::suite::batch([Statement::new("DELETE FROM value WHERE id = 0", vec![])]))
            .await
            .unwrap();
        store.commit(big(200)).await.unwrap();
        assert!(store.check().await.unwrap().is_sound());
    }
}
