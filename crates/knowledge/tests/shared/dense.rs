//! What every index over vectors must do, whoever keeps it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use orchestr8_knowledge::retrieval::dense::{Dense, Near, Point};

use crate::letters::DIMENSIONS;

/// Numbers that look random and are always the same.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 33) % limit
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| (self.next() >> 40) as f32 / (1u64 << 24) as f32 - 0.5).collect()
    }
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

fn point(passage: i64, document: &str, vector: Vec<f32>) -> Point {
    Point { passage, document: document.to_owned(), vector }
}

async fn near(
    dense: &dyn Dense,
    tenant: &str,
    vector: &[f32],
    within: Option<&[i64]>,
    limit: usize,
) -> Vec<(i64, f64)> {
    let within = within.map(|numbers| Arc::new(numbers.iter().copied().collect::<HashSet<i64>>()));
    dense.search(Near { tenant: tenant.into(), vector: vector.to_vec(), within, limit }).await.unwrap()
}

async fn numbers(dense: &dyn Dense, tenant: &str) -> Vec<i64> {
    let mut numbers = dense.passages(tenant).await.unwrap();
    numbers.sort_unstable();
    numbers
}

/// All of it. Tenants are named after `sign`, so that one server may be asked several times.
pub async fn suite(dense: &dyn Dense, sign: &str) {
    replaces_and_removes(dense, &format!("{sign}-a")).await;
    keeps_tenants_apart(dense, sign).await;
    keeps_its_position(dense, &format!("{sign}-c")).await;
    filters_cost_no_hit(dense, &format!("{sign}-d")).await;
    finds_what_is_nearest(dense, &format!("{sign}-e")).await;
}

async fn replaces_and_removes(dense: &dyn Dense, tenant: &str) {
    let mut dice = Dice(7);
    let (one, two, three) = (dice.vector(), dice.vector(), dice.vector());
    assert!(near(dense, tenant, &one, None, 5).await.is_empty());
    dense.remove(tenant, vec![String::from("nothing")]).await.unwrap();
    let first = vec![point(1, "x", one.clone()), point(2, "x", two.clone()), point(3, "y", three.clone())];
    for _ in 0..2 {
        dense.upsert(tenant, first.clone()).await.unwrap();
        assert_eq!(numbers(dense, tenant).await, [1, 2, 3], "the same twice changes nothing");
    }
    let found = near(dense, tenant, &two, None, 5).await;
    assert_eq!((found.len(), found[0].0), (3, 2));
    for (number, score) in &found {
        let vector = [&one, &two, &three][usize::try_from(*number - 1).unwrap()];
        assert!((cosine(&two, vector) - score).abs() < 1e-3, "a score is the cosine");
    }
    for held in dense.at_hand(tenant, vec![1, 2, 3, 77]).await.unwrap() {
        let vector = [&one, &two, &three][usize::try_from(held.passage - 1).unwrap()];
        assert!(cosine(vector, &held.vector) > 0.9999, "what is at hand is what was put in");
        assert_eq!(held.document, if held.passage == 3 { "y" } else { "x" });
    }
    // A document that has other passages now has no longer those it had; another's number may have become its own.
    dense.upsert(tenant, vec![point(4, "x", one.clone()), point(3, "x", three.clone())]).await.unwrap();
    assert_eq!(numbers(dense, tenant).await, [3, 4]);
    dense.remove(tenant, vec![String::from("y")]).await.unwrap();
    assert_eq!(numbers(dense, tenant).await, [3, 4]);
    dense.upsert(tenant, vec![point(5, "z", vec![0.0; DIMENSIONS])]).await.unwrap();
    assert_eq!(numbers(dense, tenant).await, [3, 4], "what points nowhere is near to nothing");
    dense.remove(tenant, vec![String::from("x"), String::from("y")]).await.unwrap();
    assert!(near(dense, tenant, &one, None, 5).await.is_empty());
}

