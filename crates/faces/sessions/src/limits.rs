//! The limits of this face, each with its reason. Those an installation may change are the defaults of `Settings`.

/// A frame in bytes. It leaves room for a few images in a prompt.
pub const MESSAGE_BYTES: usize = 10 * 1024 * 1024;

/// A WebSocket message may be this much longer and still be answered with a refusal; a longer one ends the connection,
/// because it would have to be held in memory first.
pub const OVERSIZE_BYTES: usize = 1024 * 1024;

/// Commands a minute under one bucket: one session, or everything that is about no session.
pub const BUCKET_COMMANDS: usize = 100;

/// Commands a minute over all buckets.
pub const GLOBAL_COMMANDS: usize = 1000;

/// Answers to questions of one session a minute: a person cannot give more.
pub const UI_RESPONSES: usize = 60;

/// What a rate is counted over.
pub const WINDOW_MS: u64 = 60_000;

/// Clients connected at once.
pub const CONNECTIONS: usize = 1000;

/// Commands of one connection that have not been answered.
pub const PENDING: usize = 100;

/// Sessions one connection follows at once.
pub const FOLLOWED: usize = 256;

/// How long the outcome of a command answers a repeat of its idempotency key (SES-8.2).
pub const KEY_TTL_MS: u64 = 600_000;

/// With more than this waiting for a client, broadcasts pass it by.
pub const SOFT_BYTES: usize = 64 * 1024;

/// With more than this waiting for a client, it is cut off: it does not read what it asked for.
pub const HARD_BYTES: usize = 1024 * 1024;

/// How often a client is asked whether it is there, and how long it may take to say so.
pub const PING_MS: u64 = 30_000;
pub const PONG_MS: u64 = 10_000;

/// How long a server that stops waits for what is under way.
pub const DRAIN_MS: u64 = 30_000;

/// How long a client may take to read its last frames.
pub const CLOSE_MS: u64 = 5000;

/// Commands of one connection that are answered before others get a turn on its thread.
pub const COMMANDS_IN_A_ROW: usize = 64;

/// Missed events are read in pages of this many.
pub const EVENTS_PAGE: u64 = 200;

/// Live events that wait while missed ones are sent; beyond it they are dropped here and read from the record again.
pub const HELD_EVENTS: usize = 1000;

/// The read and write buffers of one WebSocket: small, since a thousand of them should cost little.
pub const SOCKET_READ_BYTES: usize = 8 * 1024;
pub const SOCKET_WRITE_BYTES: usize = 16 * 1024;

/// What one read from a pipe takes, and one write to it gives, at most.
pub const PIPE_BYTES: usize = 64 * 1024;

/// Lengths of texts, in UTF-16 units as the clients of this protocol count them.
pub const ID_CHARS: usize = 256;
pub const SESSION_ID_CHARS: usize = 256;
pub const NAME_CHARS: usize = 256;
pub const PROMPT_CHARS: usize = 200_000;
pub const BASH_CHARS: usize = 20_000;
pub const PATH_CHARS: usize = 4096;

/// Entries on one page of the command history.
pub const HISTORY_PAGE: u64 = 500;
