//! Chains whose oldest entries were deleted: the entry that says so, and the proof from there on.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Broken, Entry, Verified, Verifier};

/// The member of an entry's body that tells what was deleted.
pub const MEMBER: &str = "pruned";

/// The newest entry that was deleted. It stands in an entry of the chain itself, and so cannot be changed unnoticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    pub through_hash: String,
    pub through_seq: i64,
}

impl Pruned {
    /// What a body says was deleted; None for every other entry.
    pub fn read(body: &[u8]) -> Option<Self> {
        // Bodies are canonical, so this is how the member begins wherever it stands; most bodies need no second look.
        const BEGINNING: &[u8] = b"\"pruned\":{\"through_hash\":";
        body.windows(BEGINNING.len()).find(|window| *window == BEGINNING)?;
        let mut body: Value = serde_json::from_slice(body).ok()?;
        serde_json::from_value(body.get_mut(MEMBER)?.take()).ok()
    }
}

/// Proves a chain that may begin later than with its first entry (rule 4 of the chain).
#[derive(Debug, Default)]
pub struct Prover {
    begun: Option<Begun>,
    newest: Option<Pruned>,
}

#[derive(Debug)]
struct Begun {
    verifier: Verifier,
    /// The entry before the first that is there, as the first one has it.
    before: (i64, Vec<u8>),
}

impl Prover {
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the entry taken last.
    pub fn seq(&self) -> i64 {
        self.begun.as_ref().map_or(0, |begun| begun.verifier.seq())
    }

    pub fn take(&mut self, entry: Entry<'_>) -> Result<(), Broken> {
        match &mut self.begun {
            Some(begun) => begun.verifier.take(entry)?,
            None => {
                let mut begun = begin(entry)?;
                // What does not hold cannot say either which number it has.
                begun.verifier.take(entry).map_err(|wrong| Broken { seq: 1, ..wrong })?;
                self.begun = Some(begun);
            }
        }
        if let Some(pruned) = Pruned::read(entry.body) {
            self.newest = Some(pruned);
        }
        Ok(())
    }

    pub fn finish(self) -> Result<Verified, Broken> {
        let Some(Begun { verifier, before: (seq, hash) }) = self.begun else {
            return Ok(Verifier::new().finish());
        };
        let whole = verifier.finish();
        if seq == 0 {
            return Ok(whole);
        }
        // Entries before the one named may still be there: they are deleted after that is written down, a few at a time.
        let is_told = self.newest.is_some_and(|told| {
            told.through_seq > seq || (told.through_seq == seq && told.through_hash.as_bytes() == hash)
        });
        match is_told {
            true => Ok(Verified {
                entries: whole.entries - seq.unsigned_abs(),
                pruned: seq.unsigned_abs(),
                head: whole.head,
            }),
            false => {
                Err(Broken { seq: 1, what: "it is missing, and no later entry says that it was deleted" })
            }
        }
    }
}

fn begin(first: Entry<'_>) -> Result<Begun, Broken> {
    let broken = |what| Broken { seq: 1, what };
    if first.seq <= 1 {
        return Ok(Begun { verifier: Verifier::new(), before: (0, Vec::new()) });
    }
    let hash = std::str::from_utf8(first.prev_hash).map_err(|_| broken("it is missing"))?;
    let before = (first.seq - 1, first.prev_hash.to_vec());
    Ok(Begun { verifier: Verifier::after(first.seq - 1, hash.to_owned()), before })
}

#[cfg(test)]
mod tests {
    use super::super::{GENESIS, seal};
    use super::*;
    use crate::canonical;
    use serde_json::json;

    type Stored = (i64, String, String, String);

    fn append(chain: &mut Vec<Stored>, body: String) {
        let (seq, prev) = chain.last().map_or((1, GENESIS.to_owned()), |last| (last.0 + 1, last.3.clone()));
        let hash = seal(&prev, seq, seq * 10, body.as_bytes());
        chain.push((seq, body, prev, hash));
    }

    fn chain(length: usize) -> Vec<Stored> {
        let mut chain = Vec::new();
        (0..length).for_each(|at| append(&mut chain, format!(r#"{{"at":{at}}}"#)));
        chain
    }

    fn told(chain: &[Stored], through: usize) -> String {
        let entry = &chain[through - 1];
        let pruned = Pruned { through_hash: entry.3.clone(), through_seq: entry.0 };
        canonical::text(&json!({"action": "audit.pruned", MEMBER: pruned}))
    }

    fn prove(chain: &[Stored]) -> Result<Verified, Broken> {
        let mut prover = Prover::new();
        for (seq, body, prev, hash) in chain {
            prover.take(Entry {
                seq: *seq,
                at_ms: seq * 10,
                body: body.as_bytes(),
                prev_hash: prev.as_bytes(),
                entry_hash: hash.as_bytes(),
            })?;
        }
        prover.finish()
    }

    #[test]
    fn a_chain_holds_from_where_it_says_that_it_begins() {
        let mut whole = chain(6);
        let body = told(&whole, 4);
        append(&mut whole, body);
        assert_eq!(prove(&whole).unwrap().entries, 7, "nothing is deleted yet");
        for kept_from in 1..=4 {
            let head = whole[6].3.clone();
            let pruned = kept_from as u64;
            assert_eq!(prove(&whole[kept_from..]), Ok(Verified { entries: 7 - pruned, pruned, head }));
        }
        assert_eq!(prove(&whole[5..]).unwrap_err().seq, 1, "one more is gone than was said");
        assert_eq!(prove(&[]).unwrap().entries, 0);
    }

    #[test]
    fn the_newest_word_counts_and_must_be_true() {
        let mut whole = chain(6);
        for through in [2, 5] {
            let body = told(&whole, through);
            append(&mut whole, body);
        }
        assert_eq!(prove(&whole[5..]).unwrap().pruned, 5);
        let mut other = chain(6);
        let lie = canonical::text(&json!({MEMBER: Pruned { through_hash: "00".into(), through_seq: 3 }}));
        append(&mut other, lie);
        assert!(prove(&other[3..]).is_err(), "another hash than the one the next entry has");
        let hidden = json!({"cause": {MEMBER: Pruned { through_hash: other[2].3.clone(), through_seq: 3 }}});
        let mut other = chain(6);
        append(&mut other, canonical::text(&hidden));
        assert!(prove(&other[3..]).is_err(), "what an entry quotes is not its word");
    }

    #[test]
    fn a_change_after_the_beginning_is_found() {
        let mut whole = chain(6);
        let body = told(&whole, 2);
        append(&mut whole, body);
        let mut kept = whole[2..].to_vec();
        kept[2].1.push(' ');
        assert_eq!(prove(&kept).unwrap_err().seq, 5);
        let mut kept = whole[2..].to_vec();
        kept.remove(1);
        assert_eq!(prove(&kept).unwrap_err().seq, 4);
        whole[0].0 = 3;
        assert_eq!(prove(&whole).unwrap_err().seq, 1, "the first of all, under another number");
    }
}
