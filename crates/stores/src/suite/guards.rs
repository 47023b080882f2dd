//! Guards say what must hold; of those who race exactly one wins.

use futures::future::join_all;
use orchestr8_kernel::ports::store::{Batch, Error, Guard, Statement};

use super::{Shared, batch, insert_item, ints, items, rows};

pub async fn a_conflict_says_what_it_expected_and_found(store: Shared) {
    store.commit(batch((1..=3).map(insert_item))).await.unwrap();
    let raise = || Statement::new("UPDATE item SET revision = revision + 1", vec![]);
    for (guard, expected) in [(Guard::Rows(2), 2), (Guard::Rows(4), 4), (Guard::Rows(0), 0)] {
        let batch = Batch { steps: vec![(raise(), guard)], ..Batch::new() };
        let answer = store.commit(batch).await;
        assert!(matches!(answer, Err(Error::Conflict { step: 0, expected: e, found: 3 }) if e == expected));
    }
    assert_eq!(ints(&store, "SELECT revision FROM item").await, [0, 0, 0]);
    for guard in [Guard::Rows(3), Guard::Any] {
        store.commit(Batch { steps: vec![(raise(), guard)], ..Batch::new() }).await.unwrap();
    }
    assert_eq!(ints(&store, "SELECT revision FROM item").await, [2, 2, 2]);
}

pub async fn of_many_claims_on_one_key_exactly_one_wins(store: Shared) {
    let claims = (0..64).map(|owner: i64| {
        let store = store.clone();
        tokio::spawn(async move {
            let sql = "INSERT INTO claim (key, owner) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            store.commit(batch([Statement::new(sql, vec!["key".into(), owner.into()])])).await
        })
    });
    let mut winners = Vec::new();
    for (owner, answer) in (0..).zip(join_all(claims).await) {
        match answer.unwrap() {
            Ok(()) => winners.push(owner),
            Err(Error::Conflict { step: 0, expected: 1, found: 0 }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(ints(&store, "SELECT owner FROM claim").await, winners);
    assert_eq!(winners.len(), 1);
}

pub async fn of_many_writers_on_one_revision_exactly_one_wins(store: Shared) {
    store.commit(batch([insert_item(1)])).await.unwrap();
    for revision in 0..10_i64 {
        let writers = (0..16).map(|_| {
            let sql = "UPDATE item SET revision = revision + 1 WHERE id = 1 AND revision = ?1";
            tokio::spawn(store.commit(batch([Statement::new(sql, vec![revision.into()])])))
        });
        let answers = join_all(writers).await;
        assert_eq!(answers.iter().filter(|answer| matches!(answer, Ok(Ok(())))).count(), 1);
        assert_eq!(ints(&store, "SELECT revision FROM item").await, [revision + 1]);
    }
}

pub async fn references_hold(store: Shared) {
    let piece = |id: i64, item: i64| {
        Statement::new("INSERT INTO piece (id, item) VALUES (?1, ?2)", vec![id.into(), item.into()])
    };
    assert!(matches!(store.commit(batch([piece(1, 1), insert_item(1)])).await, Err(Error::Refused(_))));
    store.commit(batch([insert_item(1), piece(1, 1)])).await.unwrap();
    let delete = Statement::new("DELETE FROM item WHERE id = 1", vec![]);
    assert!(matches!(store.commit(batch([delete])).await, Err(Error::Refused(_))));
    assert_eq!(items(&store).await, [1]);
    assert_eq!(rows(&store, "SELECT item FROM piece", vec![]).await.len(), 1);
}
