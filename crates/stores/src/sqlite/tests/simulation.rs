//! The simulated store: a seed replays, and whatever a seed does, what was acknowledged stays and what was refused never was.

use std::collections::BTreeSet;

use futures::poll;
use orchestr8_kernel::ports::store::{Error, Statement, Store};

use super::{insert, link};
use crate::sqlite::Simulated;
use crate::sqlite::simulated::Rates;
use crate::suite::TABLES;

const RATES: Rates = Rates { full: 0.1, crash_before: 0.05, crash_after: 0.05 };

#[derive(Debug, PartialEq, Default)]
struct Run {
    acknowledged: BTreeSet<i64>,
    refused: BTreeSet<i64>,
    unknown: BTreeSet<i64>,
    found: BTreeSet<i64>,
    crashes: usize,
}

/// Several clients commit until the process dies; then it starts anew, until all is done.
async fn run(disk: &Simulated, seed: u64, commits: i64) -> Run {
    let mut store = disk.copy(seed, RATES).unwrap();
    let mut run = Run::default();
    let mut next = 0;
    while next < commits {
        let mut under_way = Vec::new();
        while next < commits && under_way.len() < 4 {
            let mut batch = insert(next);
            batch.merge(insert(next + 10_000)).merge(link(&next.to_string()));
            under_way.push((next, store.commit(batch)));
            next += 1;
        }
        while !under_way.is_empty() && !store.is_dead() {
            let mut left = Vec::new();
            for (id, mut commit) in under_way {
                match poll!(&mut commit) {
                    std::task::Poll::Pending => left.push((id, commit)),
                    std::task::Poll::Ready(Ok(())) => drop(run.acknowledged.insert(id)),
                    std::task::Poll::Ready(Err(Error::Full(_))) => drop(run.refused.insert(id)),
                    std::task::Poll::Ready(Err(Error::Closed)) => drop(run.unknown.insert(id)),
                    std::task::Poll::Ready(Err(other)) => panic!("{other}"),
                }
            }
            under_way = left;
        }
        if store.is_dead() {
            run.crashes += 1;
            run.unknown.extend(under_way.iter().map(|(id, _)| *id));
            assert!(matches!(store.commit(insert(1)).await, Err(Error::Closed)));
            store = store.restart();
        }
    }
    store.set_rates(Rates::default());
    let rows = store.query(Statement::new("SELECT id FROM item", vec![])).await.unwrap();
    run.found = rows.iter().map(|row| row.int(0).unwrap()).collect();
    let entries = store.query(Statement::new("SELECT COUNT(*), MAX(seq) FROM chain", vec![])).await.unwrap();
    assert_eq!(entries[0].int(0).unwrap() * 2, i64::try_from(run.found.len()).unwrap());
    assert_eq!(entries[0].int(0).unwrap(), entries[0].int(1).unwrap_or(0), "no gap in the chain");
    run
}

#[tokio::test]
async fn whatever_the_seed_what_was_acknowledged_stays_and_what_was_refused_never_was() {
    let (mut crashes, mut full, mut kept_unknown, mut lost_unknown) = (0, 0, 0, 0);
    let disk = Simulated::faultless(TABLES).unwrap();
    for seed in 0..2_000 {
        let run = run(&disk, seed, 50).await;
        let halves = |id: &i64| (run.found.contains(id), run.found.contains(&(id + 10_000)));
        assert!(run.acknowledged.iter().all(|id| halves(id) == (true, true)), "seed {seed}: {run:?}");
        assert!(run.refused.iter().all(|id| halves(id) == (false, false)), "seed {seed}: {run:?}");
        for id in &run.unknown {
            match halves(id) {
                (true, true) => kept_unknown += 1,
                (false, false) => lost_unknown += 1,
                half => panic!("seed {seed}: batch {id} is half there: {half:?}"),
            }
        }
        assert_eq!(run.acknowledged.len() + run.refused.len() + run.unknown.len(), 50);
        crashes += run.crashes;
        full += run.refused.len();
    }
    assert!(crashes > 1_000 && full > 1_000 && kept_unknown > 500 && lost_unknown > 500);
}

#[tokio::test]
async fn a_seed_replays() {
    let disk = Simulated::faultless(TABLES).unwrap();
    for seed in 0..50 {
        assert_eq!(run(&disk, seed, 50).await, run(&disk, seed, 50).await);
    }
    assert_ne!(run(&disk, 1, 50).await, run(&disk, 2, 50).await);
}

#[tokio::test]
async fn a_call_during_which_the_process_dies_never_ends() {
    let store = Simulated::faultless(TABLES).unwrap();
    store.set_rates(Rates { crash_after: 1.0, ..Rates::default() });
    let topic = store.watch("topic");
    let mut batch = insert(1);
    batch.wake("topic");
    let mut commit = store.commit(batch);
    tokio::select! {
        _ = &mut commit => panic!("nothing goes on in a dead process"),
        () = store.crashed() => {}
    }
    assert!(poll!(&mut commit).is_pending());
    assert!(!topic.has_changed().unwrap());
    let again = store.restart();
    again.set_rates(Rates::default());
    let rows = again.query(Statement::new("SELECT id FROM item", vec![])).await.unwrap();
    assert_eq!(rows.len(), 1, "it was applied before the process died");
    assert!(matches!(store.query(Statement::new("SELECT 1", vec![])).await, Err(Error::Closed)));
}
