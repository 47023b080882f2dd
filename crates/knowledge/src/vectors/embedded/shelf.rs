//! The vectors of one tenant, in memory: every search looks at all that may be found, so that none is missed.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pulp::{Arch, NullaryFnOnce};

use crate::retrieval::dense::Point;

use super::codes::{Coded, Planes, code, counted, decoded, exact, near, nearer, sketch, unit, wanted};

/// So many times more than wanted are compared exactly, and at least so many.
const OVERSAMPLED: usize = 4;
const COMPARED: usize = 50;

/// If fewer than one in so many passages are allowed, they are looked up instead of all being looked at.
const SCATTERED: usize = 8;

/// From so many passages on, sketches choose which of them are compared. First those whose signs differ least from the query's:
/// so many for each that is wanted, one in so many of all, and at least so many. Of these, by the numbers of the query and
/// their signs: so many for each that is wanted, and at least so many. See the record of this decision for what is lost.
const SKETCHED: usize = 4_000;
const CHOSEN_EACH: usize = 40;
const CHOSEN_OF: usize = 40;
const CHOSEN_LEAST: usize = 2_000;
const KEPT_EACH: usize = 12;
const KEPT_LEAST: usize = 400;

/// Passages from which is guessed how far the nearest are.
const SAMPLED: usize = 2_048;

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

    /// Those of these passages that are here.
    pub fn points(&self, numbers: &[i64]) -> Vec<Point> {
        let point = |number: &i64| {
            let slot = *self.slots.get(number)?;
            let range = slot * self.dimensions..(slot + 1) * self.dimensions;
            let vector = decoded(&self.coarse[range.clone()], &self.fine[range], self.scales[slot]);
            Some(Point { passage: *number, document: self.owners[slot].as_ref().to_owned(), vector })
        };
        numbers.iter().filter_map(point).collect()
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
        let look = Look { shelf: self, query: &query, codes: &codes, within, limit, compared };
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
    limit: usize,
    compared: usize,
}

impl NullaryFnOnce for Look<'_> {
    type Output = Vec<(i64, f64)>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        let shelf = self.shelf;
        let mut scored = match self.within {
            Some(within) if within.len() < shelf.len() / SCATTERED => {
                self.compare(within.iter().filter_map(|number| shelf.slots.get(number)).copied())
            }
            Some(_) | None if shelf.len() >= SKETCHED => self.compare(self.narrow(self.choose()).into_iter()),
            Some(within) => {
                let passes = |slot: &usize| within.contains(&shelf.numbers[*slot]);
                self.compare((0..shelf.len()).filter(passes))
            }
            None => self.compare(0..shelf.len()),
        };
        if scored.len() > self.compared {
            scored.select_nth_unstable_by(self.compared, |one, other| other.cmp(one));
            scored.truncate(self.compared);
        }
        let mut found = Vec::with_capacity(scored.len());
        for Scored { slot, .. } in scored {
            let range = slot * shelf.dimensions..(slot + 1) * shelf.dimensions;
            let (coarse, fine) = (&shelf.coarse[range.clone()], &shelf.fine[range]);
            found.push((shelf.numbers[slot], f64::from(exact(self.query, coarse, fine, shelf.scales[slot]))));
        }
        found
    }
}

impl Look<'_> {
    /// The passages whose sketches differ least from the query's, of those that are allowed: as many as are worth comparing,
    /// or all there are.
    #[inline(always)]
    fn choose(&self) -> Vec<usize> {
        let (shelf, query) = (self.shelf, sketch(self.query));
        let step = (shelf.len() / SAMPLED).max(1);
        let counts = counted(&query, (0..shelf.len()).step_by(step), &shelf.sketches);
        let allowed = self.within.map_or(shelf.len(), |within| within.len().min(shelf.len()));
        let wanted = (allowed / CHOSEN_OF).max(CHOSEN_LEAST).max(self.limit.saturating_mul(CHOSEN_EACH));
        // Of those that are near, as many pass the filter as of all, if it has nothing to do with the query. If it has, this
        // looks further, in the end at all.
        let mut looked_at = wanted.saturating_mul(shelf.len()) / allowed.max(1);
        loop {
            let all = looked_at >= shelf.len();
            let most = if all { counts.len() } else { farthest(&counts, looked_at.div_ceil(step)) };
            let most = u16::try_from(most).unwrap_or(u16::MAX);
            let mut chosen = nearer(&query, &shelf.sketches, most, looked_at.min(shelf.len()));
            if let Some(within) = self.within {
                chosen.retain(|slot| within.contains(&shelf.numbers[*slot]));
            }
            // The sample may be a little wrong, which costs nothing here.
            if chosen.len() >= wanted / 2 || all {
                return chosen;
            }
            looked_at = looked_at.saturating_mul(4);
        }
    }

    /// The best of those that were chosen.
    #[inline(always)]
    fn narrow(&self, mut chosen: Vec<usize>) -> Vec<usize> {
        let kept = self.limit.saturating_mul(KEPT_EACH).max(KEPT_LEAST);
        if chosen.len() <= kept {
            return chosen;
        }
        let mut scored = Planes::new(self.query).near(&self.shelf.sketches, &chosen);
        scored.select_nth_unstable_by(kept, |one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        chosen.clear();
        chosen.extend(scored[..kept].iter().map(|(_, slot)| *slot));
        chosen
    }

    #[inline(always)]
    fn compare(&self, slots: impl Iterator<Item = usize>) -> Vec<Scored> {
        let (shelf, dimensions) = (self.shelf, self.shelf.dimensions);
        let mut scored = Vec::with_capacity(slots.size_hint().0);
        for slot in slots {
            let coarse = &shelf.coarse[slot * dimensions..(slot + 1) * dimensions];
            scored.push(Scored { score: near(self.codes, coarse) as f32 * shelf.scales[slot], slot });
        }
        scored
    }
}

/// The distance within which so many are.
fn farthest(counts: &[usize], wanted: usize) -> usize {
    let mut sum = 0;
    let enough = counts.iter().position(|count| {
        sum += count;
        sum >= wanted
    });
    enough.unwrap_or(counts.len())
}
