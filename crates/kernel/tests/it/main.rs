//! The pipeline as a whole, on a real store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod bounds;
mod follow;
mod keys;
mod order;
mod records;
mod tables;
mod world;
