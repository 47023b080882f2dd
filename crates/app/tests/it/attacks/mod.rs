//! Attacks on the real program, each of which must fail.

mod directory;
mod files;
mod impostor;
mod terminal;
