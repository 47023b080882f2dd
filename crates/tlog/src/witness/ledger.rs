//! What a witness decides about a head: pure.

use orchestr8_contract::merkle::Hash;

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

/// What becomes of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WitnessVerdict {
    /// It takes the place of the one that is remembered.
    Keep,
    /// It is known already.
    Known,
    /// It contradicts the one that is remembered.
    Refuse(&'static str),
}

/// Compares a new head with the one that is remembered.
pub fn judge(known: Option<&WitnessedHead>, new: &WitnessedHead) -> WitnessVerdict {
    match known {
        None => WitnessVerdict::Keep,
        Some(known) if known.key != new.key => WitnessVerdict::Refuse("it is signed with another key"),
        Some(known) if new.size < known.size => WitnessVerdict::Refuse("the log has become smaller"),
        Some(known) if new.size > known.size => WitnessVerdict::Keep,
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
    use super::*;

    fn head(size: u64, root: u8, at_ms: i64) -> WitnessedHead {
        WitnessedHead {
            origin: String::from("orchestr8/a/audit"),
            key: String::from("k"),
            size,
            root: [root; 32],
            at_ms,
            note: String::new(),
        }
    }

    #[test]
    fn a_log_only_grows() {
        let known = head(10, 1, 5);
        assert_eq!(judge(None, &known), WitnessVerdict::Keep);
        assert_eq!(judge(Some(&known), &head(11, 2, 6)), WitnessVerdict::Keep);
        assert_eq!(judge(Some(&known), &head(10, 1, 6)), WitnessVerdict::Keep);
        assert_eq!(judge(Some(&known), &head(10, 1, 5)), WitnessVerdict::Known);
        assert!(matches!(judge(Some(&known), &head(9, 1, 9)), WitnessVerdict::Refuse(_)));
        assert!(matches!(judge(Some(&known), &head(10, 2, 9)), WitnessVerdict::Refuse(_)));
        let foreign = WitnessedHead { key: String::from("other"), ..head(11, 2, 9) };
        assert!(matches!(judge(Some(&known), &foreign), WitnessVerdict::Refuse(_)));
    }
}
