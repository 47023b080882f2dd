//! The store at work: groups, back-pressure, limits, closing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use futures::future::join_all;
use futures::{FutureExt, poll};
use orchestr8_kernel::ports::store::{Cell, Error, Statement, Store};
use proptest::prelude::*;

use super::{file, insert, items, opened, suite_opened};
use crate::sqlite::engine::Engine;
use crate::sqlite::writer::Job;
use crate::sqlite::{FailPlan, Fault, Options, Place, Point, Sqlite, limits, open};
use crate::suite::TABLES;

/// Holds the writer up until the sender is used or dropped. Keeps no clone of the store, which would keep the file open.
pub(super) async fn hold_up(store: &Sqlite) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel();
    let (begun, beginning) = tokio::sync::oneshot::channel();
    let wait = move |_: &mut Engine| {
        let _ = begun.send(());
        let _ = held.recv();
    };
    store.0.desk.waiting.fetch_add(1, Ordering::SeqCst);
    assert!(store.0.queue.as_ref().unwrap().try_send(Job::Task(Box::new(wait))).is_ok());
    beginning.await.unwrap();
    release
}

struct Count(AtomicUsize);

impl FailPlan for Count {
    fn at(&self, point: Point) -> Fault {
        if point == Point::AfterCommit {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Fault::None
    }
}

#[tokio::test]
async fn what_waits_is_committed_in_one_group() {
    let folder = tempfile::tempdir().unwrap();
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let store =
        open(Options { faults: count.clone(), ..Options::new(file(&folder), TABLES.to_vec()) }).unwrap();
    let release = hold_up(&store).await;
    let mut commits: Vec<_> = (0..100).map(|id| store.commit(insert(id))).collect();
    for commit in &mut commits {
        assert!(poll!(commit).is_pending());
    }
    drop(release);
    assert!(join_all(commits).await.iter().all(Result::is_ok));
    assert_eq!(count.0.load(Ordering::SeqCst), 1, "one flush for all");
    assert_eq!(items(&store).await.len(), 100);
}

#[tokio::test]
async fn a_full_queue_makes_the_next_wait_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    let release = hold_up(&store).await;
    let more = limits::QUEUE_BATCHES_MAX + 100;
    let mut commits: Vec<_> = (0..).take(more).map(|id| store.commit(insert(id))).collect();
    for commit in &mut commits {
        assert!(poll!(commit).is_pending());
    }
    assert_eq!(store.0.queue.as_ref().unwrap().capacity(), 0);
    drop(release);
    assert!(join_all(commits).await.iter().all(Result::is_ok));
    assert_eq!(items(&store).await.len(), more);
}

#[tokio::test]
async fn a_batch_nobody_waits_for_any_more_still_happens_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    let release = hold_up(&store).await;
    let mut left = store.commit(insert(1));
    assert!(poll!(&mut left).is_pending());
    drop(left);
    // One never asked for does not.
    drop(store.commit(insert(2)));
    drop(release);
    store.commit(insert(3)).await.unwrap();
    assert_eq!(items(&store).await, [1, 3]);
}

#[tokio::test]
async fn reads_do_not_wait_for_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    store.commit(insert(1)).await.unwrap();
    let release = hold_up(&store).await;
    assert_eq!(items(&store).await, [1]);
    let long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT COUNT(*) FROM n";
    assert_eq!(store.query(Statement::new(long, vec![])).await.unwrap()[0].int(0).unwrap(), 100_000);
    drop(release);
}

#[tokio::test]
async fn an_answer_too_large_is_refused() {
    for place in [None, Some(Place::Memory)] {
        let folder = tempfile::tempdir().unwrap();
        let store = opened(place.unwrap_or_else(|| file(&folder)), TABLES);
        let rows =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) SELECT i FROM n";
        let ask = |rows_wanted: usize| {
            store.query(Statement::new(rows, vec![i64::try_from(rows_wanted).unwrap().into()]))
        };
        assert_eq!(ask(limits::ANSWER_ROWS_MAX).await.unwrap().len(), limits::ANSWER_ROWS_MAX);
        assert!(matches!(ask(limits::ANSWER_ROWS_MAX + 1).await, Err(Error::Refused(_))));
        let bytes = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
                     SELECT zeroblob(1000000) FROM n";
        assert!(matches!(store.query(Statement::new(bytes, vec![])).await, Err(Error::Refused(_))));
    }
}

#[tokio::test]
async fn a_value_too_large_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    let sql = "INSERT INTO value (id, a_blob) VALUES (1, ?1)";
    let commit = |bytes: usize| {
        store.commit(crate::suite::batch([Statement::new(sql, vec![vec![0_u8; bytes].into()])]))
    };
    assert!(matches!(commit(limits::VALUE_BYTES_MAX + 1).await, Err(Error::Refused(_))));
    commit(limits::VALUE_BYTES_MAX / 2).await.unwrap();
}

#[tokio::test]
async fn closing_finishes_what_was_asked_and_refuses_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let store = suite_opened(&folder);
    let release = hold_up(&store).await;
    let mut before = store.commit(insert(1));
    assert!(poll!(&mut before).is_pending());
    let closing = store.clone();
    let mut close = closing.close().boxed();
    assert!(poll!(&mut close).is_pending());
    let mut after = store.commit(insert(2));
    assert!(poll!(&mut after).is_pending());
    drop(release);
    before.await.unwrap();
    close.await;
    assert!(matches!(after.await, Err(Error::Closed)));
    assert!(matches!(store.commit(insert(3)).await, Err(Error::Closed)));
    assert!(matches!(store.query(Statement::new("SELECT 1", vec![])).await, Err(Error::Closed)));
    assert!(matches!(store.check().await, Err(Error::Closed)));
    store.close().await;
    drop((store, closing));
    assert_eq!(items(&suite_opened(&folder)).await, [1]);
}

#[tokio::test]
async fn watchers_learn_that_the_store_is_gone() {
    let store = opened(Place::Memory, TABLES);
    let mut topic = store.watch("topic");
    drop(store);
    assert!(topic.changed().await.is_err());
}

fn any_cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        Just(Cell::Null),
        any::<i64>().prop_map(Cell::Int),
        any::<f64>().prop_filter("not a number is refused", |real| !real.is_nan()).prop_map(Cell::Real),
        "\\PC{0,40}".prop_map(Cell::from),
        proptest::collection::vec(any::<u8>(), 0..60).prop_map(Cell::Blob),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Any value a statement is given is the value it answers with.
    #[test]
    fn cells_round_trip(cells in proptest::collection::vec(any_cell(), 3)) {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let question = Statement::new("SELECT ?1, ?2, ?3", cells.clone());
        let answer = crate::sqlite::cells::read(&connection, &question).unwrap();
        prop_assert_eq!(&answer[0].0, &cells);
    }
}
