//! The sandbox with real programs, at every level this host has.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod attacks;
mod ending;
mod other_processes;
mod private_places;
mod sealed;
mod set_user_id;
mod views;
mod world;
