//! Witness: another orchestr8 server that keeps the signed heads of this one.
//!
//! An attacker who owns this machine can put back an old copy of the data, the heads and the key together; nothing on this machine
//! shows it. The witness remembers the newest head of each log and refuses a smaller one, and a different one of the same size. Where
//! it can be asked at the start, the data must have grown from what it remembers.

pub mod actions;
pub mod client;
mod ledger;
mod startup;

pub use actions::all;
pub use client::{Witness, WitnessProblem, WitnessToken};
pub use ledger::{WitnessedHead, judge};
pub use startup::compare_with_witnesses;
