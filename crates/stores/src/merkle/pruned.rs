//! Which entries of a log were deleted for their age: the hashes of their subtrees, joined where two make a larger one.

use std::collections::BTreeMap;

use orchestr8_contract::merkle::{Hash, node_hash};
use orchestr8_kernel::ports::store::{Batch, Error, Row, Statement, Store};
use sha2::{Digest, Sha256};

use super::{LogSource, leaf_of};

/// Columns: start, level, hash, in the order of the starts.
pub(crate) const NODES: &str = "SELECT start, level, hash FROM merkle_pruned WHERE log = ?1 ORDER BY start";

/// The subtrees of a log that were deleted, by the index of their first leaf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrunedSet(BTreeMap<u64, (u32, Hash)>);

impl PrunedSet {
    pub async fn load(store: &dyn Store, source: &LogSource) -> Result<Self, Error> {
        let rows = store.query(Statement::new(NODES, vec![source.name.into()])).await?;
        let mut set = Self::default();
        for row in rows {
            set.0.insert(row.int(0)?.unsigned_abs(), (level(row.int(1)?)?, hash(row.blob(2)?)?));
        }
        Ok(set)
    }

    pub(crate) fn of(nodes: impl IntoIterator<Item = (u64, u32, Hash)>) -> Self {
        Self(nodes.into_iter().map(|(start, level, hash)| (start, (level, hash))).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a signature over the set covers: one line per subtree with the index of its first leaf, its level and its hash in
    /// hex, each line ended by a line feed.
    pub fn digest(&self) -> Hash {
        let mut digest = Sha256::new();
        for (start, (level, hash)) in &self.0 {
            digest.update(format!("{start} {level} {}\n", crate::chain::hex(hash)));
        }
        digest.finalize().into()
    }

    /// Takes in entries that are about to be deleted, given as `rows_sql` of the source gives them, and adds to the batch what
    /// keeps their hashes. `sign` gives the signed statement about a digest.
    pub fn add(
        &mut self,
        source: &LogSource,
        rows: &[Row],
        sign: &dyn Fn(Hash) -> String,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        let mut changed = BTreeMap::new();
        for row in rows {
            let number = row.int(0)?.unsigned_abs();
            let values = row.0.get(1..).unwrap_or_default();
            let Some(index) = number.checked_sub(1) else {
                return Err(Error::Corrupt(String::from("entries of a log are numbered from 1 on")));
            };
            self.insert(index, leaf_of(source.name, values), &mut changed);
        }
        for (start, node) in changed {
            let key = vec![source.name.into(), start.cast_signed().into()];
            match node {
                None => {
                    batch.then(Statement::new("DELETE FROM merkle_pruned WHERE log = ?1 AND start = ?2", key))
                }
                Some((level, hash)) => {
                    let cells = [key, vec![i64::from(level).into(), hash.to_vec().into()]].concat();
                    batch.then(Statement::new(
                        "INSERT OR REPLACE INTO merkle_pruned (log, start, level, hash) VALUES (?1, ?2, ?3, ?4)",
                        cells,
                    ))
                }
            };
        }
        batch.then(self.note(source, sign));
        Ok(())
    }

    /// Stores the signed statement about the set as it is now.
    pub fn note(&self, source: &LogSource, sign: &dyn Fn(Hash) -> String) -> Statement {
        Statement::new(
            "INSERT OR REPLACE INTO merkle_note (log, note) VALUES (?1, ?2)",
            vec![source.name.into(), sign(self.digest()).into()],
        )
    }

    /// Puts a leaf in and joins what now makes a larger subtree. `changed` has what became of each start.
    fn insert(&mut self, index: u64, leaf: Hash, changed: &mut BTreeMap<u64, Option<(u32, Hash)>>) {
        let (mut start, mut level, mut hash) = (index, 0_u32, leaf);
        loop {
            let beside = start ^ (1 << level);
            match self.0.get(&beside) {
                Some((other, sibling)) if *other == level => {
                    hash = match beside < start {
                        true => node_hash(sibling, &hash),
                        false => node_hash(&hash, sibling),
                    };
                    self.0.remove(&beside);
                    changed.insert(beside, None);
                    changed.entry(start).and_modify(|node| *node = None);
                    start = start.min(beside);
                    level += 1;
                }
                Some(_) | None => break,
            }
        }
        self.0.insert(start, (level, hash));
        changed.insert(start, Some((level, hash)));
    }
}

pub(crate) fn level(stored: i64) -> Result<u32, Error> {
    u32::try_from(stored)
        .ok()
        .filter(|level| *level < 63)
        .ok_or_else(|| Error::Corrupt(String::from("a level of a tree is out of range")))
}

pub(crate) fn hash(stored: &[u8]) -> Result<Hash, Error> {
    stored.try_into().map_err(|_| Error::Corrupt(String::from("a hash of a tree has another length")))
}

#[cfg(test)]
mod tests {
    use orchestr8_contract::merkle::Frontier;
    use proptest::prelude::*;

    use super::*;

    fn leaf(index: u64) -> Hash {
        leaf_of("test", &[index.cast_signed().into()])
    }

    proptest! {
        /// In whatever order leaves go, the set and the rest give the same root, and a log that is all gone is a handful of hashes.
        #[test]
        fn what_is_left_and_what_is_gone_have_the_root_of_the_whole(order in Just((0..50_u64).collect::<Vec<_>>()).prop_shuffle(), gone in 0..=50_usize) {
            let mut whole = Frontier::new();
            (0..50).for_each(|index| whole.push(leaf(index)));
            let (mut set, mut stored) = (PrunedSet::default(), BTreeMap::new());
            for index in &order[..gone] {
                let mut changed = BTreeMap::new();
                set.insert(*index, leaf(*index), &mut changed);
                for (start, node) in changed {
                    match node {
                        Some(node) => drop(stored.insert(start, node)),
                        None => drop(stored.remove(&start)),
                    }
                }
                prop_assert_eq!(&stored, &set.0);
            }
            let mut rest = Frontier::new();
            while rest.size() < 50 {
                match set.0.get(&rest.size()) {
                    Some((level, hash)) => assert!(rest.push_subtree(*level, *hash, &mut |_, _, _| {})),
                    None => rest.push(leaf(rest.size())),
                }
            }
            prop_assert_eq!(rest.root(), whole.root());
            if gone == 50 {
                prop_assert_eq!(set.0.len(), 3, "32 + 16 + 2");
            }
        }
    }
}
