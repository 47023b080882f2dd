//! What an installation sets for this face.

use crate::limits;

/// The settings of this face. The defaults are the protocol's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What `server_ready` says of the program.
    pub server_version: String,
    /// The transports `server_ready` names.
    pub transports: Vec<String>,
    pub message_bytes: usize,
    pub bucket_commands: usize,
    pub global_commands: usize,
    pub ui_responses: usize,
    pub connections: usize,
    pub pending: usize,
    /// How long an idempotency key answers repeats.
    pub key_ttl_ms: u64,
    /// How long the id of a command answers repeats.
    pub id_ttl_ms: u64,
    pub soft_bytes: usize,
    pub hard_bytes: usize,
    pub ping_ms: u64,
    pub pong_ms: u64,
    /// How long stdio waits for what is under way at its end.
    pub drain_ms: u64,
    /// Whether `startup_recovery_summary` tells paths and ids; `get_startup_recovery` always does.
    pub recovery_details: bool,
}

impl Settings {
    pub fn new(server_version: impl Into<String>) -> Self {
        Self {
            server_version: server_version.into(),
            transports: vec!["websocket".into(), "stdio".into()],
            message_bytes: limits::MESSAGE_BYTES,
            bucket_commands: limits::BUCKET_COMMANDS,
            global_commands: limits::GLOBAL_COMMANDS,
            ui_responses: limits::UI_RESPONSES,
            connections: limits::CONNECTIONS,
            pending: limits::PENDING,
            key_ttl_ms: limits::KEY_TTL_MS,
            id_ttl_ms: orchestr8_contract::limits::KEY_TTL_MS,
            soft_bytes: limits::SOFT_BYTES,
            hard_bytes: limits::HARD_BYTES,
            ping_ms: limits::PING_MS,
            pong_ms: limits::PONG_MS,
            drain_ms: limits::DRAIN_MS,
            recovery_details: false,
        }
    }
}
