//! What a witness decides about a head: pure.

use orchestr8_contract::merkle::{Hash, is_consistent};

/// A head as a witness remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessedHead {
    pub origin: String,
    /// The public key that verifies it, as `audit key` prints it. The first one counts from then on.
    pub key: String,
    pub size: u64,
    pub root: Hash,
    pub at_ms: i64,
    pub note: String,
}

/// That a log has grown from the size `from` to that of the head that it comes with (RFC 9162, 2.1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsistencyProof {
    pub from: u64,
    pub hashes: Vec<Hash>,
}

/// What becomes of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WitnessVerdict {
    /// It takes the place of the one that is remembered.
    Keep,
    /// It is known already.
    Known,
    /// The log is larger than the one that is remembered, and it is not proven that it has grown from that one.
    Unproven,
    /// It contradicts the one that is remembered.
    Refuse(&'static str),
}

/// Compares a new head with the one that is remembered.
pub fn judge(
    known: Option<&WitnessedHead>,
    new: &WitnessedHead,
    proof: Option<&ConsistencyProof>,
) -> WitnessVerdict {
    match known {
        None => WitnessVerdict::Keep,
        Some(known) if known.key != new.key => WitnessVerdict::Refuse("it is signed with another key"),
        Some(known) if new.size < known.size => WitnessVerdict::Refuse("the log has become smaller"),
        Some(known) if new.size > known.size => match proof.filter(|proof| proof.from == known.size) {
            None if known.size > 0 => WitnessVerdict::Unproven,
            Some(proof)
                if !is_consistent((known.size, &known.root), (new.size, &new.root), &proof.hashes) =>
            {
                WitnessVerdict::Refuse("the log has not grown from the one that is remembered")
            }
            None | Some(_) => WitnessVerdict::Keep,
        },
        Some(known) if new.root != known.root => {
            WitnessVerdict::Refuse("the log has the same size and another root")
        }
        // The same log, signed again: at a start, at a shutdown.
        Some(known) if new.at_ms > known.at_ms => WitnessVerdict::Keep,
        Some(_) => WitnessVerdict::Known,
    }
}

#[cfg(test)]
mod tests {
    use orchestr8_contract::merkle::{Frontier, PathCollector};

    use super::*;

    fn head(size: u64, root: Hash, at_ms: i64) -> WitnessedHead {
        WitnessedHead {
            origin: String::from("orchestr8/a/audit"),
            key: String::from("k"),
            size,
            root,
            at_ms,
            note: String::new(),
        }
    }

    /// A log whose first leaf is this, and its proof from a size on.
    fn log(first: u8, size: u64, from: u64) -> (Hash, ConsistencyProof) {
        let mut log = PathCollector::between(Frontier::new(), from, size);
        log.push_subtree(0, [first; 32]);
        (1..size).for_each(|_| assert!(log.push_subtree(0, [9; 32])));
        (log.frontier().root(), ConsistencyProof { from, hashes: log.consistency(from).unwrap() })
    }

    #[test]
    fn a_log_only_grows() {
        let (root, _) = log(1, 10, 10);
        let known = head(10, root, 5);
        let judge = |new: &WitnessedHead| judge(Some(&known), new, None);
        assert_eq!(super::judge(None, &known, None), WitnessVerdict::Keep);
        assert_eq!(judge(&head(10, root, 6)), WitnessVerdict::Keep);
        assert_eq!(judge(&head(10, root, 5)), WitnessVerdict::Known);
        assert!(matches!(judge(&head(9, root, 9)), WitnessVerdict::Refuse(_)));
        assert!(matches!(judge(&head(10, [2; 32], 9)), WitnessVerdict::Refuse(_)));
        let foreign = WitnessedHead { key: String::from("other"), ..head(11, root, 9) };
        assert!(matches!(judge(&foreign), WitnessVerdict::Refuse(_)));
    }

    #[test]
    fn a_larger_log_is_proven_to_have_grown_from_the_one_that_is_remembered() {
        let (root, _) = log(1, 10, 10);
        let known = head(10, root, 5);
        let (grown, proof) = log(1, 13, 10);
        let new = head(13, grown, 6);
        assert_eq!(judge(Some(&known), &new, Some(&proof)), WitnessVerdict::Keep);
        assert_eq!(judge(Some(&known), &new, None), WitnessVerdict::Unproven);
        let (_, other) = log(1, 13, 8);
        assert_eq!(judge(Some(&known), &new, Some(&other)), WitnessVerdict::Unproven, "from another size");
        let (rewritten, forged) = log(2, 13, 10);
        for proof in [&forged, &proof] {
            let verdict = judge(Some(&known), &head(13, rewritten, 6), Some(proof));
            assert!(matches!(verdict, WitnessVerdict::Refuse(_)), "{verdict:?}");
        }
        assert_eq!(judge(Some(&head(0, [0; 32], 1)), &new, None), WitnessVerdict::Keep, "from nothing");
    }
}
