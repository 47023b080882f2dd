//! Witness: another orchestr8 server that keeps the signed heads of this one.
//!
//! An attacker who owns this machine can put back an old copy of the data, the heads and the key together; nothing on this machine
//! shows it. The witness remembers the newest head of each log and refuses a smaller one, a different one of the same size, and
//! a larger one without the proof that the log has grown from what it remembers (ADR 51). Where
//! it can be asked at the start, the data must have grown from what it remembers.

pub mod actions;
pub mod client;
mod ledger;
mod prover;
mod startup;

pub use actions::all;
pub use client::{Witness, WitnessProblem, WitnessToken};
pub use ledger::{ConsistencyProof, WitnessedHead, judge};
pub use prover::LogProver;
pub use startup::compare_with_witnesses;
