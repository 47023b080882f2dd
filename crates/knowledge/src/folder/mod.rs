//! A tree of documents as a folder of Markdown files, and back: pure, so that a command line only reads, writes and submits.
//!
//! A document is `<name>.md`; what is below it is in the folder `<name>`. Front matter holds its id and metadata, so that a file
//! keeps its document when it is renamed or moved. What is planned follows from what is there: a run that was cut off is simply
//! run again, and does the rest.

mod front;
mod plan;

pub use front::{Error, File, read, write};
pub use plan::{Stored, files, plan};
