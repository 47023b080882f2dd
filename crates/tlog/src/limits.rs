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

/// The answer of a witness: a thousand heads and some room.
pub const WITNESS_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// How long a witness may take to show its heads: a start waits for it.
pub const WITNESS_ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a server that requires a witness goes on without one that takes its heads.
pub const WITNESS_GRACE_MS: i64 = 300_000;

/// Heads of one log that a witness remembers: three hours of a busy server. All before are in its audit log by their hash.
pub const HEADS_KEPT: i64 = 1_000;

/// Logs whose newest heads one answer lists.
pub const LOGS_LISTED: i64 = 1_000;

/// Logs that one principal may have remembered.
pub const LOGS_PER_PRINCIPAL: i64 = 64;

/// Heads in one request: all logs of a server.
pub const HEADS_AT_ONCE: usize = 16;

/// Hashes of a consistency proof: one for each level of the largest tree, and the one it begins with.
pub const PROOF_HASHES: usize = 65;

pub const ORIGIN_CHARACTERS: usize = 256;
pub const NOTE_CHARACTERS: usize = 2_048;

/// How often the size of the logs is looked at for a head after so many entries.
pub const SIZE_CHECK: Duration = Duration::from_millis(250);
