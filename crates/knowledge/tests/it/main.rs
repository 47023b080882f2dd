//! Knowledge on a real kernel and store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod concurrent;
mod keeping;
mod querying;
mod telling;
mod tools;
mod tree;
mod world;
