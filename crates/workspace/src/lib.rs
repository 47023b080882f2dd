//! Governed workspaces: files are read and written through opened handles only, written within an approved plan only, and
//! every call leaves an entry in a trail that shows any change.
//!
//! Start reading at `desk.rs`, where every call passes, then `gates.rs`, the way of a write.

pub mod actions;
mod approvals;
mod attest;
mod blocking;
mod desk;
mod fields;
mod gates;
mod hub;
pub mod limits;
mod locks;
mod patch;
pub mod plan;
mod policy;
mod preflight;
mod recorder;
mod recovery;
mod refusal;
mod replay;
mod reports;
mod requests;
pub mod root;
pub mod roots;
pub mod sealed;
mod session;
mod shell_words;
mod signing;
pub mod tables;
pub mod trail;
mod write_grants;
mod write_turn;

pub use actions::all;
pub use hub::{Hub, Settings};
pub use refusal::Refusal;
pub use signing::ServerSigningKey;
