//! The face as its clients see it, on a real kernel and a real store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod real;
mod server;
mod world;

mod approvals;
mod control;
mod envelope;
mod execute;
mod execution;
mod journal;
mod live;
mod openapi;
mod socket;
mod transcripts;
mod whole;
