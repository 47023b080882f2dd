//! Attacks that were tried from outside, one file per family. Each must fail.

mod exec;
mod sandbox;
