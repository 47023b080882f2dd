//! Transparency log: signs the heads of the store's Merkle logs with a key outside the data directory, anchors them elsewhere, and
//! compares the store with them.
//!
//! The formats are those of other transparency logs: signed notes and checkpoints (c2sp.org/signed-note, c2sp.org/tlog-checkpoint).

pub mod anchor;
pub mod head;
pub mod head_file;
pub mod key;
pub mod limits;
pub mod recorder;
pub mod tables;
pub mod verify;
pub mod witness;

pub use anchor::Anchor;
pub use head::{HeadEvent, TreeHead};
pub use head_file::HeadFile;
pub use key::{LogKey, LogPublicKey};
pub use recorder::{HeadRecorder, RecorderSettings};
pub use verify::{LogVerification, verify};
pub use witness::{Witness, WitnessProblem, WitnessToken};
