//! Workflows over a real kernel and a real store: what a definition says is what happens, also over restarts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod control;
mod flow;
mod keys;
mod models;
mod races;
mod restarts;
mod sagas;
mod schedules;
mod slots;
mod steps;
mod tables;
mod turns;
mod unknown_outcomes;
mod workers;
mod world;
