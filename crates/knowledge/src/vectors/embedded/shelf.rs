//! The vectors of one tenant, in memory: every search looks at all that may be found, so that none is missed.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use pulp::{Arch, NullaryFnOnce};

use super::codes::{Coded, apart, code, exact, near, sketch, unit, wanted};

/// So many times more than wanted are compared exactly, and at least so many.
const OVERSAMPLED: usize = 4;
const COMPARED: usize = 100;

/// Passages scored in one go: their scores stay in the nearest cache.
const BLOCK: usize = 128;

/// If fewer than one in so many passages are allowed, they are looked up instead of all being scanned.
const SCATTERED: usize = 8;

/// From so many passages on, sketches choose which of them are compared: one in so many, and at least so many. Measured, more
/// than 98 of the 100 nearest are among them; see the record of this decision.
const SKETCHED: usize = 20_000;
const CHOSEN: usize = 16;
const CHOSEN_LEAST: usize = 4_000;

/// Vectors of one length.
#[derive(Debug, Default)]
pub struct Shelf {
    dimensions: usize,
    numbers: Vec<i64>,
    coarse: Vec<i8>,
    fine: Vec<i8>,
    scales: Vec<f32>,
    /// The signs of their members, one bit each.
    sketches: Vec<u64>,
    slots: HashMap<i64, usize>,
    owners: Vec<Arc<str>>,
    documents: HashMap<Arc<str>, Vec<i64>>,
}

/// A passage and how near it is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scored {
    score: f32,
    slot: usize,
}

impl Eq for Scored {}

impl Ord for Scored {
    /// The later slot counts as less, so that equal scores keep an order.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.slot.cmp(&self.slot))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Shelf {
    pub fn new(dimensions: usize) -> Self {
        Self { dimensions, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Bytes that one passage takes, without its document's name.
    pub fn bytes_each(dimensions: usize) -> usize {
        // Two codes for each member, a scale, its number three times, its slot and owner, and what maps need around them.
        2 * dimensions + dimensions / 8 + 100
    }

    pub fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    /// Puts in a passage of a document. One that points nowhere is near to nothing and is left out.
    pub fn insert(&mut self, document: &str, number: i64, vector: &[f32]) {
        let Some(unit) = unit(vector).filter(|unit| unit.len() == self.dimensions) else { return };
        // The number of a passage that is gone may be another's by now.
        if let Some(&slot) = self.slots.get(&number) {
            if let Some(numbers) = self.documents.get_mut(&self.owners[slot]) {
                numbers.retain(|other| *other != number);
            }
            self.take_out(number);
        }
        let Coded { coarse, fine, scale } = code(&unit);
        let owner = match self.documents.get_key_value(document) {
            Some((owner, _)) => owner.clone(),
            None => document.into(),
        };
        self.slots.insert(number, self.numbers.len());
        self.numbers.push(number);
        self.coarse.extend(coarse);
        self.fine.extend(fine);
        self.scales.push(scale);
        self.sketches.extend(sketch(&unit));
        self.owners.push(owner.clone());
        self.documents.entry(owner).or_default().push(number);
    }

    /// Takes out all passages of a document.
    pub fn remove(&mut self, document: &str) {
        for number in self.documents.remove(document).unwrap_or_default() {
            self.take_out(number);
        }
    }

    /// Words of one sketch.
    fn words(&self) -> usize {
        self.dimensions.div_ceil(64)
    }

    /// The last one moves to where this one was.
    fn take_out(&mut self, number: i64) {
        let Some(slot) = self.slots.remove(&number) else { return };
        let last = self.numbers.len() - 1;
        self.numbers.swap_remove(slot);
        self.scales.swap_remove(slot);
        self.owners.swap_remove(slot);
        let (from, to) = (last * self.dimensions, slot * self.dimensions);
        for codes in [&mut self.coarse, &mut self.fine] {
            codes.copy_within(from..from + self.dimensions, to);
            codes.truncate(from);
        }
        let words = self.words();
        self.sketches.copy_within(last * words..(last + 1) * words, slot * words);
        self.sketches.truncate(last * words);
        if let Some(moved) = self.numbers.get(slot) {
            self.slots.insert(*moved, slot);
        }
    }

    /// The nearest passages, nearest first; of equally near ones the one with the lower number comes first.
    pub fn search(&self, vector: &[f32], within: Option<&HashSet<i64>>, limit: usize) -> Vec<(i64, f64)> {
        let Some(query) = unit(vector).filter(|unit| unit.len() == self.dimensions) else {
            return Vec::new();
        };
        let codes = wanted(&query);
        let compared = limit.saturating_mul(OVERSAMPLED).max(COMPARED);
        let look = Look { shelf: self, query: &query, codes: &codes, within, compared };
        // The best instructions of this machine are chosen when it runs.
        let mut found = Arch::new().dispatch(look);
        found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        found.truncate(limit);
        found
    }
}

/// One look through a shelf, apart so that all of it is built for each set of instructions.
struct Look<'a> {
    shelf: &'a Shelf,
    query: &'a [f32],
    codes: &'a [i16],
    within: Option<&'a HashSet<i64>>,
    compared: usize,
}

impl NullaryFnOnce for Look<'_> {
    type Output = Vec<(i64, f64)>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        let shelf = self.shelf;
        let best = match self.within {
            Some(within) if within.len() < shelf.len() / SCATTERED => {
                self.compare(within.iter().filter_map(|number| shelf.slots.get(number)).copied())
            }
            None if shelf.len() >= SKETCHED => self.compare(self.choose().into_iter()),
            Some(_) | None => self.scan(),
        };
        let mut found = Vec::with_capacity(best.len());
        for Reverse(Scored { slot, .. }) in best {
            let range = slot * shelf.dimensions..(slot + 1) * shelf.dimensions;
            let (coarse, fine) = (&shelf.coarse[range.clone()], &shelf.fine[range]);
            found.push((shelf.numbers[slot], f64::from(exact(self.query, coarse, fine, shelf.scales[slot]))));
        }
        found
    }
}

