//! The index in memory against one that counts everything again for every question.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering;

use proptest::prelude::*;

use super::index::{Index, Passage, Taken};
use super::postings::Counts;
use super::{Settings, Tree, Words};
use crate::limits::WORDS_IDLE_MS;
use crate::retrieval::Hit;
use crate::retrieval::lexical::Weighted;
use crate::retrieval::tables::Weights;

const WORDS: usize = 6;
const WEIGHTS: Weights = Weights { k1: 1.2, b: 0.75, head: 1.0, mean: 30.0 };

#[derive(Debug, Clone)]
enum Op {
    /// A document with so many passages, made from a seed.
    Put {
        document: u8,
        passages: usize,
        seed: u64,
        hidden: bool,
    },
    Remove(u8),
    Renew,
    /// Only every so-many-th document may be found.
    Search {
        seed: u64,
        every: Option<u8>,
        limit: usize,
    },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    // Now and then more passages than are scored together.
    let passages = prop_oneof![8 => 1..9usize, 1 => 1_000..5_000usize];
    let op = prop_oneof![
        4 => (0..12u8, passages, any::<u64>(), proptest::bool::weighted(0.2))
            .prop_map(|(document, passages, seed, hidden)| Op::Put { document, passages, seed, hidden }),
        1 => (0..12u8).prop_map(Op::Remove),
        1 => Just(Op::Renew),
        3 => (any::<u64>(), proptest::option::of(1..5u8), 1..20usize)
            .prop_map(|(seed, every, limit)| Op::Search { seed, every, limit }),
    ];
    proptest::collection::vec(op, 1..30)
}

fn dice(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut state = seed | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32::try_from(state >> 40).unwrap() % below
    }
}

fn passage(number: i64, seed: u64) -> Passage {
    let mut roll = dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let words = (0..WORDS).filter_map(|word| {
        let counts = Counts { body: roll(3), head: roll(8) / 7, fold: roll(4) / 3 };
        (counts != Counts::default()).then(|| (word.to_string(), counts))
    });
    let words = words.collect();
    Passage { number: number * 4_096 + i64::from(roll(90) + 1), words }
}

/// What each document has, and whether it is hidden.
type Naive = BTreeMap<u8, (bool, Vec<Passage>)>;

fn frequency(naive: &Naive, word: &str) -> usize {
    let all = naive.values().flat_map(|(_, passages)| passages);
    all.filter(|passage| passage.words.iter().any(|(own, _)| own == word)).count()
}

/// The score of every passage that may be found.
fn scores(naive: &Naive, words: &[Weighted], every: Option<u8>) -> HashMap<(String, i64), f64> {
    let mut all = HashMap::new();
    let seen =
        |document: &u8, hidden: bool| !hidden && every.is_none_or(|every| document.is_multiple_of(every));
    for (document, (_, passages)) in naive.iter().filter(|(document, (hidden, _))| seen(document, *hidden)) {
        for passage in passages {
            let norm =
                WEIGHTS.k1 * (1.0 - WEIGHTS.b + WEIGHTS.b * (passage.number & 4_095) as f64 / WEIGHTS.mean);
            let score = |word: &Weighted| {
                let (_, counts) = passage.words.iter().find(|(own, _)| *own == word.form)?;
                let (kept, plain) = (f64::from(counts.body + counts.head), f64::from(counts.fold));
                Some(word.kept * kept / (kept + norm) + word.plain * plain / (plain + norm))
            };
            all.insert((document.to_string(), passage.number), words.iter().filter_map(score).sum());
        }
    }
    all.retain(|_, score| *score > 0.0);
    all
}

