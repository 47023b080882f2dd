//! Models against a real HTTP server on this machine, in both protocols.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod embedding;
mod failing;
mod server;
mod stopping;
mod streaming;
mod world;
