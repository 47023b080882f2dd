//! Limits of this face, each with its reason. Those an installation may change are in `Settings`.

/// Room for the largest arguments the kernel takes, however they are spaced, and for a signed envelope in base64.
pub const BODY_BYTES: usize = 4 * 1024 * 1024;

/// In each such span a body must come on, or end.
pub const BODY_TIMEOUT_MS: u64 = 10_000;

/// Clocks of agents and ours may differ by this much.
pub const SKEW_MS: i64 = 60_000;

/// The longest life an envelope may claim: what is older than a week is a mistake.
pub const TTL_LIMIT_S: u64 = 7 * 86_400;

/// A call that takes longer is answered with where to look (KNO-9: ACK P95 of the external profile).
pub const ACK_MS: u64 = 2000;

/// How long the end of an acknowledged call can be looked at: as long as keys are remembered.
pub const REQUEST_KEPT_MS: i64 = 86_400_000;

/// How long the last number of a sender is remembered; whoever is silent for longer begins anew.
pub const SEQUENCE_KEPT_MS: i64 = 30 * 86_400_000;

/// Senders whose last number is in memory; those of others are read from the store.
pub const SEQUENCES: usize = 10_000;

/// Roles and links one envelope may name.
pub const ROLES: usize = 16;
pub const RESOURCE_LINKS: usize = 100;

/// Bytes of a principal's name or of a context id.
pub const NAME_BYTES: usize = 256;

/// A refusal names at most this many mistakes.
pub const MISTAKES: usize = 20;

/// Calls of one principal in one minute.
pub const RATE_PER_MINUTE: u32 = 60_000;

/// Principals whose rate is counted at once; beyond it the idle ones are forgotten.
pub const RATES: usize = 10_000;

/// Series of one metric; beyond it tenants and principals are counted together.
pub const SERIES: usize = 2000;

/// How often we say that we are alive (KNO-7).
pub const HEARTBEAT_MS: u64 = 300_000;

/// A peer that missed two heartbeats is stale.
pub const STALE_MS: i64 = 600_000;

/// Peers on one page of the list.
pub const PEERS: i64 = 500;

/// Bytes of one artifact.
pub const ARTIFACT_BYTES: usize = 4 * 1024 * 1024;

/// How long to wait for another server to give an artifact.
pub const FETCH_TIMEOUT_MS: u64 = 10_000;

/// The longest life of a signed link (KNO-5).
pub const LINK_MS: i64 = 900_000;

/// An uploaded artifact is there to be taken up by an envelope; after a day nobody will.
pub const ARTIFACT_KEPT_MS: i64 = 86_400_000;

/// A key may sign for this long (KNO-3: rotation within 90 days).
pub const KEY_LIFE_MS: i64 = 90 * 86_400_000;

/// After a rotation the old key still signs for this long.
pub const ROTATION_GRACE_MS: i64 = 86_400_000;

/// Keys on one page of the list.
pub const KEYS: i64 = 1000;

/// The longest life of a signature: its nonce must be remembered for as long.
pub const SIGNATURE_LIFE_S: i64 = 900;

/// Characters of a nonce: enough not to be guessed, few enough to keep.
pub const NONCE_CHARS: std::ops::RangeInclusive<usize> = 8..=128;

/// Bytes of a token or of a detached signature in a header.
pub const TOKEN_BYTES: usize = 16 * 1024;

/// Rows one sweep deletes at once, and how often in one round; what is left is due the next time.
pub const SWEEP_ROWS: i64 = 500;
pub const SWEEP_SLICES: usize = 2000;

/// Replies on one page.
pub const REPLIES: u64 = 100;

/// How long a page of replies may be waited for: less than proxies wait for an answer.
pub const REPLY_WAIT_MS: u64 = 30_000;

/// Dead letters on one page.
pub const DEAD_LETTERS: u64 = 100;

/// Figures of an hour are kept for two windows of the error budget.
pub const HOURS_KEPT: i64 = 14 * 24;

/// How often figures go into the store: so much of them a crash may lose.
pub const FIGURES_MS: u64 = 60_000;

/// Documents one batch reads.
pub const BATCH: usize = 20;

/// Characters of a document shown to people who did not ask for all of it.
pub const EXCERPT_CHARS: usize = 500;
