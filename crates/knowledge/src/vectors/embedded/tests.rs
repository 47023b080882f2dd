//! The index in memory against one that compares everything with everything.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;

use super::shelf::Shelf;

const DIMENSIONS: usize = 12;

#[derive(Debug, Clone)]
enum Op {
    /// A document with so many passages, made from a seed.
    Put(u8, u8, u64),
    /// A passage of one document becomes another's.
    Take(u8, u64),
    Remove(u8),
    /// Only every so-many-th passage may be found.
    Search(u64, Option<i64>, usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (0..12u8, 0..6u8, any::<u64>()).prop_map(|(d, n, s)| Op::Put(d, n, s)),
        1 => (0..12u8).prop_map(Op::Remove),
        1 => (0..12u8, any::<u64>()).prop_map(|(d, s)| Op::Take(d, s)),
        3 => (any::<u64>(), proptest::option::of(1..12i64), 1..20usize).prop_map(|(s, f, k)| Op::Search(s, f, k)),
    ];
    proptest::collection::vec(op, 1..60)
}

fn vector(seed: u64) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..DIMENSIONS).map(|_| next()).collect()
}

fn near(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_is_put_in_and_taken_out_the_nearest_are_found(ops in ops()) {
        let mut shelf = Shelf::new(DIMENSIONS);
        let mut naive: BTreeMap<i64, (u8, Vec<f32>)> = BTreeMap::new();
        let mut next = 0i64;
        for op in ops {
            match op {
                Op::Put(document, count, seed) => {
                    shelf.remove(&document.to_string());
                    naive.retain(|_, (owner, _)| *owner != document);
                    for n in 0..count {
                        next += 1;
                        let vector = vector(seed.wrapping_add(u64::from(n) << 32));
                        shelf.insert(&document.to_string(), next, &vector);
                        naive.insert(next, (document, vector));
                    }
                }
                Op::Take(document, seed) => {
                    if let Some(number) = naive.keys().next().copied() {
                        shelf.insert(&document.to_string(), number, &vector(seed));
                        naive.insert(number, (document, vector(seed)));
                    }
                }
                Op::Remove(document) => {
                    shelf.remove(&document.to_string());
                    naive.retain(|_, (owner, _)| *owner != document);
                }
                Op::Search(seed, every, limit) => {
                    let query = vector(seed);
                    let within: Option<HashSet<i64>> =
                        every.map(|every| (0..=next).filter(|number| number % every == 0).collect());
                    let found = shelf.search(&query, within.as_ref(), limit);
                    let real: HashMap<i64, f64> = naive
                        .iter()
                        .filter(|(number, _)| within.as_ref().is_none_or(|within| within.contains(number)))
                        .map(|(number, (_, vector))| (*number, near(&query, vector)))
                        .collect();
                    // A filter never makes it return fewer than there are.
                    prop_assert_eq!(found.len(), limit.min(real.len()));
                    for (number, score) in &found {
                        prop_assert!((real[number] - score).abs() < 1e-4);
                    }
                    let last = found.last().map_or(f64::INFINITY, |(_, score)| *score);
                    let missed = real.iter().filter(|(number, score)| {
                        **score > last + 1e-4 && !found.iter().any(|(found, _)| found == *number)
                    });
                    prop_assert_eq!(missed.count(), 0);
                }
            }
            prop_assert_eq!(shelf.len(), naive.len());
            let all: Vec<i64> = naive.keys().copied().chain([-1]).collect();
            let points = shelf.points(&all);
            prop_assert_eq!(points.len(), naive.len());
            for point in points {
                let (owner, vector) = &naive[&point.passage];
                prop_assert_eq!(owner.to_string(), point.document);
                prop_assert!(near(vector, &point.vector) > 0.9999);
            }
            let held: HashSet<i64> = shelf.numbers().iter().copied().collect();
            prop_assert_eq!(held, naive.keys().copied().collect::<HashSet<_>>());
        }
    }
}

#[test]
fn vectors_that_are_none_are_near_to_nothing() {
    let mut shelf = Shelf::new(DIMENSIONS);
    shelf.insert("a", 1, &[0.0; DIMENSIONS]);
    shelf.insert("a", 2, &[1.0; 3]);
    assert_eq!(shelf.len(), 0);
    shelf.insert("a", 3, &[1.0; DIMENSIONS]);
    assert!(shelf.search(&[0.0; DIMENSIONS], None, 5).is_empty());
    assert!(shelf.search(&[1.0; 3], None, 5).is_empty());
    assert_eq!(shelf.search(&[1.0; DIMENSIONS], None, 5).len(), 1);
}

#[test]
fn sketches_lose_next_to_nothing_of_what_is_near() {
    const MANY: u64 = 21_000;
    const LONG: usize = 384;
    let dice = |seed: u64| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        }
    };
    // Near one of some hundred topics, as texts are.
    let text = |seed: u64| -> Vec<f32> {
        let (mut topic, mut own) = (dice(seed % 300 + 1), dice(seed + 1_000));
        (0..LONG).map(|_| topic() + own()).collect()
    };
    let mut shelf = Shelf::new(LONG);
    let all: Vec<(i64, Vec<f32>)> = (0..MANY).map(|n| (i64::try_from(n).unwrap(), text(n))).collect();
    for (number, vector) in &all {
        shelf.insert(&format!("d{}", number / 7), *number, vector);
    }
    // Every second document, whatever it is about.
    let even: HashSet<i64> = all.iter().map(|(n, _)| *n).filter(|n| n / 7 % 2 == 0).collect();
    let (mut kept, mut kept_even) = (0, 0);
    for query in (0..10).map(|n| text(MANY + n * 37)) {
        let mut exact: Vec<(f64, i64)> = all.iter().map(|(n, vector)| (near(&query, vector), *n)).collect();
        exact.sort_by(|one, other| other.0.total_cmp(&one.0));
        let found = |within: Option<&HashSet<i64>>| -> HashSet<i64> {
            let found = shelf.search(&query, within, 10);
            assert_eq!(found.len(), 10, "as many as are wanted and allowed");
            found.into_iter().map(|(number, _)| number).collect()
        };
        let hits = found(None);
        kept += exact[..10].iter().filter(|(_, n)| hits.contains(n)).count();
        let hits = found(Some(&even));
        let allowed = exact.iter().filter(|(_, n)| even.contains(n)).take(10);
        kept_even += allowed.filter(|(_, n)| hits.contains(n)).count();
        // Only what is far from the query: the sketches that are near are all of others.
        let far: HashSet<i64> = exact[exact.len() / 2..].iter().map(|(_, n)| *n).collect();
        assert!(found(Some(&far)).is_subset(&far));
    }
    assert!(kept >= 98 && kept_even >= 98, "{kept} and {kept_even} of 100");
}
