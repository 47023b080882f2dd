//! Vectors of passages: the store keeps them with the name of their model, and every index over them is a cache that follows
//! the journal of changes and can be filled anew.

mod check;
pub mod embedded;
mod follow;
mod learn;
pub mod qdrant;
pub mod search;
pub mod tables;

use orchestr8_contract::{Code, Fault};

pub use crate::journal::Step;
pub use check::Vectors;
pub use embedded::Embedded;
pub use learn::{passage_text, print};
pub use qdrant::Qdrant;

/// A vector as the store keeps it: little-endian numbers of 32 bits.
pub fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}

pub fn from_bytes(bytes: &[u8]) -> Result<Vec<f32>, Fault> {
    let (members, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Fault::new(Code::StoreCorrupt, "a stored vector has been cut off"));
    }
    Ok(members.iter().map(|member| f32::from_le_bytes(*member)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_vector_comes_back_as_it_was(vector in proptest::collection::vec(any::<f32>(), 0..50)) {
            let back = from_bytes(&to_bytes(&vector)).unwrap();
            prop_assert!(vector.iter().zip(&back).all(|(one, other)| one.to_bits() == other.to_bits()));
            prop_assert_eq!(back.len(), vector.len());
        }
    }

    #[test]
    fn a_vector_that_was_cut_off_is_noticed() {
        assert_eq!(from_bytes(&[1, 2, 3]).unwrap_err().code, Code::StoreCorrupt);
    }
}
