//! The pipeline as a whole, on a real store.

mod bounds;
mod keys;
mod order;
mod records;
mod world;
