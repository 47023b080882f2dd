//! Knowledge (seed 003): a tree of documents with revisions, and a search that finds the right passage. Start reading at
//! `actions/mod.rs`; rules of the seed are cited by their sections, as `KNO-8.1`.

pub mod actions;
pub mod folder;
mod hub;
mod journal;
pub mod limits;
mod order;
pub mod outbox;
mod patch;
mod reading;
pub mod record;
pub mod retrieval;
pub mod tables;
pub mod text;
mod turns;
mod upkeep;
pub mod vectors;
pub mod words;
mod write;

pub use hub::{Hub, Meaning, Settings};
pub use patch::apply as apply_patch;
pub use upkeep::Kept;
