//! The face as its clients see it, on both transports, on a real kernel and a store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod fixtures;
mod world;

mod ends;
mod events;
mod hostile;
mod limits;
mod real;
mod transcripts;
