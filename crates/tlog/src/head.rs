//! A tree head: how large a log is and what its root is, signed (c2sp.org/tlog-checkpoint).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orchestr8_contract::canonical::hex;
use orchestr8_contract::merkle::Hash;
use orchestr8_stores::merkle::KnownHead;

use crate::key::{self, LogKey, LogPublicKey};

/// Why a head was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadEvent {
    /// The server started; it may have been killed before.
    Start,
    /// Time has passed.
    Interval,
    /// The server stopped: nothing comes after it until the next start.
    Shutdown,
    /// A person has decided that the log begins here, whatever earlier heads say.
    Accepted,
}

impl HeadEvent {
    const ALL: [HeadEvent; 4] =
        [HeadEvent::Start, HeadEvent::Interval, HeadEvent::Shutdown, HeadEvent::Accepted];

    pub fn as_str(self) -> &'static str {
        match self {
            HeadEvent::Start => "start",
            HeadEvent::Interval => "interval",
            HeadEvent::Shutdown => "shutdown",
            HeadEvent::Accepted => "accepted",
        }
    }
}

/// What is signed about a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeHead {
    /// Which log of which data file: `orchestr8/<data file>/<log>`.
    pub origin: String,
    pub size: u64,
    pub root: Hash,
    pub at_ms: i64,
    pub event: HeadEvent,
}

impl TreeHead {
    /// The name of the log.
    pub fn log(&self) -> &str {
        self.origin.rsplit('/').next().unwrap_or_default()
    }

    pub fn known(&self) -> KnownHead {
        KnownHead { size: self.size, root: self.root, at_ms: self.at_ms }
    }

    pub fn sign(&self, key: &LogKey) -> String {
        let Self { origin, size, root, at_ms, event } = self;
        let (root, event) = (STANDARD.encode(root), event.as_str());
        key.sign(&format!("{origin}\n{size}\n{root}\ntime {at_ms}\nevent {event}\n"))
    }

    pub fn open(note: &str, key: &LogPublicKey) -> Result<Self, key::Error> {
        Self::parse(key.open(note)?).ok_or(key::Error::Malformed)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (origin, size, root) = (lines.next()?.to_owned(), lines.next()?.parse().ok()?, lines.next()?);
        let root = STANDARD.decode(root).ok()?.try_into().ok()?;
        let at_ms = lines.next()?.strip_prefix("time ")?.parse().ok()?;
        let event = lines.next()?.strip_prefix("event ")?;
        let event = HeadEvent::ALL.into_iter().find(|known| known.as_str() == event)?;
        Some(Self { origin, size, root, at_ms, event })
    }
}

/// The signed statement about the entries of a log that were deleted for their age.
pub fn sign_pruned(origin: &str, digest: Hash, at_ms: i64, key: &LogKey) -> String {
    key.sign(&format!("{origin}/pruned\n{}\ntime {at_ms}\n", hex(&digest)))
}

/// Whether a statement is about this digest of this log and signed with the key.
pub fn is_pruned_note(note: &str, origin: &str, digest: &Hash, key: &LogPublicKey) -> bool {
    key.open(note).is_ok_and(|text| text.starts_with(&format!("{origin}/pruned\n{}\n", hex(digest))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_back_and_a_changed_one_does_not() {
        let key = LogKey::of_seed(&[1; 32]);
        let head = TreeHead {
            origin: String::from("orchestr8/abc/audit"),
            size: 12,
            root: [7; 32],
            at_ms: 1_767_225_600_000,
            event: HeadEvent::Shutdown,
        };
        let note = head.sign(&key);
        assert!(
            note.starts_with("orchestr8/abc/audit\n12\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\ntime ")
        );
        assert_eq!(TreeHead::open(&note, key.public()), Ok(head));
        assert_eq!(
            TreeHead::open(&note.replace("\n12\n", "\n11\n"), key.public()),
            Err(key::Error::Signature)
        );
        let note = sign_pruned("o", [1; 32], 5, &key);
        assert!(is_pruned_note(&note, "o", &[1; 32], key.public()));
        assert!(!is_pruned_note(&note, "o", &[2; 32], key.public()));
        assert!(!is_pruned_note(&note, "p", &[1; 32], key.public()));
    }
}
