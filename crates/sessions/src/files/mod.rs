//! What of a session is in files: session files that others can read, and pages for people.

pub mod html;
pub mod jsonl;
pub(crate) mod list;
pub(crate) mod spot;

pub use jsonl::Imported;
