//! Words that stand next to each other in a query and in a passage: a passage that has them so is more likely the right one.

use std::collections::{HashMap, HashSet};

use super::lexical::Wanted;
use crate::text::{Term, terms};

/// What a pair counts, as a share of the weight of its more common word.
const SHARE: f64 = 0.23;

/// The pairs of neighbours in a query, with what each is worth.
pub struct Pairs {
    /// The words of the query, numbered: passages hold many others, which are not looked at again.
    words: HashMap<String, usize>,
    worth: HashMap<(usize, usize), f64>,
}

impl Pairs {
    pub fn of(query: &str, wanted: &[Wanted]) -> Self {
        let weights: HashMap<&str, f64> =
            wanted.iter().map(|one| (one.term.kept.as_str(), one.weight)).collect();
        let mut pairs = Self { words: HashMap::new(), worth: HashMap::new() };
        let mut before: Option<(usize, f64)> = None;
        for term in terms(query) {
            // A word that was left out as too common stands between no two.
            let weight = weights.get(term.kept.as_str()).copied();
            let next = pairs.words.len();
            let word = *pairs.words.entry(term.kept).or_insert(next);
            if let (Some((one, own)), Some(weight)) = (before, weight) {
                pairs.worth.insert((one, word), own.min(weight) * SHARE);
            }
            before = weight.map(|weight| (word, weight));
        }
        pairs
    }

    /// What a passage gains: each pair counts once, side by side or with one word between.
    pub fn gain(&self, text: &str, title: &str) -> f64 {
        if self.worth.is_empty() {
            return 0.0;
        }
        let mut found: HashSet<(usize, usize)> = HashSet::new();
        for part in [text, title] {
            let number = |term: Term| self.words.get(term.kept.as_str()).copied();
            let words: Vec<Option<usize>> = terms(part).into_iter().map(number).collect();
            for (at, word) in words.iter().enumerate() {
                let Some(word) = word else { continue };
                for next in words.iter().skip(at + 1).take(2).flatten() {
                    if self.worth.contains_key(&(*word, *next)) {
                        found.insert((*word, *next));
                    }
                }
            }
        }
        // Summed in order, so that the same question always gives the same score.
        let mut gains: Vec<f64> = found.iter().filter_map(|pair| self.worth.get(pair)).copied().collect();
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
