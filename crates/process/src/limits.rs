//! How long programs are waited for.

/// How long a program may take to end once it was asked to; then it is killed.
pub const TERM_MS: u64 = 2000;

/// How long the last words of a program that has ended are waited for.
pub const CLOSE_MS: u64 = 500;

/// How long the supervisor of a sandbox may take to end it: the kernel kills, which takes milliseconds on a machine that works.
pub const END_MS: u64 = 5000;

/// How long programs of an earlier server are waited for, and how often they are looked for.
pub const EARLIER_MS: u64 = 10_000;
pub const EARLIER_LOOK_MS: u64 = 20;

/// File systems of which it is known whether directories on them can be overlaid.
pub const OVERLAYS: usize = 64;
