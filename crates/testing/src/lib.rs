//! What tests of several crates share. It is only ever a dev-dependency, which `cargo xtask tidy` checks.
//!
//! - [`transcript`]: conversations that people can read, and that are played against a server.
//! - [`Table`]: tables that people can read, and that are run row by row.
//! - [`Parts`]: a kernel with a store in memory; [`submission`] makes a wish for it.
//! - [`Person`]: a client on the other side of a run.
//! - [`Noting`]: a store that tells how it finds what it was asked to change.
//! - [`Holding`]: a store that can be held up at one statement.
//! - [`settled`]: what became of a submission, or a panic that says what came instead.
//! - `Answer`: what a router answers; `request` asks it (with the feature `served`).
//! - [`description`]: the descriptions of APIs in `schemas`.
//! - [`every_seed`]: simulations by the thousand.
//! - [`words`]: command lines in documents.
//! - [`embedder_file`]: the weights of the embedder that runs in this process.
//! - [`until`], [`within`]: waiting, with an end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that does not find what it expects has failed"
)]

pub mod description;
mod embedder;
mod held;
mod parts;
mod patience;
mod person;
mod plans;
mod seeds;
#[cfg(feature = "served")]
mod served;
pub mod settled;
mod table;
pub mod transcript;
mod words;

pub use embedder::embedder_file;
pub use held::{Hold, Holding};
pub use parts::{Parts, Tables, memory, migrations, submission};
pub use patience::{PATIENCE, until, within};
pub use person::{Answers, Person};
pub use plans::{Noting, Plan};
pub use seeds::every_seed;
#[cfg(feature = "served")]
pub use served::{Answer, request};
pub use table::{Row, Table};
pub use words::words;