async fn keeps_tenants_apart(dense: &dyn Dense, sign: &str) {
    let (mine, theirs) = (format!("{sign}-mine"), format!("{sign}-theirs"));
    let vector = Dice(9).vector();
    dense.upsert(&mine, vec![point(101, "x", vector.clone())]).await.unwrap();
    dense.upsert(&theirs, vec![point(102, "x", vector.clone())]).await.unwrap();
    assert_eq!(near(dense, &mine, &vector, None, 5).await.len(), 1);
    assert!(near(dense, &mine, &vector, Some(&[102]), 5).await.is_empty());
    dense.remove(&theirs, vec![String::from("x")]).await.unwrap();
    assert_eq!(numbers(dense, &mine).await, [101]);
    dense.clear(&theirs).await.unwrap();
    assert_eq!(near(dense, &mine, &vector, None, 5).await[0].0, 101);
}

async fn keeps_its_position(dense: &dyn Dense, tenant: &str) {
    assert_eq!(dense.position(tenant).await.unwrap(), 0);
    dense.upsert(tenant, vec![point(201, "x", Dice(3).vector())]).await.unwrap();
    assert_eq!(dense.position(tenant).await.unwrap(), 0);
    dense.reflect(tenant, 17).await.unwrap();
    assert_eq!(dense.position(tenant).await.unwrap(), 17);
    dense.clear(tenant).await.unwrap();
    assert_eq!((dense.position(tenant).await.unwrap(), numbers(dense, tenant).await.len()), (0, 0));
}

async fn filters_cost_no_hit(dense: &dyn Dense, tenant: &str) {
    let mut dice = Dice(11);
    let query = dice.vector();
    // Many that are nearer and do not pass.
    let mut points: Vec<Point> = (0..1_500)
        .map(|n| {
            let mut vector = query.clone();
            vector[n % DIMENSIONS] += 0.3;
            point(1_000 + i64::try_from(n).unwrap(), &format!("near-{n}"), vector)
        })
        .collect();
    let away: Vec<f32> = query.iter().map(|x| -x).collect();
    points.push(point(9_001, "rare", away.clone()));
    points.push(point(9_002, "rare", away));
    dense.upsert(tenant, points).await.unwrap();
    let found = near(dense, tenant, &query, Some(&[9_001, 9_002, 77]), 5).await;
    assert_eq!(
        found.iter().map(|(number, _)| *number).collect::<HashSet<_>>(),
        HashSet::from([9_001, 9_002])
    );
    assert!(near(dense, tenant, &query, Some(&[]), 5).await.is_empty());
    let half: Vec<i64> = (1_000..2_500).filter(|n| n % 2 == 0).collect();
    let found = near(dense, tenant, &query, Some(&half), 700).await;
    assert!(found.len() == 700 && found.iter().all(|(number, _)| half.contains(number)));
    assert_eq!(near(dense, tenant, &query, None, 1_502).await.len(), 1_502);
}

/// Random documents come, change and go; what is nearest is what comparing with everything says.
async fn finds_what_is_nearest(dense: &dyn Dense, tenant: &str) {
    let mut dice = Dice(4_711);
    let mut naive: BTreeMap<i64, (String, Vec<f32>)> = BTreeMap::new();
    let mut next = 10_000;
    for round in 0..60 {
        let document = format!("d{}", dice.below(15));
        naive.retain(|_, (owner, _)| *owner != document);
        if dice.below(4) == 0 {
            dense.remove(tenant, vec![document]).await.unwrap();
        } else {
            let mut points = Vec::new();
            for _ in 0..=dice.below(8) {
                next += 1;
                points.push(point(next, &document, dice.vector()));
            }
            naive
                .extend(points.iter().map(|point| (point.passage, (document.clone(), point.vector.clone()))));
            dense.upsert(tenant, points).await.unwrap();
        }
        let query = dice.vector();
        let within: Option<Vec<i64>> =
            (round % 2 == 0).then(|| naive.keys().copied().filter(|number| number % 3 == 0).collect());
        let mut wanted: Vec<(i64, f64)> = naive
            .iter()
            .filter(|(number, _)| within.as_ref().is_none_or(|within| within.contains(number)))
            .map(|(number, (_, vector))| (*number, cosine(&query, vector)))
            .collect();
        wanted.sort_by(|one, other| other.1.total_cmp(&one.1));
        wanted.truncate(10);
        let found = near(dense, tenant, &query, within.as_deref(), 10).await;
        let order = |list: &[(i64, f64)]| list.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        assert_eq!(order(&found), order(&wanted), "round {round}");
    }
    assert_eq!(numbers(dense, tenant).await, naive.keys().copied().collect::<Vec<_>>());
}
