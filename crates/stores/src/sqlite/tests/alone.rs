//! A batch that comes alone is committed where it was asked for; one that does not waits its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::poll;
use orchestr8_kernel::ports::store::{Error, Statement, Store};

use super::running::hold_up;
use super::{beside, file, insert, items, opened, path, suite_opened};
use crate::sqlite::{FailPlan, Fault, Options, Point, limits, open};
use crate::suite::{TABLES, batch, insert_item};

#[tokio::test]
async fn a_small_batch_is_durable_when_it_is_first_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    assert!(poll!(&mut store.commit(insert(1))).is_ready());
    assert!(store.commit(insert(1)).await.is_err(), "the id is taken");
    assert_eq!(items(&store).await, [1]);
}

#[tokio::test]
async fn many_steps_and_many_bytes_are_the_writers() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    let mut many =
        store.commit(batch((0..=limits::QUICK_STEPS).map(|id| insert_item(id.try_into().unwrap()))));
    assert!(poll!(&mut many).is_pending());
    many.await.unwrap();
    let blob = vec![0_u8; limits::QUICK_BYTES + 1];
    let statement = Statement::new("INSERT INTO value (id, a_blob) VALUES (1, ?1)", vec![blob.into()]);
    let mut large = store.commit(batch([statement]));
    assert!(poll!(&mut large).is_pending());
    large.await.unwrap();
}

#[tokio::test]
async fn nobody_goes_before_those_who_wait() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    let release = hold_up(&store).await;
    let mut first = store.commit(insert(1));
    assert!(poll!(&mut first).is_pending());
    let mut same = store.commit(insert(1));
    assert!(poll!(&mut same).is_pending());
    drop(release);
    assert!(first.await.is_ok());
    assert!(same.await.is_err());
}

/// Between being handed to the writer and being taken up by it, a job holds no lock: only the count tells of it.
#[tokio::test]
async fn a_job_that_is_on_its_way_to_the_writer_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    store.0.desk.waiting.fetch_add(1, Ordering::SeqCst);
    let mut after = store.commit(insert(1));
    assert!(poll!(&mut after).is_pending(), "it has joined the queue");
    after.await.unwrap();
}

#[tokio::test]
async fn the_log_is_looked_after_though_nobody_waits_for_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    assert!(poll!(&mut store.commit(insert(1))).is_ready());
    // The writer has done what it was asked before this.
    store.shrink(0).await.unwrap();
    let log = beside(&path(&folder), "-wal").metadata().unwrap().len();
    assert!(log >= limits::ROOM_BYTES, "{log} bytes");
}

/// The disk fails from the first commit on.
struct Broken;

impl FailPlan for Broken {
    fn at(&self, point: Point) -> Fault {
        if point == Point::BeforeCommit { Fault::Broken } else { Fault::None }
    }
}

#[tokio::test]
async fn a_broken_disk_closes_the_store_for_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let told = Arc::new(AtomicBool::new(false));
    let heard = told.clone();
    let options = Options {
        faults: Arc::new(Broken),
        on_fatal: Arc::new(move |_| heard.store(true, Ordering::SeqCst)),
        ..Options::new(file(&folder), TABLES.to_vec())
    };
    let store = open(options).unwrap();
    assert!(matches!(poll!(&mut store.commit(insert(1))), std::task::Poll::Ready(Err(Error::Closed))));
    assert!(told.load(Ordering::SeqCst));
    assert!(matches!(store.commit(insert(2)).await, Err(Error::Closed)));
    drop(store);
    assert!(items(&opened(file(&folder), TABLES)).await.is_empty());
}
