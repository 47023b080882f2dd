//! The program: configuration, settings, runtime, command line. `orchestr8` and `o8` are both `main` of this library.

pub mod config;
pub mod failure;
