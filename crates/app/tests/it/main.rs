//! The program from outside: the real binary, driven over stdio, HTTP and the command line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod attached;
mod attacks;
mod bus;
mod cli;
mod config;
mod docs;
mod doctor;
mod far;
mod governed;
mod hostile;
mod http;
mod install;
mod kill;
mod knowing;
mod knowledge_kill;
mod lives;
mod message_kill;
mod messages;
mod others;
mod pages;
mod program;
mod proxied;
mod secrets;
mod server;
mod session_kill;
mod shutdown;
mod stdio;
mod store;
mod talking;
mod transcripts;
mod upstreams;
mod vault;
mod workflow_kill;
mod workflows;
