//! Texts as a search sees them: words, their stems, their plain forms, and the passages they stand in.

pub mod chunk;
pub mod fold;
pub mod language;
mod markdown;
pub mod prose;
pub mod ruler;
pub mod sentences;
pub mod stem;
mod structure;
pub mod words;

pub use chunk::{Chunk, chunks};
pub use ruler::Ruler;
pub use words::{Term, terms};
