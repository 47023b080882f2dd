//! Durable stores behind the kernel's `Store` port. To add one: a folder here that passes `suite`.

pub mod chain;
pub mod merkle;
pub mod migrations;
pub mod pruning;
pub mod retention;
pub mod sqlite;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
mod topics;

pub use migrations::Migration;
pub use sqlite::Sqlite;
