//! Calls to servers out there, with a guard against reaching in here: what others choose as an address leads to the public
//! internet, and elsewhere only where the settings say so.

mod address;
pub mod client;
pub mod guard;
mod signature;

pub use client::Client;
pub use guard::{Allowed, Guard};
pub use signature::{SIGNATURE, TIMED_SIGNATURE, signature, timed_signature};
