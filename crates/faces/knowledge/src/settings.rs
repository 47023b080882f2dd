//! What an installation sets for this face.

use orchestr8_contract::limits::KEY_TTL_MS;
use orchestr8_secrets::SecretVault;
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::metrics::Metrics;
use crate::pubsub::PubSub;
use crate::security::jwt;

/// How callers prove who they are (KNO-3).
#[derive(Clone)]
pub enum Security {
    /// Loopback only: an envelope says who sends it. A bearer token the edge knows goes before what the envelope says.
    Local,
    /// A bearer token signed by somebody we trust.
    Basic(jwt::Trust),
    /// Every request is signed with a key of `orchestr8 keys`.
    External,
}

#[derive(Clone)]
pub struct Settings {
    pub security: Security,
    pub body_limit_bytes: usize,
    pub body_timeout_ms: u64,
    /// How long the outcome of a key answers its repeats: at least a day (KNO-2).
    pub key_ttl_ms: u64,
    /// A call that takes longer is acknowledged and goes on.
    pub ack_ms: u64,
    /// Calls of one principal in one minute; none: as many as they like.
    pub rate_per_minute: Option<u32>,
    pub heartbeat_ms: u64,
    /// Hosts that artifacts may be fetched from, each a name or an address; `https`, or `http` on loopback. None: only our own links.
    pub artifact_hosts: Vec<String>,
    pub artifact_bytes: usize,
    /// Where we are reached, as `https://host[:port]`; none: as the client called us.
    pub public_url: Option<String>,
    /// Signs links. None: one is made and kept in the vault.
    pub link_secret: Option<[u8; 32]>,
    pub vault: Option<SecretVault>,
    /// Where envelopes are published and answered; none: they are only taken over HTTP.
    pub pubsub: Option<PubSub>,
    /// Shared with whoever delivers envelopes another way.
    pub metrics: Metrics,
    /// Fires when the server stops.
    pub shutdown: CancellationToken,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            security: Security::Local,
            body_limit_bytes: limits::BODY_BYTES,
            body_timeout_ms: limits::BODY_TIMEOUT_MS,
            key_ttl_ms: KEY_TTL_MS,
            ack_ms: limits::ACK_MS,
            rate_per_minute: Some(limits::RATE_PER_MINUTE),
            heartbeat_ms: limits::HEARTBEAT_MS,
            artifact_hosts: Vec::new(),
            artifact_bytes: limits::ARTIFACT_BYTES,
            public_url: None,
            link_secret: None,
            vault: None,
            pubsub: None,
            metrics: Metrics::default(),
            shutdown: CancellationToken::new(),
        }
    }
}
