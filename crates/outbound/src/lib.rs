//! Calls to servers out there, with a guard against reaching in here: what others choose as an address leads to the public
//! internet, and elsewhere only where the settings say so.

mod address;
mod authorities;
pub mod client;
pub mod delivery;
pub mod guard;
mod signature;

pub use authorities::ExtraAuthorities;
pub use client::Client;
pub use guard::{Allowed, Guard};
pub use signature::{
    SIGNATURE, TIMED_SIGNATURE, is_signature, is_timed_signature, signature, timed_signature,
};
