//! Words that stand next to each other in a query and in a passage: a passage that has them so is more likely the right one.

use std::collections::{HashMap, HashSet};

use super::lexical::Wanted;
use crate::text::terms;

/// What a pair counts, as a share of the weight of its more common word.
const SHARE: f64 = 0.23;

/// The pairs of neighbours in a query, with what each is worth.
pub struct Pairs(HashMap<(String, String), f64>);

impl Pairs {
    pub fn of(query: &str, wanted: &[Wanted]) -> Self {
        let weights: HashMap<&str, f64> =
            wanted.iter().map(|one| (one.term.kept.as_str(), one.weight)).collect();
        let words: Vec<String> = terms(query).into_iter().map(|term| term.kept).collect();
        let worth = |pair: &[String]| {
            let [one, other] = pair else { return None };
            let weight = weights.get(one.as_str())?.min(*weights.get(other.as_str())?);
            Some(((one.clone(), other.clone()), weight * SHARE))
        };
        Self(words.windows(2).filter_map(worth).collect())
    }

    /// What a passage gains: each pair counts once, side by side or with one word between.
    pub fn gain(&self, text: &str, title: &str) -> f64 {
        let mut found: HashSet<(String, String)> = HashSet::new();
        for part in [text, title] {
            let words: Vec<String> = terms(part).into_iter().map(|term| term.kept).collect();
            for (at, word) in words.iter().enumerate() {
                for next in words.iter().skip(at + 1).take(2) {
                    let pair = (word.clone(), next.clone());
                    if self.0.contains_key(&pair) {
                        found.insert(pair);
                    }
                }
            }
        }
        // Summed in order, so that the same question always gives the same score.
        let mut gains: Vec<f64> = found.iter().filter_map(|pair| self.0.get(pair)).copied().collect();
        gains.sort_by(f64::total_cmp);
        gains.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_count_once_and_strangers_do_not() {
        let wanted: Vec<Wanted> =
            terms("boundary layer flow").into_iter().map(|term| Wanted { term, weight: 1.0 }).collect();
        let pairs = Pairs::of("boundary layer flow", &wanted);
        assert_eq!(pairs.gain("boundary layers, boundary layers", ""), SHARE);
        assert_eq!(pairs.gain("layer of flow", "Boundary layer"), 2.0 * SHARE);
        assert_eq!(pairs.gain("flow, then layer, then boundary", ""), 0.0);
    }
}
