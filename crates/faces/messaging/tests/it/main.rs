//! The messaging face over the real domain and the real store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod callbacks;
mod openapi;
mod streams;
mod tenants;
mod transcripts;
mod world;
