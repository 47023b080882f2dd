//! A batch happens whole or not at all, whatever its neighbours do.

use futures::future::join_all;
use orchestr8_kernel::ports::store::{Batch, Error, Link, Statement};

use super::{Shared, batch, insert_item, ints, items, rows};

pub async fn a_batch_happens_whole(store: Shared) {
    let mut whole = batch((1..=100).map(insert_item));
    whole.link(Link { chain: "audit".into(), at_ms: 1, body: "{}".to_owned() });
    store.commit(whole).await.unwrap();
    assert_eq!(items(&store).await, (1..=100).collect::<Vec<_>>());
    assert_eq!(ints(&store, "SELECT seq FROM chain").await, [1]);
}

pub async fn a_failed_guard_undoes_everything_of_its_batch(store: Shared) {
    store.commit(batch([insert_item(1)])).await.unwrap();
    let mut wrong = batch([insert_item(2)]);
    wrong.then_one(Statement::new("UPDATE item SET revision = 9 WHERE id = ?1", vec![77.into()]));
    wrong.then_one(insert_item(3));
    wrong.link(Link { chain: "audit".into(), at_ms: 1, body: "{}".to_owned() });
    assert!(matches!(store.commit(wrong).await, Err(Error::Conflict { step: 1, expected: 1, found: 0 })));
    assert_eq!(items(&store).await, [1]);
    assert!(rows(&store, "SELECT 1 FROM chain", vec![]).await.is_empty());
}

pub async fn a_refused_statement_undoes_everything_of_its_batch(store: Shared) {
    store.commit(batch([insert_item(1)])).await.unwrap();
    let wrong = batch([insert_item(2), insert_item(1), insert_item(3)]);
    assert!(matches!(store.commit(wrong).await, Err(Error::Refused(_))));
    assert_eq!(items(&store).await, [1]);
    store.commit(batch([insert_item(2)])).await.unwrap();
    assert_eq!(items(&store).await, [1, 2]);
}

pub async fn an_empty_batch_is_done(store: Shared) {
    store.commit(Batch::new()).await.unwrap();
    assert!(items(&store).await.is_empty());
}

/// Many at once, so that a store that groups them has good and bad ones in one group.
pub async fn a_wrong_batch_harms_no_neighbour(store: Shared) {
    store.commit(batch([insert_item(0)])).await.unwrap();
    let commits = (1..=200).map(|id| {
        let mut batch = batch([insert_item(id)]);
        match id % 4 {
            1 => drop(batch.then(insert_item(0))),
            2 => drop(batch.then_one(Statement::new("DELETE FROM item WHERE id = ?1", vec![(-1).into()]))),
            _ => {}
        }
        store.commit(batch)
    });
    for (id, answer) in (1..=200).zip(join_all(commits).await) {
        match id % 4 {
            1 => assert!(matches!(answer, Err(Error::Refused(_))), "{id}: {answer:?}"),
            2 => assert!(matches!(answer, Err(Error::Conflict { step: 1, .. })), "{id}: {answer:?}"),
            _ => answer.unwrap(),
        }
    }
    let good: Vec<i64> = (0..=200).filter(|id| *id == 0 || !matches!(id % 4, 1 | 2)).collect();
    assert_eq!(items(&store).await, good);
}

/// A reference that is only checked at the end must not fail the whole group.
pub async fn a_broken_promise_found_at_the_end_harms_no_neighbour(store: Shared) {
    let commits = (1..=60).map(|id| {
        // The part comes before its item; every third item never comes.
        let part = Statement::new("INSERT INTO part (id, item) VALUES (?1, ?1)", vec![id.into()]);
        let mut batch = batch([part]);
        if id % 3 != 0 {
            batch.then_one(insert_item(id));
        }
        store.commit(batch)
    });
    for (id, answer) in (1..=60).zip(join_all(commits).await) {
        if id % 3 == 0 {
            assert!(matches!(answer, Err(Error::Refused(_))), "{id}: {answer:?}");
        } else {
            answer.unwrap();
        }
    }
    let kept: Vec<i64> = (1..=60).filter(|id| id % 3 != 0).collect();
    assert_eq!(ints(&store, "SELECT id FROM part ORDER BY id").await, kept);
    assert_eq!(items(&store).await, kept);
}
