//! A tree of documents as a folder of Markdown files, and back: pure, so that a command line only reads, writes and submits.
//!
//! A document is `<name>.md`; what is below it is in the folder `<name>`. Front matter holds its id and metadata, so that a file
//! keeps its document when it is renamed or moved. What is planned follows from what is there: a run that was cut off is simply
//! run again, and does the rest. `plan` lets the folder win; `reconcile` goes both ways, from what both sides once had in common.

mod arrange;
mod entries;
mod fate;
mod front;
mod names;
mod places;
mod plan;
mod reconcile;

pub use entries::{Stored, doubles};
pub use front::{Error, File, read, write};
pub use plan::{Call, plan};
pub use reconcile::{Base, Conflict, Known, Plan, Side, Step, Ways, reconcile};
