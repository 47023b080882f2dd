//! Every limit of signed heads, in one place with its reason.

use std::time::Duration;

/// How much of the end of a head file is read: some two thousand heads. The newest covers all before it; the others only help to
/// find where a difference begins.
pub const TAIL_BYTES: u64 = 2 * 1024 * 1024;

/// How much of the end of a head file a start reads: more than two lines.
pub const NEWEST_BYTES: u64 = 16 * 1024;

/// A head file that has grown to this is renamed, and a new one begun.
pub const HEAD_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// How long an anchor may take to answer.
pub const ANCHOR_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits between tries of an anchor that fails: doubled from the first to the last.
pub const RETRY_FIRST: Duration = Duration::from_secs(1);
pub const RETRY_LAST: Duration = Duration::from_secs(300);

/// How long the end of the server waits until the anchors have the last head.
pub const SHUTDOWN_WAIT: Duration = Duration::from_secs(2);