impl Look<'_> {
    #[inline(always)]
    fn scan(&self) -> BinaryHeap<Reverse<Scored>> {
        let shelf = self.shelf;
        let mut best = BinaryHeap::with_capacity(self.compared + 1);
        let mut scores = [0.0f32; BLOCK];
        let mut least = f32::NEG_INFINITY;
        let dimensions = shelf.dimensions.max(1);
        let blocks = shelf.coarse.chunks(BLOCK * dimensions).zip(shelf.scales.chunks(BLOCK));
        for (number, (block, scales)) in blocks.enumerate() {
            for ((coarse, scale), score) in block.chunks_exact(dimensions).zip(scales).zip(scores.iter_mut())
            {
                *score = near(self.codes, coarse) as f32 * scale;
            }
            for (at, score) in scores[..scales.len()].iter().copied().enumerate() {
                let slot = number * BLOCK + at;
                if score > least && self.within.is_none_or(|within| within.contains(&shelf.numbers[slot])) {
                    least = keep_best(&mut best, Scored { score, slot }, self.compared);
                }
            }
        }
        best
    }

    /// The passages whose sketches differ least from the query's.
    #[inline(always)]
    fn choose(&self) -> Vec<usize> {
        let shelf = self.shelf;
        let query = sketch(self.query);
        let wanted = (shelf.len() / CHOSEN).max(CHOSEN_LEAST).max(self.compared);
        let mut counts = vec![0usize; shelf.dimensions + 1];
        let mut distances = Vec::with_capacity(shelf.len());
        for other in shelf.sketches.chunks_exact(shelf.words().max(1)) {
            let distance = apart(&query, other);
            distances.push(distance);
            counts[usize::from(distance)] += 1;
        }
        let mut sum = 0;
        let enough = counts.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        let most = enough.unwrap_or(shelf.dimensions);
        let mut chosen = Vec::with_capacity(sum);
        chosen.extend((0..distances.len()).filter(|slot| usize::from(distances[*slot]) <= most));
        chosen
    }

    #[inline(always)]
    fn compare(&self, slots: impl Iterator<Item = usize>) -> BinaryHeap<Reverse<Scored>> {
        let shelf = self.shelf;
        let mut best = BinaryHeap::with_capacity(self.compared + 1);
        let mut least = f32::NEG_INFINITY;
        for slot in slots {
            let coarse = &shelf.coarse[slot * shelf.dimensions..(slot + 1) * shelf.dimensions];
            let score = near(self.codes, coarse) as f32 * shelf.scales[slot];
            if score > least {
                least = keep_best(&mut best, Scored { score, slot }, self.compared);
            }
        }
        best
    }
}

/// Adds one to the best, and says what the next must exceed.
#[inline(always)]
fn keep_best(best: &mut BinaryHeap<Reverse<Scored>>, scored: Scored, keep: usize) -> f32 {
    best.push(Reverse(scored));
    if best.len() > keep {
        best.pop();
    }
    match best.peek() {
        Some(Reverse(worst)) if best.len() >= keep => worst.score,
        _ => f32::NEG_INFINITY,
    }
}