/// The scores of the best documents, best first.
fn best(scores: &HashMap<(String, i64), f64>, limit: usize) -> Vec<f64> {
    let mut documents: HashMap<&str, f64> = HashMap::new();
    for ((document, _), score) in scores {
        let best = documents.entry(document).or_default();
        *best = best.max(*score);
    }
    let mut best: Vec<f64> = documents.into_values().collect();
    best.sort_by(|one, other| other.total_cmp(one));
    best.truncate(limit);
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_is_put_in_and_taken_out_the_best_are_found(ops in ops()) {
        let (mut index, mut naive, mut next) = (Index::default(), Naive::new(), 0);
        for (print, op) in (0..).zip(ops) {
            match op {
                Op::Put { document, passages, seed, hidden } => {
                    let passages: Vec<Passage> = (0..passages as u64).map(|n| {
                        next += 1;
                        passage(next, seed.wrapping_add(n))
                    }).collect();
                    naive.insert(document, (hidden, passages.clone()));
                    index.put(Taken { id: document.to_string(), print, hidden, passages });
                }
                Op::Remove(document) => {
                    naive.remove(&document);
                    index.remove(&document.to_string());
                }
                Op::Renew => index = index.renewed(),
                Op::Search { seed, every, limit } => {
                    let mut roll = dice(seed);
                    let wanted: Vec<Weighted> = (0..1 + roll(4)).map(|_| Weighted {
                        form: (roll(7)).to_string(),
                        kept: f64::from(roll(90)) / 7.0,
                        plain: f64::from(roll(90)) / 70.0,
                    }).collect();
                    let within: Option<HashSet<i64>> = every.map(|every| {
                        let pass = naive.iter().filter(|(document, _)| document.is_multiple_of(every));
                        pass.flat_map(|(_, (_, passages))| passages.iter().map(|one| one.number)).collect()
                    });
                    let found = index.best(&wanted, &WEIGHTS, within.as_ref(), limit);
                    let scores = scores(&naive, &wanted, every);
                    let real = best(&scores, limit);
                    prop_assert_eq!(found.len(), real.len());
                    let mut documents = HashSet::new();
                    for (hit, real) in found.iter().zip(real) {
                        prop_assert!((hit.score - real).abs() < 1e-9);
                        prop_assert!((hit.score - scores[&(hit.document.clone(), hit.passage)]).abs() < 1e-9);
                        prop_assert!(documents.insert(&hit.document));
                    }
                    for pair in found.windows(2) {
                        let ranks = |one: &Hit| (one.score, -one.passage);
                        prop_assert!(ranks(&pair[0]) > ranks(&pair[1]));
                    }
                }
            }
            let passages: usize = naive.values().map(|(_, passages)| passages.len()).sum();
            prop_assert_eq!(index.len(), passages);
            for word in (0..=WORDS).map(|word| word.to_string()) {
                prop_assert_eq!(index.frequency(&word), frequency(&naive, &word));
            }
        }
    }
}

fn taken(id: usize, hidden: bool) -> Taken {
    let passages = vec![passage(i64::try_from(id).unwrap(), id as u64)];
    Taken { id: id.to_string(), print: 1, hidden, passages }
}

#[test]
fn a_document_that_is_only_hidden_or_shown_takes_no_new_slots() {
    let mut index = Index::default();
    (0..3_000).for_each(|id| index.put(taken(id, false)));
    let bytes = index.bytes();
    for hidden in [true, false] {
        (0..3_000).for_each(|id| index.put(taken(id, hidden)));
    }
    assert_eq!((index.len(), index.bytes(), index.is_worn()), (3_000, bytes, false));
    (0..1_100).for_each(|id| index.remove(&id.to_string()));
    assert!(index.is_worn() && !index.renewed().is_worn());
    assert!(index.renewed().bytes() < bytes);
}

#[test]
fn it_takes_what_it_says_for_many_passages() {
    const PASSAGES: usize = 20_000;
    let mut index = Index::default();
    for id in 0..PASSAGES {
        let mut roll = dice(id as u64 + 1);
        let mut words = BTreeMap::new();
        // Few words are common.
        for _ in 0..80 {
            let rank = 20_000f64.powf(f64::from(roll(1 << 20)) / f64::from(1 << 20));
            words.entry(format!("w{}", rank as u64)).or_insert(Counts::default()).body += 1;
        }
        let number = i64::try_from(id).unwrap() * 4_096 + 80;
        let passages = vec![Passage { number, words: words.into_iter().collect() }];
        index.put(Taken {
            id: format!("00000000-0000-4000-8000-{id:012}"),
            print: 1,
            hidden: false,
            passages,
        });
    }
    let (real, estimate) = (index.bytes(), Index::bytes_of(PASSAGES, PASSAGES * 80));
    assert!(real < PASSAGES * 600, "{real}");
    assert!(estimate < 2 * real && real < 2 * estimate, "{estimate} for {real}");
}

fn tree(chunks: i64) -> Tree {
    Tree { version: 1, chunks, words: 10 * chunks }
}

#[test]
fn the_longest_idle_makes_room_and_nobody_who_is_asked_for() {
    let words = Words::new(Settings { memory_bytes: 10_000, from_passages: 10 });
    let hold = |tenant: &str, bytes: usize, now_us: u64| {
        let kept = words.want(tenant, tree(10), now_us).unwrap();
        kept.bytes.store(bytes, Ordering::Relaxed);
    };
    let idle_us = WORDS_IDLE_MS * 1_000;
    assert!(words.want("small", tree(9), 0).is_none());
    assert!(words.want("huge", tree(1_000), 0).is_none(), "by an estimate");
    hold("a", 5_000, 1);
    hold("b", 5_000, 0);
    assert!(words.make_room("b", 1));
    // Both were asked for a moment ago.
    hold("c", 5_000, 2);
    assert!(!words.make_room("c", 2));
    assert!(words.want("c", tree(10), 3).is_none(), "it is not tried again at once");
    assert_eq!(words.bytes(), 10_000);
    hold("c", 5_000, idle_us + 2);
    hold("a", 5_000, idle_us + 2);
    assert!(words.make_room("c", idle_us + 2));
    assert!(words.kept("b").is_none() && words.kept("a").is_some() && words.kept("c").is_some());
}
