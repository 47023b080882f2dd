//! Which fields are shown without anybody asking for it.

/// The seed's list: shown wherever they are.
pub const ALLOWED_FIELDS: [&str; 11] = [
    "timestamp",
    "sequence",
    "correlationId",
    "type",
    "stepId",
    "level",
    "status",
    "duration",
    "attempt",
    "retryCount",
    "circuitState",
];

/// Shown at the top of an entry only, where names are the engine's own: their values are words, counts and ids that the
/// engine makes itself, never data of a workflow.
pub const ENGINE_FIELDS: [&str; 38] = [
    "agentId",
    "attempts",
    "bytes",
    "childExecutionId",
    "circuitKey",
    "code",
    "cost",
    "delayMs",
    "deadline",
    "dropped",
    "executionId",
    "forkedFrom",
    "graceful",
    "hash",
    "index",
    "isRetryable",
    "items",
    "iteration",
    "kind",
    "nextRetryAt",
    "parentExecutionId",
    "priority",
    "skipReason",
    "steps",
    "timeoutMs",
    "tokens",
    "version",
    "workflowId",
    "budget",
    "completedAt",
    "decision",
    "dueAt",
    "elapsedMs",
    "finalState",
    "forcedAt",
    "gracePeriodMs",
    "reason",
    "requestedAt",
];

pub fn is_allowed(name: &str) -> bool {
    ALLOWED_FIELDS.contains(&name)
}

pub fn is_of_engine(name: &str) -> bool {
    ENGINE_FIELDS.contains(&name)
}
