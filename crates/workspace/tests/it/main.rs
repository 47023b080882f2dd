//! Governed calls through a kernel, as a face would make them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod gates;
mod holding;
mod processes;
mod world;
