//! Consistency proofs: that a log has grown from what it was (RFC 9162, 2.1.4).

use super::path::{Span, halves, perfect_parts};
use super::{Frontier, Hash, PathCollector, node_hash};

impl PathCollector {
    /// For the proof that a log of the size `to` has grown from one of the size `from`. `start` is the log at `from` or before;
    /// what comes after it is appended.
    pub fn between(start: Frontier, from: u64, to: u64) -> Self {
        let parts = spans(from, to).into_iter().flat_map(perfect_parts);
        let mut needed: std::collections::HashMap<_, _> = parts.map(|part| (part, None)).collect();
        for (level, hash) in start.peaks() {
            if let Some(place) = needed.get_mut(&(level, (start.size() >> level) - 1)) {
                *place = Some(*hash);
            }
        }
        Self::starting(start, to, needed)
    }

    /// The consistency proof, in the order of the RFC. Nothing before the log is complete, or where a subtree that the proof
    /// needs was deleted.
    pub fn consistency(&self, from: u64) -> Option<Vec<Hash>> {
        let (size, is_complete) = (self.size(), self.frontier().size() == self.size());
        if from > size || !is_complete {
            return None;
        }
        spans(from, size).into_iter().map(|span| self.hash_of(span)).collect()
    }
}

/// What a consistency proof has the hashes of, in its order.
fn spans(from: u64, to: u64) -> Vec<Span> {
    if from == 0 || from >= to {
        return Vec::new();
    }
    let (mut span, mut found) = ((0, to), Vec::new());
    while span.1 != from {
        let (inside, beside) = halves(span, from - 1);
        found.push(beside);
        span = inside;
    }
    // A verifier has the root of the older log: if that is a subtree of the newer one, it is not in the proof.
    if span.0 != 0 {
        found.push(span);
    }
    found.reverse();
    found
}

/// Whether a log with the second size and root has grown from one with the first (RFC 9162, 2.1.4.2). Everything grows from
/// the empty log.
pub fn is_consistent(first: (u64, &Hash), second: (u64, &Hash), proof: &[Hash]) -> bool {
    let ((from, first_root), (to, second_root)) = (first, second);
    if from == 0 || from == to {
        return proof.is_empty() && (from == 0 || first_root == second_root);
    }
    let whole = from.is_power_of_two().then_some(first_root);
    let mut hashes = whole.into_iter().chain(proof);
    let Some(seed) = hashes.next().filter(|_| from < to) else { return false };
    let (mut place, mut last, mut older, mut newer) = (from - 1, to - 1, *seed, *seed);
    while place & 1 == 1 {
        place >>= 1;
        last >>= 1;
    }
    for hash in hashes {
        if last == 0 {
            return false;
        }
        if place & 1 == 1 || place == last {
            older = node_hash(hash, &older);
            newer = node_hash(hash, &newer);
            while place & 1 == 0 && place != 0 {
                place >>= 1;
                last >>= 1;
            }
        } else {
            newer = node_hash(&newer, hash);
        }
        place >>= 1;
        last >>= 1;
    }
    last == 0 && older == *first_root && newer == *second_root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::LeafHasher;

    fn leaf(number: u64) -> Hash {
        LeafHasher::new("test").int(i64::try_from(number).unwrap()).finish()
    }

    fn log(size: u64) -> Frontier {
        let mut log = Frontier::new();
        (0..size).for_each(|number| log.push(leaf(number)));
        log
    }

    /// The proof, made from what the log was at `start`.
    fn proof(start: u64, from: u64, to: u64) -> Vec<Hash> {
        let mut collector = PathCollector::between(log(start), from, to);
        assert!((start..to).all(|number| collector.push_subtree(0, leaf(number))));
        collector.consistency(from).unwrap()
    }

    #[test]
    fn every_log_is_proven_to_have_grown_from_every_smaller_one() {
        for to in 1..40 {
            for from in 0..=to {
                let proof = proof(from, from, to);
                let (first, second) = (log(from).root(), log(to).root());
                assert!(is_consistent((from, &first), (to, &second), &proof), "{from} to {to}");
                for start in [0, from / 2] {
                    assert_eq!(self::proof(start, from, to), proof, "{start}: {from} to {to}");
                }
                assert!(!is_consistent((from, &first), (to, &leaf(1)), &proof) || from == 0);
                assert!(!is_consistent((from, &leaf(1)), (to, &second), &proof) || from == 0);
                let longer = [proof.as_slice(), &[leaf(2)]].concat();
                assert!(!is_consistent((from, &first), (to, &second), &longer));
                if let Some((_, shorter)) = proof.split_last() {
                    assert!(!is_consistent((from, &first), (to, &second), shorter));
                }
                assert!(!is_consistent((to + 1, &second), (to, &second), &proof), "a log does not shrink");
            }
        }
    }

    /// A log whose old entry was changed before it grew has the size and another history.
    #[test]
    fn a_log_that_was_rewritten_has_no_proof() {
        for (from, to) in [(1, 2), (3, 7), (4, 8), (6, 8), (7, 33), (8, 9)] {
            let old = log(from).root();
            let mut rewritten = Frontier::new();
            rewritten.push(leaf(99));
            (1..to).for_each(|number| rewritten.push(leaf(number)));
            let mut collector = PathCollector::between(Frontier::new(), from, to);
            collector.push_subtree(0, leaf(99));
            (1..to).for_each(|number| assert!(collector.push_subtree(0, leaf(number))));
            for forged in [collector.consistency(from).unwrap(), proof(from, from, to)] {
                assert!(!is_consistent((from, &old), (to, &rewritten.root()), &forged), "{from} to {to}");
            }
        }
    }

    #[test]
    fn what_was_deleted_cannot_be_proven_and_is_not_guessed() {
        let mut collector = PathCollector::between(Frontier::new(), 6, 9);
        assert!(collector.push_subtree(3, log(8).root()));
        assert!(collector.push_subtree(0, leaf(8)));
        assert_eq!(collector.consistency(6), None);
        assert_eq!(PathCollector::between(log(6), 6, 9).consistency(6), None, "it is not complete");
    }
}
