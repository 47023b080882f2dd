//! The program: configuration, settings, runtime, command line. `orchestr8` and `o8` are both `main` of this library.

mod attach;
mod cli;
pub mod config;
pub mod failure;
mod reach;
mod runtime;
mod settings;
mod tables;
mod talk;
mod terminal;
mod weights;

pub use cli::{command, errors_page, main, settings_table};
