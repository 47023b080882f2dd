//! Fuses what was found by words with what was found by meaning. A side that is weak for a query, by its own signs, weighs
//! little: the answer must not be worse than that of the better side alone.
//!
//! Each score counts as a share of the best of its side. So a side that can hardly tell its candidates apart hardly moves
//! them, whatever the scale of its scores; and both lists are of one measure (see docs/adr/0018).

use std::collections::HashMap;
use std::hash::Hash;

/// What a model weighs in a language that it has not learned: it still sees names, numbers and borrowed words.
const FOREIGN: f64 = 0.5;

/// When this share of a query's words, by weight, stands in the best passage, the search by words weighs all it can.
const COVERED: f64 = 0.6;

/// What the search by words weighs at least.
const LEAST: f64 = 0.2;

/// What one side found, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct Side<K> {
    pub list: Vec<(K, f64)>,
    /// What whatever is not in the list has at most.
    pub floor: f64,
}

/// What is known about the two sides of one query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signs {
    /// The model has learned the language of the query.
    pub speaks: bool,
    /// The share of the query's words, by weight, that stand in what the search by words found first; 0 to 1.
    pub covered: f64,
}

/// What each side weighs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    pub lexical: f64,
    pub dense: f64,
}

/// Both sides as one list, best first, with scores from 0 to 1. Equal scores keep the order of the lists, that by words
/// first.
pub fn fuse<K: Clone + Eq + Hash>(lexical: &Side<K>, dense: &Side<K>, signs: Signs) -> Vec<(K, f64)> {
    let weights = weigh(lexical, dense, signs);
    let of_words = shares(lexical);
    let of_meaning = shares(dense);
    let mut fused: Vec<(K, f64)> = Vec::with_capacity(lexical.list.len() + dense.list.len());
    let both = lexical.list.iter().chain(dense.list.iter().filter(|(key, _)| !of_words.0.contains_key(key)));
    for (key, _) in both {
        let score = weights.lexical * of_words.share(key) + weights.dense * of_meaning.share(key);
        fused.push((key.clone(), score / (weights.lexical + weights.dense)));
    }
    fused.sort_by(|one, other| other.1.total_cmp(&one.1));
    fused
}

/// What each side weighs for this query. A side that found nothing weighs nothing.
pub fn weigh<K>(lexical: &Side<K>, dense: &Side<K>, signs: Signs) -> Weights {
    if lexical.list.is_empty() || dense.list.is_empty() {
        let all = |side: &Side<K>| if side.list.is_empty() { 0.0 } else { 1.0 };
        return Weights { lexical: all(lexical), dense: all(dense).max(1.0 - all(lexical)) };
    }
    Weights {
        lexical: (signs.covered / COVERED).clamp(LEAST, 1.0),
        dense: if signs.speaks { 1.0 } else { FOREIGN },
    }
}

/// The scores of a side as shares of its best.
struct Shares<'a, K>(HashMap<&'a K, f64>, f64);

fn shares<K: Eq + Hash>(side: &Side<K>) -> Shares<'_, K> {
    let best = side.list.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    let share = |score: f64| if best > 0.0 { (score / best).clamp(0.0, 1.0) } else { 0.0 };
    Shares(side.list.iter().map(|(key, score)| (key, share(*score))).collect(), share(side.floor))
}

impl<K: Eq + Hash> Shares<'_, K> {
    fn share(&self, key: &K) -> f64 {
        self.0.get(key).copied().unwrap_or(self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SURE: Signs = Signs { speaks: true, covered: 1.0 };

    fn side(keys: &[u32]) -> Side<u32> {
        let list = keys.iter().enumerate().map(|(rank, key)| (*key, 10.0 - rank as f64)).collect();
        Side { list, floor: 0.0 }
    }

    fn order(fused: &[(u32, f64)]) -> Vec<u32> {
        fused.iter().map(|(key, _)| *key).collect()
    }

    #[test]
    fn what_both_find_comes_first() {
        let fused = fuse(&side(&[1, 2, 3]), &side(&[4, 2, 5]), SURE);
        assert_eq!(fused[0].0, 2);
    }

    #[test]
    fn a_side_that_cannot_tell_its_candidates_apart_moves_nothing() {
        let flat =
            Side { list: (1..=10).rev().map(|key| (key, 0.4 + f64::from(key) * 1e-4)).collect(), floor: 0.4 };
        let steep = side(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(order(&fuse(&steep, &flat, SURE)), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let fused = fuse(&flat, &steep, SURE);
        assert_eq!(order(&fused), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn without_one_side_the_other_stands_as_it_is() {
        assert_eq!(order(&fuse(&side(&[3, 1, 2]), &side(&[]), SURE)), [3, 1, 2]);
        assert_eq!(order(&fuse(&side(&[]), &side(&[3, 1, 2]), SURE)), [3, 1, 2]);
        assert!(fuse(&side(&[]), &side(&[]), SURE).is_empty());
    }

    #[test]
    fn words_that_are_not_found_leave_the_word_to_the_model() {
        let (lexical, dense) = (side(&[1, 2]), side(&[3, 4]));
        let weak = weigh(&lexical, &dense, Signs { speaks: true, covered: 0.0 });
        assert!(weak.dense > weak.lexical);
        assert_eq!(fuse(&lexical, &dense, Signs { speaks: true, covered: 0.0 })[0].0, 3);
    }

    #[test]
    fn a_model_that_does_not_speak_the_language_weighs_less() {
        let (lexical, dense) = (side(&[1, 2]), side(&[3, 4]));
        let foreign = Signs { speaks: false, covered: 1.0 };
        assert!(weigh(&lexical, &dense, foreign).dense < weigh(&lexical, &dense, SURE).dense);
        assert_eq!(fuse(&lexical, &dense, foreign)[0].0, 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn nothing_is_lost_or_doubled_and_scores_are_shares(
            one in proptest::collection::hash_set(0u32..50, 0..30),
            other in proptest::collection::hash_set(0u32..50, 0..30),
            speaks in any::<bool>(),
            covered in 0.0f64..1.0,
        ) {
            let sides = [&one, &other].map(|set| side(&set.iter().copied().collect::<Vec<_>>()));
            let fused = fuse(&sides[0], &sides[1], Signs { speaks, covered });
            prop_assert!(fused.iter().all(|(_, score)| (0.0..=1.0).contains(score)));
            let mut keys = order(&fused);
            let count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            prop_assert_eq!(keys.len(), count);
            prop_assert_eq!(count, one.union(&other).count());
        }
    }
}
