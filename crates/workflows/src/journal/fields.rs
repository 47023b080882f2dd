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

/// Paths from the top of an entry, where names are the engine's own: the values are words, counts, moments and ids that
/// the engine makes itself, never data of a workflow.
pub const ENGINE_FIELDS: [&str; 61] = [
    "agentId",
    "at",
    "attempts",
    "budget",
    "budget.cost",
    "budget.steps",
    "budget.tokens",
    "budget.wallClockMs",
    "by",
    "cause",
    "childExecutionId",
    "circuitKey",
    "code",
    "compensation",
    "completedAt",
    "cost",
    "decision",
    "delayMs",
    "dropPolicy",
    "dropRate",
    "dropped",
    "dueAt",
    "elapsedMs",
    "error.attempts",
    "error.category",
    "error.code",
    "error.isRetryable",
    "errors.attempts",
    "errors.category",
    "errors.code",
    "errors.isRetryable",
    "eventType",
    "executionId",
    "finalState",
    "force",
    "forcedAt",
    "forkedFrom",
    "gracePeriodMs",
    "graceful",
    "handlers",
    "hash",
    "index",
    "isRetryable",
    "iteration",
    "nextRetryAt",
    "notUndone",
    "parentExecutionId",
    "priority",
    "queueSize",
    "requestedAt",
    "schedule.id",
    "schedule.time",
    "skipReason",
    "startedBy",
    "steps",
    "timeoutMs",
    "tokens",
    "undone",
    "until",
    "version",
    "workflowId",
];

/// Words of people about what they did to an execution: shown, unless they look like a secret.
const REMARKS: [&str; 2] = ["onBehalfOf", "reason"];

/// Why something failed: shown without values and secrets.
const REASONS: [&str; 2] = ["error.message", "errors.message"];

/// Objects of the engine, or lists of them, in which some fields are shown.
const ENGINE_GROUPS: [&str; 3] = ["error", "errors", "schedule"];

pub fn is_allowed(name: &str) -> bool {
    ALLOWED_FIELDS.contains(&name)
}

pub fn is_of_engine(path: &str) -> bool {
    ENGINE_FIELDS.contains(&path)
}

pub fn is_remark(path: &str) -> bool {
    REMARKS.contains(&path)
}

pub fn is_reason(path: &str) -> bool {
    REASONS.contains(&path)
}

pub fn is_group(path: &str) -> bool {
    ENGINE_GROUPS.contains(&path)
}
