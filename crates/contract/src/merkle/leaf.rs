//! The bytes of a leaf: the values of a record in order, each with its type and length, so that no two records look alike.
//!
//! The name of the log comes first, as a text. A null is `n`; an integer is `i` and eight bytes, the highest first; a
//! number is `r` and the eight bytes of its IEEE 754 form; a text is `t`, its length in eight bytes and its UTF-8; bytes are
//! `b`, their length and they themselves.

use sha2::{Digest, Sha256};

use super::Hash;

/// What most leaves fit into.
const CAPACITY: usize = 512;

/// Gathers the values of a leaf and hashes them together: an update of the hash costs more than copying a value.
pub struct LeafHasher(Vec<u8>);

impl LeafHasher {
    pub fn new(log: &str) -> Self {
        let mut bytes = Vec::with_capacity(CAPACITY);
        bytes.push(0);
        Self(bytes).text(log.as_bytes())
    }

    #[must_use]
    pub fn null(mut self) -> Self {
        self.0.push(b'n');
        self
    }

    #[must_use]
    pub fn int(self, value: i64) -> Self {
        self.tagged(b'i', value.to_be_bytes())
    }

    #[must_use]
    pub fn real(self, value: f64) -> Self {
        self.tagged(b'r', value.to_bits().to_be_bytes())
    }

    /// UTF-8; as bytes, because damaged text may not be text any more.
    #[must_use]
    pub fn text(self, text: &[u8]) -> Self {
        self.sized(b't', text)
    }

    #[must_use]
    pub fn blob(self, bytes: &[u8]) -> Self {
        self.sized(b'b', bytes)
    }

    pub fn finish(self) -> Hash {
        Sha256::digest(self.0).into()
    }

    fn tagged(mut self, tag: u8, eight: [u8; 8]) -> Self {
        self.0.push(tag);
        self.0.extend_from_slice(&eight);
        self
    }

    fn sized(self, tag: u8, bytes: &[u8]) -> Self {
        let mut sized = self.tagged(tag, (bytes.len() as u64).to_be_bytes());
        sized.0.extend_from_slice(bytes);
        sized
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::hex;

    #[test]
    fn the_bytes_are_as_described() {
        // python3 -c 'import hashlib,struct as s; t=lambda b:b"t"+s.pack(">Q",len(b))+b;
        //   print(hashlib.sha256(b"\0"+t(b"log")+b"n"+b"i"+s.pack(">q",-2)+t("ü".encode())+b"b"+s.pack(">Q",1)+b"x"+b"r"+s.pack(">d",1.5)).hexdigest())'
        let leaf = LeafHasher::new("log").null().int(-2).text("ü".as_bytes()).blob(b"x").real(1.5).finish();
        assert_eq!(hex(&leaf), "1e15716ad59d48e37b50921452c8d8eaeb1d3a8f1d6b162876a006001053a872");
    }

    #[test]
    fn values_cannot_run_into_each_other() {
        let of = |texts: &[&str]| {
            texts.iter().fold(LeafHasher::new("l"), |leaf, text| leaf.text(text.as_bytes())).finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
        assert_ne!(LeafHasher::new("l").null().finish(), of(&[""]));
    }
}
