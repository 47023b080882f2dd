//! Attacks that must fail, one file per family.

mod record;
