//! The sandbox with real programs, at every level this host has.

mod attacks;
mod ending;
mod world;
