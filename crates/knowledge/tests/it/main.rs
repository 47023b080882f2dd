//! Knowledge on a real kernel and store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod backend;
mod concurrent;
mod crashing;
#[path = "../shared/dense.rs"]
mod dense;
mod hybrid;
mod keeping;
#[path = "../shared/letters.rs"]
mod letters;
mod meaning;
mod plans;
mod querying;
mod racing;
mod telling;
mod tools;
mod tree;
mod words;
mod world;
mod writing;
