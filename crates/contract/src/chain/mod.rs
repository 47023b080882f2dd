//! Hash chains: how an entry is sealed and how a chain is proven whole.
//!
//! An outside tool can check a chain with these three rules:
//! 1. Entries of a chain are numbered 1, 2, 3, … without a gap.
//! 2. `prev_hash` is the `entry_hash` of the entry before; the first entry has the text `GENESIS`.
//! 3. `entry_hash` is the lower-case hexadecimal SHA-256 of these bytes, joined by one line feed (0x0A) each, with none at
//!    the end: `prev_hash`, `seq` in decimal, `at_ms` in decimal, `body`. The body is UTF-8 and taken exactly as stored; it
//!    is the only part that may itself contain a line feed, and it comes last.
//! 4. The oldest entries may have been deleted, if a later entry says so: in its body, which is JSON, `pruned.through_seq` is
//!    the number of the newest entry that was deleted and `pruned.through_hash` its hash, which the next entry has as its
//!    `prev_hash`. The newest entry that says such a thing counts; up to there, entries may be missing.
//!
//! A chain shows every change inside it. It cannot show that its newest entries were cut off: for that, keep a head that
//! [`Verified`] gave you somewhere else, and compare.

pub mod line;
mod pruned;

pub use pruned::{MEMBER as PRUNED, Prover, Pruned};

use sha2::{Digest, Sha256};

use crate::canonical::hex;

/// What stands in `prev_hash` of the first entry.
pub const GENESIS: &str = "GENESIS";

/// A chain that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// How many were proven.
    pub entries: u64,
    /// How many older ones were deleted, as the chain itself says.
    pub pruned: u64,
    /// The `entry_hash` of the newest entry, or `GENESIS` when there is none.
    pub head: String,
}

/// The first entry that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {seq} of the chain is broken: {what}")]
pub struct Broken {
    pub seq: i64,
    pub what: &'static str,
}

/// An entry as stored. Bytes, because damaged text may not be text any more.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub seq: i64,
    pub at_ms: i64,
    pub body: &'a [u8],
    pub prev_hash: &'a [u8],
    pub entry_hash: &'a [u8],
}

/// Rule 3 of the chain.
pub fn seal(prev_hash: &str, seq: i64, at_ms: i64, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{prev_hash}\n{seq}\n{at_ms}\n"));
    hash.update(body);
    hex(&hash.finalize())
}

/// Takes the entries of one chain in order and stops at the first that does not hold.
#[derive(Debug)]
pub struct Verifier {
    seq: i64,
    head: String,
}

impl Verifier {
    pub fn new() -> Self {
        Self::after(0, GENESIS.to_owned())
    }

    /// Goes on after an entry that was proven before.
    pub fn after(seq: i64, head: String) -> Self {
        Self { seq, head }
    }

    /// The number of the entry taken last.
    pub fn seq(&self) -> i64 {
        self.seq
    }

    pub fn take(&mut self, entry: Entry<'_>) -> Result<(), Broken> {
        let expected = self.seq + 1;
        let broken = |what| Err(Broken { seq: expected, what });
        if entry.seq != expected {
            return broken("it is missing, the entry found has another number");
        }
        if entry.prev_hash != self.head.as_bytes() {
            return broken("prev_hash is not the hash of the entry before");
        }
        let sealed = seal(&self.head, entry.seq, entry.at_ms, entry.body);
        if entry.entry_hash != sealed.as_bytes() {
            return broken("entry_hash does not match its content");
        }
        self.seq = expected;
        self.head = sealed;
        Ok(())
    }

    /// The hash of the entry taken last.
    pub fn head(&self) -> &str {
        &self.head
    }

    pub fn finish(self) -> Verified {
        Verified { entries: self.seq.unsigned_abs(), pruned: 0, head: self.head }
    }
}

impl Default for Verifier {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Stored = (i64, i64, Vec<u8>, String, String);

    fn chain(bodies: &[&str]) -> Vec<Stored> {
        let mut prev = GENESIS.to_owned();
        let mut entries = Vec::new();
        for (index, body) in bodies.iter().enumerate() {
            let seq = i64::try_from(index).unwrap() + 1;
            let hash = seal(&prev, seq, seq * 10, body.as_bytes());
            entries.push((seq, seq * 10, body.as_bytes().to_vec(), prev, hash.clone()));
            prev = hash;
        }
        entries
    }

    fn verify(entries: &[Stored]) -> Result<Verified, Broken> {
        let mut verifier = Verifier::new();
        for (seq, at_ms, body, prev_hash, entry_hash) in entries {
            verifier.take(Entry {
                seq: *seq,
                at_ms: *at_ms,
                body,
                prev_hash: prev_hash.as_bytes(),
                entry_hash: entry_hash.as_bytes(),
            })?;
        }
        Ok(verifier.finish())
    }

    #[test]
    fn the_seal_is_what_the_rule_says() {
        // printf 'GENESIS\n1\n1767225600000\n{"a":1}' | sha256sum
        assert_eq!(
            seal(GENESIS, 1, 1_767_225_600_000, br#"{"a":1}"#),
            "176391c63d53b71d5eb7e31b660e2c025a8dee42dc35686b0349043028e918a4"
        );
    }

    #[test]
    fn a_whole_chain_verifies() {
        let entries = chain(&["one", "two\nlines", ""]);
        assert_eq!(verify(&entries).unwrap(), Verified { entries: 3, pruned: 0, head: entries[2].4.clone() });
        assert_eq!(verify(&[]).unwrap(), Verified { entries: 0, pruned: 0, head: GENESIS.to_owned() });
    }

    #[test]
    fn any_change_is_found_at_its_number() {
        let whole = chain(&["one", "two", "three", "four"]);
        let change = |at: usize, change: fn(&mut Stored)| {
            let mut entries = whole.clone();
            change(&mut entries[at]);
            verify(&entries).unwrap_err().seq
        };
        assert_eq!(change(2, |entry| entry.2[0] ^= 1), 3);
        assert_eq!(change(1, |entry| entry.1 += 1), 2);
        assert_eq!(change(1, |entry| entry.0 = 7), 2);
        assert_eq!(change(3, |entry| entry.3 = GENESIS.to_owned()), 4);
        assert_eq!(change(0, |entry| entry.4 = "00".repeat(32)), 1);
        let mut gap = whole.clone();
        gap.remove(1);
        assert_eq!(verify(&gap).unwrap_err().seq, 2);
        let mut swapped = whole.clone();
        swapped.swap(1, 2);
        assert_eq!(verify(&swapped).unwrap_err().seq, 2);
    }

    /// Two entries that differ only in where one field ends and the next begins must not share a hash.
    #[test]
    fn fields_cannot_run_into_each_other() {
        assert_ne!(seal("GENESIS", 1, 12, b"3"), seal("GENESIS", 11, 2, b"3"));
        assert_ne!(seal("GENESIS", 1, 1, b"2\n3"), seal("GENESIS", 1, 12, b"\n3"));
    }
}
