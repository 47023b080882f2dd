//! A group is an economy, not a meaning: its batches get the answers they would get one after the other.

use std::sync::Arc;

use orchestr8_kernel::ports::store::{Batch, Error, Guard, Link, Statement};
use proptest::prelude::*;

use crate::sqlite::engine::Engine;
use crate::sqlite::logs::Logs;
use crate::sqlite::{NoFaults, cells, check, limits, open};
use crate::suite::{TABLES, insert_item};

/// Few ids, so that batches meet.
fn step() -> impl Strategy<Value = (Statement, Guard)> {
    let id = 0..6_i64;
    prop_oneof![
        4 => id.clone().prop_map(|id| (insert_item(id), Guard::Rows(1))),
        2 => id.clone().prop_map(|id| {
            let sql = "INSERT INTO item (id) VALUES (?1) ON CONFLICT DO NOTHING";
            (Statement::new(sql, vec![id.into()]), Guard::Rows(1))
        }),
        2 => (id.clone(), 0..3_usize).prop_map(|(id, rows)| {
            let sql = "UPDATE item SET revision = revision + 1 WHERE id <= ?1";
            (Statement::new(sql, vec![id.into()]), Guard::Rows(rows))
        }),
        2 => id.clone().prop_map(|id| (Statement::new("DELETE FROM item WHERE id = ?1", vec![id.into()]), Guard::Any)),
        2 => (id.clone(), id).prop_map(|(id, item)| {
            let sql = "INSERT INTO piece (id, item) VALUES (?1, ?2)";
            (Statement::new(sql, vec![id.into(), item.into()]), Guard::Any)
        }),
        1 => Just((Statement::new("INSERT INTO nowhere VALUES (1)", vec![]), Guard::Any)),
        // Undoes the whole transaction on its own account.
        1 => Just((Statement::new("INSERT OR ROLLBACK INTO item (id) VALUES (0)", vec![]), Guard::Any)),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    let links = proptest::collection::vec((0..2, 0..100_i64), 0..3);
    (proptest::collection::vec(step(), 0..4), links).prop_map(|(steps, links)| {
        let link = |(chain, n): (i32, i64)| Link {
            chain: format!("c{chain}").into(),
            at_ms: n,
            body: n.to_string(),
        };
        Batch { steps, links: links.into_iter().map(link).collect(), topics: vec![] }
    })
}

fn dump(engine: &Engine) -> String {
    let tables = ["SELECT * FROM item", "SELECT * FROM piece", "SELECT * FROM chain"];
    let rows = tables.map(|sql| cells::read(&engine.connection, &Statement::new(sql, vec![])).unwrap());
    format!("{rows:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_group_answers_as_its_batches_one_by_one(groups in proptest::collection::vec(proptest::collection::vec(batch(), 1..8), 1..4)) {
        let disk = open::memory(TABLES).unwrap();
        let engine = || Engine::new(open::copy(&disk).unwrap(), Logs::none(), Arc::new(NoFaults));
        let (mut grouped, mut single) = (engine(), engine());
        for group in &groups {
            let together = grouped.commit(&group.iter().collect::<Vec<_>>()).unwrap();
            let mut apart = Vec::new();
            for batch in group {
                apart.extend(single.commit(&[batch]).unwrap());
            }
            prop_assert_eq!(format!("{together:?}"), format!("{apart:?}"));
            prop_assert_eq!(dump(&grouped), dump(&single));
        }
        for chain in ["c0", "c1"] {
            prop_assert!(check::verify(&grouped.connection, chain).is_ok());
        }
    }
}

/// A link that does not fit fails its batch after the links before it were chained: the next batch must not build on them.
#[test]
fn a_link_too_large_takes_the_links_before_it_along() {
    let mut engine = Engine::new(open::memory(TABLES).unwrap(), Logs::none(), Arc::new(NoFaults));
    let link = |bytes: usize| Link { chain: "c0".into(), at_ms: 1, body: "b".repeat(bytes) };
    let links = |links: Vec<Link>| Batch { links, ..Batch::new() };
    let wrong = links(vec![link(1), link(limits::VALUE_BYTES_MAX + 1)]);
    let good = links(vec![link(2)]);
    let answers = engine.commit(&[&good, &wrong, &good]).unwrap();
    assert!(matches!(answers[..], [Ok(()), Err(Error::Refused(_)), Ok(())]), "{answers:?}");
    assert_eq!(check::verify(&engine.connection, "c0").unwrap().entries, 2);
}
