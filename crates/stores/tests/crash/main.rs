//! Processes that die while they write: killed at any moment, aborted at every fail point, stopped by a disk that fails.
//! What they acknowledged is written down by the test, in another process.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod child;
mod deaths;
mod ledger;
