//! Tools of other MCP servers, tried with real child processes and a real HTTP server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod added;
mod calls;
mod children;
mod http;
mod proxying;
mod quarantine;
mod questions;
mod tasks;
mod tenants;
mod upstream_faults;
mod world;
