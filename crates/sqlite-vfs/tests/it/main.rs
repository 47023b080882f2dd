//! Sealed files under a real SQLite: the same content as a plain database whatever is done, nothing readable on the disk, and
//! every change from outside found.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod damage;
mod equality;
mod fixture;
mod refusals;
