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

#[cfg(test)]
mod tests {
    use orchestr8_kernel::bus;
    use orchestr8_testing::Table;
    use orchestr8_workflows::limits;

    use super::*;

    #[test]
    fn the_table_of_limits_says_what_is_held_to() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../conformance/workflows/tables/limits.md");
        let size = |bytes: usize| u64::try_from(bytes).unwrap();
        let settings = Settings::new("1");
        Table::read(file, "Figures").holds(&["limit"], |row| {
            let limit = match row.get("what") {
                "levels of a path in an expression" => size(limits::PATH_DEPTH),
                "bytes of one expanded text" => size(limits::EXPANSION_BYTES),
                "characters of a default in an expression" => size(limits::DEFAULT_BYTES),
                "events that wait for one listener" => size(bus::Config::default().max_queue_size),
                "bytes of the journal of one execution" => size(limits::JOURNAL_BYTES),
                "bytes of one entry of a journal" => size(limits::ENTRY_BYTES),
                "bytes of one field of an entry" => size(limits::FIELD_BYTES),
                "entries on one page at most" => ENTRIES_LIMIT,
                "bytes of a synchronous answer" => size(SYNC_BYTES),
                "bytes of an answer with entries of a journal" => size(JOURNAL_BYTES),
                "milliseconds a synchronous call waits" => settings.sync_limit_ms,
                "milliseconds the outcome of a key is remembered" => settings.key_ttl_ms,
                "steps that run at once" => size(limits::RUNNING_STEPS),
                "milliseconds a ready step waits for a slot" => limits::QUEUE_WAIT_MS,
                "milliseconds of grace when cancelled" => limits::GRACE_MS,
                "milliseconds for the last entries of a cancelled execution" => limits::CLEANUP_MS,
                "bytes of the output of one step" => size(limits::OUTPUT_BYTES),
                "rows on one page of a list" => {
                    assert_eq!(i64::try_from(PAGE_LIMIT), Ok(limits::PAGE), "one limit on both sides");
                    PAGE_LIMIT
                }
                other => panic!("no limit is known for {other}"),
            };
            vec![limit.to_string()]
        });
    }
}
