//! Session files: one JSON object per line, first what the session is, then the entries of its tree, oldest first.
//!
//! The format is that of a widely used coding agent, version 3, so that its files can be loaded here and ours there. Entries
//! name their parent by id. Where the file ends is where the conversation goes on: the last entry is the leaf.

mod messages;
mod read;
#[cfg(test)]
mod tests;
mod write;

use crate::record::Place;
use crate::tree::Tree;

pub(crate) use read::too_large;
pub use read::{Head, read};
pub use write::write;

/// The version that is written, and the newest that is read.
pub const VERSION: u64 = 3;

/// What a file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    pub head: Head,
    pub name: Option<String>,
    pub tree: Tree,
    pub leaf: Option<Place>,
    /// Lines of kinds that are not known here.
    pub skipped: usize,
}
