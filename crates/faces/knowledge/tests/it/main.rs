//! The face as its clients see it, on a real kernel and a real store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod domain;
mod world;

mod admin;
mod artifacts;
mod delivered;
mod errors;
mod long_calls;
mod openapi;
mod people;
mod promql;
mod pubsub;
mod racing;
mod rbac;
mod repeats;
mod security;
mod tenants;
mod transcripts;
