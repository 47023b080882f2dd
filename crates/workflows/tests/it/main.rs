//! Workflows over a real kernel and a real store: what a definition says is what happens, also over restarts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod artifacts;
mod bulk;
mod closing;
mod control;
mod detached;
mod domain_triggers;
mod event_triggers;
mod failure_categories;
mod flow;
mod keyed_events;
mod keys;
mod model;
mod models;
mod neighbours;
mod notifications;
mod observability;
mod race;
mod races;
mod restarts;
mod rollbacks;
mod runtime_limits;
mod sagas;
mod schedules;
mod slots;
mod steps;
mod tables;
mod tags;
mod trees;
mod triggers;
mod turns;
mod unknown_outcomes;
mod workers;
mod world;
mod yielding;
