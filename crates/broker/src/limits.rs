//! Limits of messages, each with its reason. Those an installation may change are in `Settings`.

/// A message is delivered this often; then it is a dead letter.
pub const ATTEMPTS: u32 = 6;

/// Whoever has taken a message has this long to settle it or to ask for longer.
pub const ACK_DEADLINE_MS: u64 = 30_000;

/// The ceiling of the first wait before a message comes again; it doubles with each attempt.
pub const BASE_DELAY_MS: u64 = 500;

/// No wait has a higher ceiling.
pub const MAX_DELAY_MS: u64 = 30_000;

/// Messages one tenant may have waiting: some minutes of work. One more is refused, so that its sender slows down.
pub const TENANT_QUEUED: usize = 10_000;

/// Bytes of the messages one tenant may have waiting.
pub const TENANT_BYTES: usize = 256 * 1024 * 1024;

/// Messages of one tenant that are worked on at once: the others' turn comes meanwhile.
pub const TENANT_IN_FLIGHT: usize = 4;

/// Messages that are worked on at once. The kernel runs ten actions by default, and people want some of them.
pub const IN_FLIGHT: usize = 8;

/// Messages of all tenants together: what the store is meant to hold.
pub const QUEUED: usize = 200_000;

/// Bytes of one message.
pub const MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Replies wait this long for whoever asked.
pub const REPLY_KEPT_MS: i64 = 86_400_000;

/// Replies of one tenant that are kept; of more, the oldest go.
pub const TENANT_REPLIES: i64 = 100_000;

/// Dead letters are there to be looked at this long.
pub const DEAD_KEPT_MS: i64 = 30 * 86_400_000;

/// Dead letters of one tenant that are kept; of more, the oldest go.
pub const TENANT_DEAD: i64 = 100_000;

/// Rows on one page of replies or dead letters.
pub const PAGE: usize = 500;

/// Bytes of replies on one page: the page ends with the one that goes beyond.
pub const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Letters of the reason a message is kept with.
pub const WHY_CHARS: usize = 500;

/// Characters of an inbox.
pub const INBOX_CHARS: usize = 128;

/// Rows one sweep deletes at once, and how often in one round; what is left is due the next time.
pub const SWEEP_ROWS: i64 = 500;
pub const SWEEP_SLICES: usize = 200;

/// How long the worker waits after the store or the broker failed.
pub const FAILURE_PAUSE_MS: u64 = 1000;
