//! Limits that more than one crate keeps, each with its reason. A limit of one crate lives beside its use.

/// JSON nested deeper than this is refused: recursion over it must never threaten the stack.
pub const JSON_DEPTH: usize = 100;

/// The seed's default for the serialized arguments of one call (MCP-ORDER-4).
pub const PAYLOAD_BYTES: usize = 1_048_576;

/// The seed's default for the state of one agent that a call may show.
pub const STATE_BYTES: usize = 262_144;

/// The seed's default number of actions that run at once.
pub const CONCURRENT_RUNS: usize = 10;

/// The seed's default response deadline of one call.
pub const TIMEOUT_MS: u64 = 30_000;

/// The seed's default for a graceful end of the process.
pub const SHUTDOWN_TIMEOUT_MS: u64 = 10_000;

/// How long a recorded outcome answers a repeat, unless an action says otherwise: a day.
pub const KEY_TTL_MS: u64 = 86_400_000;

/// A submission may wait for this many others, so that the cycle check stays cheap.
pub const DEPENDENCIES: usize = 32;

/// How long a submission waits for those it depends on.
pub const DEPENDENCY_WAIT_MS: u64 = 30_000;

/// Submissions accepted and not yet settled; beyond it new ones are refused, never old ones dropped.
pub const IN_FLIGHT: usize = 10_000;
