//! The orchestr8 program.

fn main() {}
