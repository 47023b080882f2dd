//! Merkle trees as in RFC 6962 and RFC 9162: leaf and node hashes, the root of a growing log, inclusion and
//! consistency proofs.
//!
//! A log is a list of leaves that only grows. Its root commits to every leaf and to their order. [`Frontier`] keeps the
//! roots of the perfect subtrees on the right edge, which is all that appending and the root need: one hash per level.

mod consistency;
mod leaf;
mod path;

pub use consistency::is_consistent;
pub use leaf::LeafHasher;
pub use path::{PathCollector, root_of_path};

use sha2::{Digest, Sha256};

/// A SHA-256 hash.
pub type Hash = [u8; 32];

/// Levels of a tree: enough for every count of leaves that a `u64` can hold.
const LEVELS: usize = 64;

/// The hash of two subtrees, the left one first.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    // Gathered first: an update of the hash costs more than copying a value.
    let mut bytes = [1; 65];
    bytes[1..33].copy_from_slice(left);
    bytes[33..].copy_from_slice(right);
    Sha256::digest(bytes).into()
}

/// The root of a log without leaves.
pub fn empty_root() -> Hash {
    Sha256::digest([]).into()
}

/// The right edge of a log: how many leaves it has, and the roots of the perfect subtrees that make it up.
#[derive(Clone, Copy)]
pub struct Frontier {
    size: u64,
    /// The subtree of each level whose bit is set in `size`; the others are unused.
    levels: [Hash; LEVELS],
}

impl Frontier {
    pub const fn new() -> Self {
        Self { size: 0, levels: [[0; 32]; LEVELS] }
    }

    /// How many leaves the log has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf.
    pub fn push(&mut self, leaf: Hash) {
        // A leaf is a subtree of level 0, which always fits.
        self.push_subtree(0, leaf, &mut |_, _, _| {});
    }

    /// Appends a perfect subtree of `2^level` leaves, and gives each subtree that it completes to `completed`: its level, its
    /// position among the subtrees of that level, its hash. False if a subtree of that level cannot stand here.
    pub fn push_subtree(
        &mut self,
        level: u32,
        hash: Hash,
        completed: &mut dyn FnMut(u32, u64, &Hash),
    ) -> bool {
        let Some(leaves) = 1_u64.checked_shl(level) else { return false };
        if !self.size.is_multiple_of(leaves) {
            return false;
        }
        let Some(size) = self.size.checked_add(leaves) else { return false };
        let (mut level, mut hash) = (level, hash);
        completed(level, self.size >> level, &hash);
        while self.size >> level & 1 == 1 {
            hash = node_hash(&self.levels[level as usize], &hash);
            level += 1;
            completed(level, self.size >> level, &hash);
        }
        self.levels[level as usize] = hash;
        self.size = size;
        true
    }

    /// The root of the log.
    pub fn root(&self) -> Hash {
        self.peaks()
            .fold(None, |right, (_, left)| Some(right.map_or(*left, |right| node_hash(left, &right))))
            .unwrap_or_else(empty_root)
    }

    /// The subtrees from the right to the left, each with its level.
    fn peaks(&self) -> impl Iterator<Item = (u32, &Hash)> {
        (0..u64::BITS)
            .filter(|level| self.size >> level & 1 == 1)
            .map(|level| (level, &self.levels[level as usize]))
    }

    /// The size as eight bytes, the highest first; then the subtrees from the right to the left.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.size.to_be_bytes().to_vec();
        self.peaks().for_each(|(_, hash)| bytes.extend_from_slice(hash));
        bytes
    }

    /// What `to_bytes` wrote; nothing for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (size, hashes) = bytes.split_first_chunk::<8>()?;
        let mut frontier = Self { size: u64::from_be_bytes(*size), ..Self::new() };
        let mut hashes = hashes.chunks_exact(32);
        for level in 0..LEVELS {
            if frontier.size >> level & 1 == 1 {
                frontier.levels[level] = hashes.next()?.try_into().ok()?;
            }
        }
        (hashes.next().is_none() && hashes.remainder().is_empty()).then_some(frontier)
    }
}

/// Levels that are unused do not count.
impl PartialEq for Frontier {
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size && self.peaks().eq(other.peaks())
    }
}

impl Eq for Frontier {}

impl Default for Frontier {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Frontier {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Frontier").field("size", &self.size).finish_non_exhaustive()
    }
}

/// The perfect subtrees that a range of leaves is made of, from the left: where each begins, and its level.
pub fn subtrees(mut from: u64, to: u64) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    while from < to {
        let fits = (to - from).ilog2();
        let level = fits.min(from.trailing_zeros());
        found.push((from, level));
        from += 1 << level;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::hex;

    /// The leaves and roots that the reference implementation of RFC 6962 tests with.
    #[test]
    fn roots_are_those_of_the_reference_implementation() {
        let leaves: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let mut log = Frontier::new();
        assert_eq!(hex(&log.root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let mut roots = Vec::new();
        for leaf in leaves {
            log.push(Sha256::new().chain_update([0]).chain_update(leaf).finalize().into());
            roots.push(hex(&log.root()));
        }
        assert_eq!(roots[0], "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
        assert_eq!(roots[1], "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125");
        assert_eq!(roots[2], "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77");
        assert_eq!(roots[7], "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
    }

    fn leaf(number: u64) -> Hash {
        LeafHasher::new("test").int(i64::try_from(number).unwrap()).finish()
    }

    #[test]
    fn subtrees_stand_for_their_leaves() {
        for (from, to) in [(0, 1), (0, 13), (3, 13), (5, 6), (8, 24), (7, 64)] {
            let mut whole = Frontier::new();
            (0..to).for_each(|number| whole.push(leaf(number)));
            let mut short = Frontier::new();
            (0..from).for_each(|number| short.push(leaf(number)));
            for (start, level) in subtrees(from, to) {
                let mut part = Frontier::new();
                (start..start + (1 << level)).for_each(|number| part.push(leaf(number)));
                assert!(short.push_subtree(level, part.root(), &mut |_, _, _| {}));
            }
            assert_eq!(short.root(), whole.root(), "{from}..{to}");
            assert_eq!(Frontier::from_bytes(&short.to_bytes()), Some(short));
        }
        let mut odd = Frontier::new();
        odd.push(leaf(0));
        assert!(!odd.push_subtree(1, leaf(1), &mut |_, _, _| {}), "a pair begins at an even place");
        assert_eq!(Frontier::from_bytes(&[0; 40]), None);
    }
}
