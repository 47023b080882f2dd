//! The settings of this face, and its limits with their reasons.

use tokio_util::sync::CancellationToken;

/// The largest body, where nobody says otherwise.
pub const BODY_LIMIT_BYTES: usize = 4 * 1024 * 1024;

/// How long a body may bring nothing.
pub const BODY_TIMEOUT_MS: u64 = 10_000;

/// A stream says something at least this often.
pub const HEARTBEAT_MS: u64 = 20_000;

/// Messages read at once, which bounds what one stream holds in memory.
pub const PAGE: u64 = 100;

/// What a stream writes at once of messages that came together.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// How long a client waits before it reconnects to a stream.
pub const RETRY_MS: u64 = 1000;

/// Bytes of an id in a path; a longer one names nothing.
pub const ID_BYTES: usize = 256;

#[derive(Clone)]
pub struct Settings {
    pub body_limit_bytes: usize,
    pub body_timeout_ms: u64,
    pub heartbeat_ms: u64,
    /// Fires when the server stops, so that streams which never end by themselves end.
    pub shutdown: CancellationToken,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            body_limit_bytes: BODY_LIMIT_BYTES,
            body_timeout_ms: BODY_TIMEOUT_MS,
            heartbeat_ms: HEARTBEAT_MS,
            shutdown: CancellationToken::new(),
        }
    }
}
