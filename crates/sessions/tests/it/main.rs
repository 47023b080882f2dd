//! Sessions on a real kernel and store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod bash;
mod branching;
mod complete;
mod files;
mod keeping;
mod plans;
mod prompting;
mod races;
mod running;
mod tools;
mod world;
