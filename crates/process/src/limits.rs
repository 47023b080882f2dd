//! How long programs are waited for.

/// How long a program may take to end once it was asked to; then it is killed.
pub const TERM_MS: u64 = 2000;

/// How long the last words of a program that has ended are waited for.
pub const CLOSE_MS: u64 = 500;
