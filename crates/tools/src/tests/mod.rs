//! Tests of the tools, run by a kernel.

mod admin;
mod builtin;
mod conformance;
mod questions;
mod world;
