//! The limits of this crate, each with its reason.

/// Models of one catalog: it is listed whole and gone through in order.
pub const MODELS: usize = 1_000;

/// What the offline model says at most: a mistyped number must not fill the memory.
pub const OFFLINE_WORDS: u64 = 100_000;

/// How much of a prompt the offline model echoes: what it says about a long text is shorter than the text.
pub const OFFLINE_ECHO_CHARS: usize = 2_000;

/// How much of one tool result the offline model quotes, for the same reason.
pub const OFFLINE_QUOTE_CHARS: usize = 500;

/// The longest wait before each delta that a prompt may ask the offline model for: ten minutes.
pub const OFFLINE_WAIT_MS: u64 = 600_000;

/// Conversations whose `/fail` count the offline model remembers; the oldest is forgotten first.
pub const OFFLINE_FAILURES: usize = 1_024;
