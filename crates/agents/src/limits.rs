//! The limits of this crate, each with its reason.

/// Messages that wait for one agent; beyond it senders are told to come back, so that a slow agent cannot eat the memory.
pub const MAILBOX_MESSAGES: usize = 256;

/// Agents registered at once; each costs a task and a mailbox.
pub const AGENTS: usize = 10_000;

/// Names in the state of one agent.
pub const STATE_ENTRIES: usize = 10_000;

/// Agents in one answer of `agent.list`; a longer list is cut and says so.
pub const LISTED_AGENTS: usize = 1_000;

/// Names in the news of one state change; a longer list is cut.
pub const TOLD_NAMES: usize = 100;

/// Messages in the store that one agent has not acknowledged; beyond it senders are told to come back. They cost disk, and an
/// entry in memory each.
pub const INBOX_MESSAGES: usize = 10_000;

/// How far beyond a gap messages are kept; whoever is further ahead fills the gap first.
pub const WINDOW_REACH: u64 = 1_024;

/// Stretches of missing numbers that one answer names.
pub const SHOWN_GAPS: usize = 16;

/// Messages on one page of an inbox, which bounds what a reader holds in memory.
pub const INBOX_PAGE: i64 = 100;

/// How long a message and what became of it are kept (`aacp.defaultTtlMs`).
pub const TTL_MS: i64 = 86_400_000;

/// No message is kept longer, whatever its sender says.
pub const TTL_MAX_MS: i64 = 30 * 86_400_000;

/// How far `expiresAt` and `ttlMs` of one message may differ: the message was under way, and clocks differ.
pub const EXPIRY_AGREES_MS: u64 = 5_000;

/// How long one attempt of a request may stay without an answer before its outcome is unknown.
pub const REQUEST_TIMEOUT_MS: i64 = 30_000;

/// The longest such time a sender can ask for.
pub const REQUEST_TIMEOUT_MAX_MS: i64 = 86_400_000;

/// Attempts of one request.
pub const REQUEST_ATTEMPTS: u32 = 5;

/// The first wait after an attempt whose end is unknown; it doubles with each.
pub const BACKOFF_BASE_MS: u64 = 1_000;
pub const BACKOFF_CAP_MS: u64 = 30_000;

/// Attempts to bring one message that is no request to a callback address.
pub const CALLBACK_ATTEMPTS: u32 = 8;

/// How long a callback address may take to answer.
pub const CALLBACK_TIMEOUT_MS: u64 = 30_000;

/// Bytes of the answer of a callback address; more is not an answer to a request but a mistake.
pub const CALLBACK_ANSWER_BYTES: usize = 1_048_576;

/// Letters of the secret that callbacks are signed with: a shorter one could be guessed, a longer one adds nothing.
pub const SECRET_LETTERS_MIN: usize = 16;
pub const SECRET_LETTERS: usize = 256;

/// Messages that wait for the next commit; beyond it senders are told to come back.
pub const WAITING_SENDS: usize = 4_096;

/// Messages in one commit: some milliseconds of the writer's time.
pub const GROUP: usize = 256;

/// Changes of one group that are kept in the tail until more are filed together. A larger group pays for the pages it touches.
pub const TAIL_GROUP_WRITES: usize = 32;

/// Changes in the tail before they are filed: a few milliseconds of the writer's time, and as much work after a crash.
pub const TAIL_WRITES: usize = 1_024;

/// Bytes of messages in one group, and in all, that the tail takes: what is large is not worth writing twice.
pub const TAIL_GROUP_BYTES: usize = 64 * 1_024;
pub const TAIL_BYTES: usize = 1_024 * 1_024;

/// Messages that one audit record names, and records in one entry of the audit chain: an entry stays below some 100 KiB.
pub const AUDIT_OBJECTS: usize = 500;
pub const AUDIT_RECORDS: usize = 256;

/// Rows of the tail read at once.
pub const TAIL_ROWS: i64 = 1_000;

/// Messages that wait in memory for an agent they are brought to; beyond it they are read from the store.
pub const RUN_MESSAGES: usize = 64;

/// Bytes of an envelope that streams of its inbox are handed at once; a larger one they read. A stream that is slow to take
/// them holds no more than a queue of the bus full of these.
pub const NEWS_BYTES: usize = 4_096;

/// Pairs, inboxes and requests kept in memory; beyond it they are forgotten and read anew when they matter.
pub const KEPT: usize = 20_000;

/// Agents that get a copy of one message to a topic.
pub const COPIES: usize = 1_000;

/// Topics one agent listens to.
pub const TOPICS: usize = 64;

/// Letters of a topic.
pub const TOPIC_LETTERS: usize = 128;

/// The longest wait for an answer that one call takes.
pub const WAIT_MS: u64 = 60_000;

/// An agent that gave no sign of life for this long counts as offline.
pub const ALIVE_MS: i64 = 60_000;

/// How often what has expired is deleted.
pub const PURGE_EVERY_MS: u64 = 600_000;

/// Rows deleted in one commit.
pub const PURGE_ROWS: i64 = 500;

/// Requests whose time has come that are taken up at once.
pub const DUE_ROWS: i64 = 256;

/// Rows on one page of a list.
pub const PAGE: i64 = 500;
