//! Inclusion proofs: the hashes beside the way from a leaf to the root.

use std::collections::HashMap;

use super::{Frontier, Hash, node_hash};

/// Collects the proofs of some leaves while a log is appended once, from its beginning to its end.
#[derive(Debug)]
pub struct PathCollector {
    size: u64,
    frontier: Frontier,
    /// The subtrees that the proofs need, by level and position, once they are complete.
    needed: HashMap<(u32, u64), Option<Hash>>,
}

impl PathCollector {
    /// For the leaves with these indexes, from 0 on, in a log of this size.
    pub fn new(leaves: &[u64], size: u64) -> Self {
        let mut needed = HashMap::new();
        for leaf in leaves {
            let mut span = (0, size);
            while span.1 - span.0 > 1 {
                let (inside, beside) = halves(span, *leaf);
                needed.extend(perfect_parts(beside).into_iter().map(|part| (part, None)));
                span = inside;
            }
        }
        Self::starting(Frontier::new(), size, needed)
    }

    /// Goes on from a frontier.
    pub(super) fn starting(frontier: Frontier, size: u64, needed: HashMap<(u32, u64), Option<Hash>>) -> Self {
        Self { size, frontier, needed }
    }

    /// The size of the log that the proofs are of.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf, or a perfect subtree. False if it cannot stand here, or the log has its size already.
    pub fn push_subtree(&mut self, level: u32, hash: Hash) -> bool {
        let needed = &mut self.needed;
        let note = &mut |level, position, hash: &Hash| {
            if let Some(place) = needed.get_mut(&(level, position)) {
                *place = Some(*hash);
            }
        };
        self.frontier.size() < self.size && self.frontier.push_subtree(level, hash, note)
    }

    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The proof of one of the leaves, from the bottom to the top. Nothing before the log is complete.
    pub fn path(&self, leaf: u64) -> Option<Vec<Hash>> {
        if leaf >= self.size || self.frontier.size() != self.size {
            return None;
        }
        let (mut span, mut path) = ((0, self.size), Vec::new());
        while span.1 - span.0 > 1 {
            let (inside, beside) = halves(span, leaf);
            path.push(self.hash_of(beside)?);
            span = inside;
        }
        path.reverse();
        Some(path)
    }

    pub(super) fn hash_of(&self, span: (u64, u64)) -> Option<Hash> {
        let mut hash = None;
        for part in perfect_parts(span).into_iter().rev() {
            let left = (*self.needed.get(&part)?)?;
            hash = Some(hash.map_or(left, |right| node_hash(&left, &right)));
        }
        hash
    }
}

/// The root that a leaf, its index, the size of the log and an inclusion proof give (RFC 9162, 2.1.3.2).
pub fn root_of_path(leaf: Hash, index: u64, size: u64, path: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    let (mut place, mut last, mut hash) = (index, size - 1, leaf);
    for beside in path {
        if last == 0 {
            return None;
        }
        if place & 1 == 1 || place == last {
            hash = node_hash(beside, &hash);
            while place & 1 == 0 && place != 0 {
                place >>= 1;
                last >>= 1;
            }
        } else {
            hash = node_hash(&hash, beside);
        }
        place >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(hash)
}

pub(super) type Span = (u64, u64);

/// The half of a span of at least two leaves that holds the leaf, and the other one. The left half is the largest power of
/// two that is smaller than the span.
pub(super) fn halves(span: Span, leaf: u64) -> (Span, Span) {
    let middle = span.0 + (1 << (span.1 - span.0 - 1).ilog2());
    match leaf < middle {
        true => ((span.0, middle), (middle, span.1)),
        false => ((middle, span.1), (span.0, middle)),
    }
}

/// The perfect subtrees of a span, by level and position, from the left.
pub(super) fn perfect_parts(span: Span) -> Vec<(u32, u64)> {
    super::subtrees(span.0, span.1).into_iter().map(|(from, level)| (level, from >> level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::LeafHasher;

    fn leaf(number: u64) -> Hash {
        LeafHasher::new("test").int(i64::try_from(number).unwrap()).finish()
    }

    #[test]
    fn every_leaf_of_every_log_is_proven_and_no_other_is() {
        for size in 1..40 {
            let leaves: Vec<u64> = (0..size).collect();
            let mut collector = PathCollector::new(&leaves, size);
            assert!(leaves.iter().all(|number| collector.push_subtree(0, leaf(*number))));
            assert!(!collector.push_subtree(0, leaf(0)), "it is full");
            let root = Some(collector.frontier().root());
            for number in &leaves {
                let path = collector.path(*number).unwrap();
                assert_eq!(root_of_path(leaf(*number), *number, size, &path), root, "{number} of {size}");
                assert_ne!(root_of_path(leaf(number + 1), *number, size, &path), root);
                assert_ne!(root_of_path(leaf(*number), number ^ 1, size, &path), root);
                assert_eq!(root_of_path(leaf(*number), size, size, &path), None);
                let longer = [path.as_slice(), &[[0; 32]]].concat();
                assert_ne!(root_of_path(leaf(*number), *number, size, &longer), root);
            }
        }
    }

    #[test]
    fn pruned_subtrees_do_not_stand_in_the_way() {
        let mut part = Frontier::new();
        (0..8).for_each(|number| part.push(leaf(number)));
        let mut collector = PathCollector::new(&[9, 12], 13);
        assert!(collector.push_subtree(3, part.root()));
        assert!((8..13).all(|number| collector.push_subtree(0, leaf(number))));
        for number in [9, 12] {
            let path = collector.path(number).unwrap();
            assert_eq!(root_of_path(leaf(number), number, 13, &path), Some(collector.frontier().root()));
        }
        assert_eq!(collector.path(3), None, "it was not asked for");
    }
}
