//! Values come back as they went in; what is wrong is refused and changes nothing.

use orchestr8_kernel::ports::store::{Cell, Error, Statement};

use super::{Shared, batch, insert_item, items, rows};

const INSERT: &str = "INSERT INTO value (id, an_int, a_real, a_text, a_blob) VALUES (?1, ?2, ?3, ?4, ?5)";
const SELECT: &str = "SELECT an_int, a_real, a_text, a_blob FROM value WHERE id = ?1";

pub async fn every_value_reads_back_as_written(store: Shared) {
    let ints = [0, 1, -1, i64::MAX, i64::MIN, 1 << 53, (1 << 53) + 1];
    let reals =
        [0.0, -1.5, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, f64::INFINITY, f64::NEG_INFINITY, 0.1];
    let texts =
        ["", " ", "plain", "Grüße, мир, 世界, 🦀", "a'b\"c;--", "line\nbreak\ttab", "\u{10ffff}", "e\u{301}"];
    let all_bytes: Vec<u8> = (0..=255).collect();
    let blobs = [vec![], vec![0], all_bytes, vec![0xff; 100_000]];
    let mut values: Vec<[Cell; 4]> = vec![[Cell::Null, Cell::Null, Cell::Null, Cell::Null]];
    let rest = || [Cell::Null, Cell::Null, Cell::Null, Cell::Null];
    let mut add = |place: usize, cell: Cell| {
        let mut row = rest();
        row[place] = cell;
        values.push(row);
    };
    ints.into_iter().for_each(|int| add(0, Cell::Int(int)));
    reals.into_iter().for_each(|real| add(1, Cell::Real(real)));
    texts.into_iter().for_each(|text| add(2, Cell::from(text)));
    blobs.into_iter().for_each(|blob| add(3, Cell::Blob(blob)));
    for (id, row) in (1_i64..).zip(&values) {
        let cells = std::iter::once(Cell::Int(id)).chain(row.iter().cloned()).collect();
        store.commit(batch([Statement::new(INSERT, cells)])).await.unwrap();
    }
    for (id, row) in (1_i64..).zip(&values) {
        assert_eq!(rows(&store, SELECT, vec![id.into()]).await[0].0, row);
    }
}

pub async fn wrong_statements_are_refused_and_change_nothing(store: Shared) {
    let wrong = [
        Statement::new("INSERT INTO nowhere (id) VALUES (1)", vec![]),
        Statement::new("INSERT INTO item (nothing) VALUES (1)", vec![]),
        Statement::new("INSERT INTO item", vec![]),
        Statement::new("INSERT INTO item (id) VALUES (?1)", vec![]),
        Statement::new("INSERT INTO item (id) VALUES (?1)", vec![2.into(), 3.into()]),
        Statement::new("INSERT INTO item (id) VALUES (2); DELETE FROM item", vec![]),
        Statement::new("INSERT INTO item (id) VALUES (2) RETURNING id", vec![]),
        Statement::new("INSERT INTO item (id, revision) VALUES (2, ?1)", vec![Cell::Null]),
        Statement::new("INSERT INTO item (id, revision) VALUES (2, ?1)", vec!["text".into()]),
        Statement::new("INSERT INTO value (id, a_real) VALUES (2, ?1)", vec![Cell::Real(f64::NAN)]),
        Statement::new("", vec![]),
    ];
    for statement in wrong {
        let answer = store.commit(batch([insert_item(1), statement.clone()])).await;
        assert!(matches!(answer, Err(Error::Refused(_))), "{statement:?}: {answer:?}");
    }
    assert!(items(&store).await.is_empty());
}

pub async fn a_batch_only_changes_and_a_query_only_reads(store: Shared) {
    let never = [
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "SAVEPOINT a",
        "PRAGMA user_version = 1",
        "VACUUM",
        "DROP TABLE item",
    ];
    let reads = ["SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "VALUES (1)"];
    for sql in never.into_iter().chain(reads) {
        let answer = store.commit(batch([insert_item(1), Statement::new(sql, vec![])])).await;
        assert!(matches!(answer, Err(Error::Refused(_))), "{sql}: {answer:?}");
    }
    let writes = [
        "INSERT INTO item (id) VALUES (1)",
        "DELETE FROM item",
        "WITH a AS (SELECT 1) INSERT INTO item (id) SELECT * FROM a",
    ];
    for sql in never.into_iter().chain(writes) {
        let answer = store.query(Statement::new(sql, vec![])).await;
        assert!(matches!(answer, Err(Error::Refused(_))), "{sql}: {answer:?}");
    }
    assert!(items(&store).await.is_empty());
}

pub async fn too_many_steps_are_refused(store: Shared) {
    let answer = store.commit(batch((0..=10_000).map(insert_item))).await;
    assert!(matches!(answer, Err(Error::Refused(_))), "{answer:?}");
    assert!(items(&store).await.is_empty());
    store.commit(batch((0..10_000).map(insert_item))).await.unwrap();
    assert_eq!(items(&store).await.len(), 10_000);
}
