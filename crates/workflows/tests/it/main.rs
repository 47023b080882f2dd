//! Workflows over a real kernel and a real store: what a definition says is what happens, also over restarts.

mod control;
mod flow;
mod keys;
mod restarts;
mod steps;
mod world;
