//! The best documents for a few words: the same scores, in the same order, as the statement that makes them from the store's
//! postings (`retrieval/tables.rs`).

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};

use super::index::Index;
use super::postings::{Counts, Iter};
use crate::limits::WORDS_MAX;
use crate::retrieval::Hit;
use crate::retrieval::lexical::Weighted;
use crate::retrieval::tables::Weights;

/// Slots whose scores are made together: all of them stay in the nearest memory.
const WINDOW: u32 = 4_096;

impl Index {
    /// The best documents, each with its best passage; of equally good ones the one with the lower number comes first. All
    /// that hold a word are looked at, so a filter costs no hit.
    pub fn best(
        &self,
        words: &[Weighted],
        weights: &Weights,
        within: Option<&HashSet<i64>>,
        limit: usize,
    ) -> Vec<Hit> {
        let norms = norms(weights);
        let lists = words.iter().filter_map(|word| Some((word, self.list(&word.form)?.iter())));
        let mut cursors: Vec<Cursor<'_>> = lists.map(|(word, list)| Cursor::new(word, list)).collect();
        let mut best = Best { index: self, within, limit, kept: BinaryHeap::new(), open: None };
        let mut sums = vec![Sum::default(); WINDOW as usize];
        while let Some(next) = cursors.iter().filter_map(Cursor::slot).min() {
            let start = next - next % WINDOW;
            let end = start.saturating_add(WINDOW);
            for cursor in &mut cursors {
                while let Some((slot, counts)) = cursor.next.filter(|(slot, _)| *slot < end) {
                    let norm = norms[usize::from(self.length(slot))];
                    sums[(slot - start) as usize].add(cursor.word.score(counts, weights.head, norm));
                    cursor.next = cursor.rest.next();
                }
            }
            for (slot, sum) in (start..end).zip(&mut sums) {
                if sum.touched {
                    best.offer(slot, sum.whole());
                    *sum = Sum::default();
                }
            }
        }
        best.finish()
    }
}

impl Weighted {
    fn score(&self, counts: Counts, head: f64, norm: f64) -> f64 {
        let kept = f64::from(counts.body) + head * f64::from(counts.head);
        let plain = f64::from(counts.fold);
        self.kept * kept / (kept + norm) + self.plain * plain / (plain + norm)
    }
}

/// What a length costs, for every length there is.
fn norms(weights: &Weights) -> Vec<f64> {
    let Weights { k1, b, mean, .. } = weights;
    (0..=WORDS_MAX).map(|length| k1 * (1.0 - b + b * length as f64 / mean)).collect()
}

/// Where the list of a word has been read to.
struct Cursor<'a> {
    word: &'a Weighted,
    next: Option<(u32, Counts)>,
    rest: Iter<'a>,
}

impl<'a> Cursor<'a> {
    fn new(word: &'a Weighted, mut rest: Iter<'a>) -> Self {
        Self { word, next: rest.next(), rest }
    }

    fn slot(&self) -> Option<u32> {
        self.next.map(|(slot, _)| slot)
    }
}

/// A sum that remembers what rounding took from it, as SQLite's does: what is equally good stays so, whatever the order of its
/// words.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
    touched: bool,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost +=
            if self.sum.abs() > value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
        self.touched = true;
    }

    fn whole(&self) -> f64 {
        self.sum + self.lost
    }
}

/// A passage and what it is worth; a better one is greater.
#[derive(Clone, Copy)]
struct Ranked {
    score: f64,
    number: i64,
    document: u32,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

/// The best documents so far. Passages of a document come one after another.
struct Best<'a> {
    index: &'a Index,
    within: Option<&'a HashSet<i64>>,
    limit: usize,
    /// The worst of them first.
    kept: BinaryHeap<Reverse<Ranked>>,
    /// The best passage so far of the document that is looked at.
    open: Option<Ranked>,
}

impl Best<'_> {
    fn offer(&mut self, slot: u32, score: f64) {
        let Some(document) = self.index.found_at(slot).filter(|_| score > 0.0) else { return };
        let ranked = Ranked { score, number: self.index.number(slot), document };
        match &mut self.open {
            Some(open) if open.document == document => *open = ranked.max(*open),
            Some(_) | None => {
                self.close();
                self.open = Some(ranked);
            }
        }
    }

    fn close(&mut self) {
        let Some(ranked) = self.open.take() else { return };
        let full = self.kept.len() >= self.limit;
        if full && self.kept.peek().is_none_or(|Reverse(worst)| ranked <= *worst) {
            return;
        }
        // A document passes with all of its passages, or with none. Asked last, since few come this far.
        if self.within.is_some_and(|within| !within.contains(&ranked.number)) {
            return;
        }
        if full {
            self.kept.pop();
        }
        self.kept.push(Reverse(ranked));
    }

    fn finish(mut self) -> Vec<Hit> {
        self.close();
        let sorted = self.kept.into_sorted_vec().into_iter();
        let hit = |Reverse(Ranked { score, number, document })| Hit {
            document: self.index.id(document).to_owned(),
            passage: number,
            score,
        };
        sorted.map(hit).collect()
    }
}
