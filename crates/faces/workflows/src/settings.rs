//! What an installation sets for this face, and the limits nobody sets, each with its reason.

use orchestr8_contract::limits::KEY_TTL_MS;
use tokio_util::sync::CancellationToken;

/// Room for the largest arguments the kernel takes, however they are spaced.
pub const BODY_LIMIT_BYTES: usize = 4 * 1024 * 1024;

/// In each such span a body must come on, or end.
pub const BODY_TIMEOUT_MS: u64 = 10_000;

/// A synchronous call waits this long, then points to the execution (ADR-015).
pub const SYNC_LIMIT_MS: u64 = 30_000;

/// What a synchronous answer may hold; larger results are fetched from the execution (ADR-015).
pub const SYNC_BYTES: usize = 1_048_576;

/// What one answer with entries of a journal may hold (ADR-015).
pub const JOURNAL_BYTES: usize = 10_485_760;

/// The longest wait a client can ask for: below the idle limits of common proxies together with its answer.
pub const WAIT_LIMIT_MS: u64 = 60_000;

/// Entries of a journal on one page (WF-19.7).
pub const ENTRIES_LIMIT: u64 = 1000;

/// Rows on one page of any other list.
pub const PAGE_LIMIT: u64 = 500;

/// A live connection says something at least this often.
pub const HEARTBEAT_MS: u64 = 30_000;

/// A WebSocket whose client has said nothing for this long, not even in answer to a ping, is closed.
pub const IDLE_MS: u64 = 60_000;

/// How often a subscribed WebSocket is told the figures of the whole.
pub const METRICS_MS: u64 = 5000;

/// A reader that takes nothing for this long is closed: it can come back and resume by id.
pub const SEND_TIMEOUT_MS: u64 = 10_000;

/// A client's message on a WebSocket: pings and subscriptions are far smaller.
pub const FRAME_BYTES: usize = 65_536;

/// Executions one WebSocket follows by name; whoever wants more follows all.
pub const SUBSCRIPTIONS: usize = 64;

/// Events read at once, which bounds what one connection holds in memory.
pub const EVENTS_PAGE: u64 = 100;

/// How long a browser waits before it reconnects to the event stream.
pub const RETRY_MS: u64 = 1000;

/// The settings of this face.
#[derive(Clone)]
pub struct Settings {
    /// What `/v1/health` says of the program.
    pub version: String,
    pub body_limit_bytes: usize,
    pub body_timeout_ms: u64,
    /// How long the outcome of a keyed request answers its repeats.
    pub key_ttl_ms: u64,
    pub sync_limit_ms: u64,
    pub heartbeat_ms: u64,
    pub idle_ms: u64,
    pub metrics_ms: u64,
    pub send_timeout_ms: u64,
    /// Fires when the server stops, so that streams which never end by themselves end.
    pub shutdown: CancellationToken,
}

impl Settings {
    pub fn new(version: impl Into<String>) -> Self {
        Self {
            version: version.into(),
            body_limit_bytes: BODY_LIMIT_BYTES,
            body_timeout_ms: BODY_TIMEOUT_MS,
            key_ttl_ms: KEY_TTL_MS,
            sync_limit_ms: SYNC_LIMIT_MS,
            heartbeat_ms: HEARTBEAT_MS,
            idle_ms: IDLE_MS,
            metrics_ms: METRICS_MS,
            send_timeout_ms: SEND_TIMEOUT_MS,
            shutdown: CancellationToken::new(),
        }
    }
}
