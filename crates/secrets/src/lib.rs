//! Named secrets as capabilities: encrypted at rest, bound to a tenant, to workflows or agents, and to destinations.
//!
//! A caller never asks for a value. It asks to use a secret at one destination (`SecretUse`), and the vault checks the bindings.

mod actions;
mod binding;
mod cipher;
mod destination;
pub mod limits;
mod record;
pub mod tables;
mod value;
mod vault;

#[cfg(test)]
mod tests;

pub use actions::all;
pub use binding::{SecretBinding, SecretUse};
pub use cipher::MasterKey;
pub use destination::{Destination, Sink};
pub use record::{RecordKind, SecretRecord};
pub use value::SecretText;
pub use vault::{DeclaredSecret, KeySource, MemoryKey, SecretVault};
