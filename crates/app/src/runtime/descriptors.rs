//! File descriptors: as many as the connections need, or a word about it at start-up.

use orchestr8_kernel::Log;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

/// For the store, child processes, outbound connections and the health probes that are let in beyond the limit.
const BESIDE_CONNECTIONS: u64 = 256;

/// Raises the soft limit as far as it is needed and allowed, and warns where that is not enough: clients would hang in the
/// backlog instead of being told that the server is full.
pub fn provide(connections: usize, log: &Log) {
    let needed = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(BESIDE_CONNECTIONS);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return;
    }
    let wanted = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    let current = if raised.is_ok() { Some(wanted) } else { limit.current };
    if current.is_some_and(|current| current < needed) {
        log.warn(
            "too few file descriptors for http.maxConnections: clients may hang instead of being told that the server is full",
            json!({
                "limit": current, "needed": needed,
                "hint": "raise it with ulimit -n (LimitNOFILE= of systemd), or lower http.maxConnections",
            }),
        );
    }
}
