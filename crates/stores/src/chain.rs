//! Hash chains in a store; the rules by which they are sealed and proven are `contract`'s.

use orchestr8_kernel::ports::store;

pub use orchestr8_contract::canonical::hex;
pub use orchestr8_contract::chain::{Broken, Entry, GENESIS, Prover, Pruned, Verified, Verifier, line, seal};

/// Why a chain could not be proven whole.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Store(#[from] store::Error),
}
