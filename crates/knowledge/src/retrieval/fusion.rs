//! Fuses two ranked lists. A side that is weak for a query, by its own signs, weighs little: the answer must never be worse than
//! that of the better side alone.

use std::collections::HashMap;
use std::hash::Hash;

/// Ranks are damped by this; sixty is what everybody uses.
const DAMPING: f64 = 60.0;

/// Places at the top that are compared.
const TOP: usize = 10;

/// What a side weighs when nothing speaks for it.
const LEAST: f64 = 0.05;

/// What a side in a language it has not learned weighs at most.
const FOREIGN: f64 = 0.15;

/// What is known about the two sides of one query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signs {
    /// The model has learned the language of the query.
    pub speaks: bool,
    /// The share of the query's words, by weight, that stand in what the lexical side found first; 0 to 1.
    pub covered: f64,
}

/// What each side weighs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    pub lexical: f64,
    pub dense: f64,
}

/// Both lists as one, best first. Equal scores keep the order of the lists, the lexical one first.
pub fn fuse<K: Clone + Eq + Hash>(lexical: &[(K, f64)], dense: &[(K, f64)], signs: Signs) -> Vec<(K, f64)> {
    let weights = weigh(lexical, dense, signs);
    let mut places: HashMap<&K, usize> = HashMap::new();
    let mut fused: Vec<(K, f64)> = Vec::with_capacity(lexical.len() + dense.len());
    for (list, weight) in [(lexical, weights.lexical), (dense, weights.dense)] {
        for (rank, (key, _)) in list.iter().enumerate() {
            let score = weight / (DAMPING + rank as f64 + 1.0);
            match places.get(key) {
                Some(at) => fused[*at].1 += score,
                None => {
                    places.insert(key, fused.len());
                    fused.push((key.clone(), score));
                }
            }
        }
    }
    fused.sort_by(|one, other| other.1.total_cmp(&one.1));
    fused
}

/// What each side weighs for this query.
pub fn weigh<K: Eq + Hash>(lexical: &[(K, f64)], dense: &[(K, f64)], signs: Signs) -> Weights {
    if lexical.is_empty() || dense.is_empty() {
        return Weights { lexical: 1.0, dense: 1.0 };
    }
    let agree = agreement(lexical, dense);
    // Words that are all there and point to few documents make a sure lexical side; a query of which nothing is found, a weak one.
    let words = LEAST.max(0.4 + 0.6 * signs.covered.clamp(0.0, 1.0));
    // A model that has not learned the language is heard only as far as it agrees.
    let model = match signs.speaks {
        true => 0.5 + 0.3 * spread(dense) + 0.2 * agree,
        false => LEAST + (FOREIGN - LEAST) * agree,
    };
    Weights { lexical: words, dense: model.max(LEAST) }
}

/// The share of the top that both have in common.
pub fn agreement<K: Eq + Hash>(one: &[(K, f64)], other: &[(K, f64)]) -> f64 {
    let top = one.len().min(other.len()).min(TOP);
    if top == 0 {
        return 0.0;
    }
    let shared =
        one.iter().take(top).filter(|(key, _)| other.iter().take(top).any(|(found, _)| found == key));
    shared.count() as f64 / top as f64
}

/// How far the first stands out from the tenth, as a share of its score: a flat list knows nothing.
pub fn spread<K>(list: &[(K, f64)]) -> f64 {
    match (list.first(), list.iter().take(TOP).next_back()) {
        (Some((_, first)), Some((_, last))) if *first > 0.0 => ((first - last) / first).clamp(0.0, 1.0),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SURE: Signs = Signs { speaks: true, covered: 1.0 };

    fn list(keys: &[u32]) -> Vec<(u32, f64)> {
        keys.iter().enumerate().map(|(rank, key)| (*key, 10.0 - rank as f64)).collect()
    }

    fn order(fused: &[(u32, f64)]) -> Vec<u32> {
        fused.iter().map(|(key, _)| *key).collect()
    }

    #[test]
    fn what_both_find_comes_first() {
        let fused = fuse(&list(&[1, 2, 3]), &list(&[4, 2, 5]), SURE);
        assert_eq!(fused[0].0, 2);
    }

    #[test]
    fn a_side_that_does_not_speak_the_language_hardly_moves_anything() {
        let lexical = list(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let dense = list(&[90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
        let fused = fuse(&lexical, &dense, Signs { speaks: false, covered: 0.9 });
        assert_eq!(order(&fused)[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn without_one_side_the_other_stands_as_it_is() {
        assert_eq!(order(&fuse(&list(&[3, 1, 2]), &[], SURE)), [3, 1, 2]);
        assert_eq!(order(&fuse(&[], &list(&[3, 1, 2]), SURE)), [3, 1, 2]);
    }

    #[test]
    fn words_that_are_not_found_leave_the_word_to_the_model() {
        let (lexical, dense) = (list(&[1, 2]), list(&[3, 4]));
        let weak = weigh(&lexical, &dense, Signs { speaks: true, covered: 0.0 });
        assert!(weak.dense > weak.lexical);
        let sure = weigh(&lexical, &dense, SURE);
        assert!(sure.lexical > sure.dense);
    }

    #[test]
    fn a_flat_list_weighs_less_than_a_steep_one() {
        let flat: Vec<(u32, f64)> = (20..30).map(|key| (key, 0.5)).collect();
        let steep = list(&[20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
        let lexical = list(&[1, 2, 3]);
        assert!(weigh(&lexical, &flat, SURE).dense < weigh(&lexical, &steep, SURE).dense);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn nothing_is_lost_or_doubled(
            one in proptest::collection::hash_set(0u32..50, 0..30),
            other in proptest::collection::hash_set(0u32..50, 0..30),
            speaks in any::<bool>(),
            covered in 0.0f64..1.0,
        ) {
            let lists = [&one, &other].map(|set| list(&set.iter().copied().collect::<Vec<_>>()));
            let mut keys = order(&fuse(&lists[0], &lists[1], Signs { speaks, covered }));
            let count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            prop_assert_eq!(keys.len(), count);
            prop_assert_eq!(count, one.union(&other).count());
        }
    }
}
