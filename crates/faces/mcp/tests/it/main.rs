//! The face as its clients see it, on a real kernel and a real store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod fixtures;
mod world;

mod hostile;
mod lifecycle;
mod long_results;
mod properties;
mod questions;
mod stdio;
mod tasks;
mod transcripts;
