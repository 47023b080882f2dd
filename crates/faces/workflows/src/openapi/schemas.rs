//! The shapes that several operations share.

use orchestr8_contract::FailureCategory;
use serde_json::{Map, Value, json};

use super::definition;
use super::operation::schema;
use super::plans;
use super::shapes::{any_object, list, map_of, moment, named, one_of, open, or_null, text, truth, whole};
use crate::endpoints::lists::STATUSES;
use crate::to_wire::Word;

const STEP_STATUSES: [&str; 10] = [
    "pending",
    "ready",
    "running",
    "waiting",
    "retrying",
    "completed",
    "failed",
    "skipped",
    "cancelled",
    "unknown",
];

pub(super) fn all() -> Map<String, Value> {
    let mut schemas = definition::all();
    schemas.extend(errors());
    schemas.extend(executions());
    schemas.extend(compensation());
    schemas.extend(journals());
    schemas.extend(workflows());
    schemas.extend(others());
    schemas
}

fn errors() -> Map<String, Value> {
    let words: Vec<&str> = Word::ALL.iter().map(|word| word.as_str()).collect();
    let categories = FailureCategory::ALL.map(FailureCategory::as_str);
    let fault = json!({
        "code": one_of(&words), "message": text(), "isRetryable": truth(), "category": one_of(&categories),
        "attempts": whole(),
        "details": any_object(), "cause": text(),
    });
    let mut step_fault = fault.clone();
    step_fault["stepId"] = text();
    let required = ["code", "message", "isRetryable", "category", "attempts"];
    let body = json!({
        "error": {"type": "object", "properties": fault, "required": required, "additionalProperties": false},
        "timestamp": moment(), "correlationId": text(), "executionId": text(),
    });
    named([
        (
            "Error",
            json!({"type": "object", "properties": body, "required": ["error", "timestamp", "correlationId"], "additionalProperties": false}),
        ),
        ("ExecutionError", open(step_fault, &required)),
    ])
}

fn executions() -> Map<String, Value> {
    let workflow = json!({"id": text(), "name": text(), "version": text(), "hash": text()});
    let execution = json!({
        "executionId": text(), "status": schema("Status"), "workflow": open(workflow, &["id", "name", "version"]),
        "steps": map_of(schema("Step")), "stepOrder": list(text()), "outputs": any_object(),
        "errors": list(schema("ExecutionError")), "variables": any_object(), "createdAt": moment(),
        "startedAt": or_null(moment()), "completedAt": or_null(moment()), "duration": or_null(whole()),
        "correlationId": text(), "tags": map_of(text()), "parentExecutionId": text(), "detached": truth(), "forkedFrom": text(), "pauseReason": text(),
        "cancelReason": text(), "schedule": schema("ScheduledMoment"), "compensation": schema("Compensation"), "notUndone": list(schema("NotUndone")), "handlers": schema("Handlers"), "budget": any_object(), "usage": any_object(), "lastSequence": whole(),
    });
    let shown = [
        "executionId",
        "status",
        "workflow",
        "steps",
        "stepOrder",
        "outputs",
        "errors",
        "createdAt",
        "startedAt",
        "completedAt",
        "duration",
        "correlationId",
        "lastSequence",
    ];
    let step = json!({
        "status": one_of(&STEP_STATUSES), "attempts": whole(), "attemptTimes": list(schema("StepAttempt")), "output": true, "error": schema("ExecutionError"),
        "aliasFor": text(), "skipReason": text(), "startTime": moment(), "endTime": moment(), "nextRetryAt": moment(),
        "waitingFor": any_object(), "childExecutionId": text(), "items": any_object(), "compensated": truth(),
        "compensating": truth(), "handler": one_of(&["onFailure", "finally"]),
    });
    let attempt = json!({
        "attempt": whole(), "startTime": moment(), "endTime": moment(), "duration": whole(), "code": text(),
    });
    let workflow = json!({"id": text(), "name": text(), "version": text()});
    let row = json!({
        "executionId": text(), "status": schema("Status"), "workflow": open(workflow, &["id", "name", "version"]),
        "correlationId": text(), "tags": map_of(text()), "createdAt": moment(), "startedAt": or_null(moment()), "completedAt": or_null(moment()),
        "duration": or_null(whole()), "error": or_null(schema("ExecutionError")), "schedule": schema("ScheduledMoment"),
    });
    let accepted = json!({
        "executionId": text(), "status": one_of(&["running", "queued"]), "message": text(), "checkUrl": text(),
    });
    let completed = json!({
        "executionId": text(), "status": {"const": "completed"}, "outputs": any_object(), "duration": or_null(whole()),
        "timestamp": or_null(moment()),
    });
    let page = json!({"executions": list(schema("ExecutionSummary")), "nextCursor": or_null(text())});
    named([
        ("Status", one_of(&STATUSES)),
        ("ScheduledMoment", open(json!({"id": text(), "time": moment()}), &["id", "time"])),
        ("StepAttempt", open(attempt, &["attempt", "startTime"])),
        ("Execution", open(execution, &shown)),
        ("Step", open(step, &["status", "attempts"])),
        ("ExecutionSummary", open(row, &["executionId", "status", "workflow", "correlationId", "createdAt"])),
        ("ExecutionPage", open(page, &["executions"])),
        ("Accepted", open(accepted, &["executionId", "status", "message", "checkUrl"])),
        ("Completed", open(completed, &["executionId", "status", "outputs", "duration", "timestamp"])),
        (
            "Moved",
            open(
                json!({"executionId": text(), "status": schema("Status"), "message": text()}),
                &["executionId"],
            ),
        ),
    ])
}

fn compensation() -> Map<String, Value> {
    let left = json!({
        "stepId": text(), "index": whole(), "outcome": {"const": "unknown"}, "error": schema("ExecutionError"),
        "generation": whole(),
    });
    let compensation = json!({
        "cause": one_of(&["failed", "cancelled"]), "undone": whole(), "remaining": whole(),
        "notUndone": list(schema("NotUndone")),
    });
    let handlers = json!({
        "outcome": schema("Status"), "running": or_null(one_of(&["onFailure", "finally"])), "failed": list(text()),
    });
    named([
        ("Handlers", open(handlers, &["outcome", "running", "failed"])),
        ("Compensation", open(compensation, &["cause", "undone", "remaining", "notUndone"])),
        ("NotUndone", open(left, &["stepId"])),
    ])
}

fn journals() -> Map<String, Value> {
    let entry = json!({
        "sequence": {"type": "integer", "minimum": 1}, "timestamp": whole(), "at": moment(), "correlationId": text(),
        "type": text(), "stepId": text(), "level": one_of(&["debug", "info", "warn", "error"]), "data": true,
        "truncated": any_object(),
    });
    let pagination = json!({"hasMore": truth(), "nextCursor": or_null(text()), "limit": whole()});
    let summary =
        json!({"totalEntries": whole(), "errors": whole(), "warnings": whole(), "retries": whole()});
    let page = json!({
        "executionId": text(), "entries": list(schema("JournalEntry")),
        "pagination": open(pagination, &["hasMore", "nextCursor", "limit"]),
        "summary": open(summary, &["totalEntries", "errors", "warnings", "retries"]), "etag": text(),
        "lastModified": moment(),
    });
    let event = json!({
        "id": whole(), "type": text(), "executionId": text(), "workflowId": text(), "stepId": text(),
        "timestamp": moment(), "data": true,
    });
    let shown = ["executionId", "entries", "pagination", "summary", "etag", "lastModified"];
    named([
        ("JournalEntry", open(entry, &["sequence", "timestamp", "correlationId", "type", "level", "data"])),
        ("JournalPage", open(page, &shown)),
        ("Event", open(event, &["type", "timestamp"])),
    ])
}

fn workflows() -> Map<String, Value> {
    let summary = json!({
        "id": text(), "name": text(), "version": text(), "revision": whole(), "hash": text(),
        "description": or_null(text()), "tags": or_null(list(text())), "steps": whole(), "appliedAt": moment(),
    });
    let revision = json!({"revision": whole(), "version": text(), "hash": text(), "appliedAt": moment()});
    let mut whole_one = summary.clone();
    whole_one["workflow"] = any_object();
    whole_one["inputs"] = or_null(any_object());
    whole_one["revisions"] = list(open(revision, &["revision", "version", "hash", "appliedAt"]));
    let applied = json!({
        "id": text(), "name": text(), "version": text(), "revision": whole(), "hash": text(), "unchanged": truth(),
    });
    let problem = json!({"path": text(), "message": text(), "hint": text(), "code": text()});
    let validation = json!({
        "valid": truth(), "problems": list(schema("Problem")), "warnings": list(schema("Problem")), "id": text(),
        "name": text(), "version": text(),
        "hash": text(), "steps": list(text()),
    });
    let required = ["id", "name", "version", "revision", "hash", "appliedAt"];
    let page = json!({"workflows": list(schema("WorkflowSummary")), "nextCursor": or_null(text())});
    named([
        ("WorkflowSummary", open(summary, &required)),
        ("Workflow", open(whole_one, &[&required[..], &["workflow", "revisions"]].concat())),
        ("WorkflowPage", open(page, &["workflows"])),
        ("Applied", open(applied, &["id", "name", "version", "revision", "hash", "unchanged"])),
        ("Problem", open(problem, &["path", "message", "hint", "code"])),
        ("Validation", open(validation, &["valid", "problems", "warnings"])),
    ])
}

fn others() -> Map<String, Value> {
    let approval = json!({
        "executionId": text(), "stepId": text(), "message": text(), "who": or_null(list(text())), "token": text(),
        "url": text(), "expiresAt": or_null(moment()), "form": or_null(any_object()),
    });
    let schedule = json!({
        "id": text(), "workflowId": text(), "cron": text(), "timeZone": or_null(text()), "inputs": or_null(any_object()), "tags": map_of(text()),
        "overlap": one_of(&["skip", "queue", "cancel", "allow"]), "backfill": one_of(&["none", "one", "all"]),
        "paused": truth(), "nextAt": or_null(moment()), "waiting": whole(), "lastAt": or_null(moment()), "lastExecutionId": or_null(text()),
    });
    let secret = json!({
        "name": text(), "version": whole(), "workflows": list(text()), "agents": list(text()), "to": list(text()),
        "createdAt": or_null(moment()), "rotatedAt": or_null(moment()), "changedBy": text(),
        "source": one_of(&["store", "settings"]),
    });
    let task = json!({
        "taskId": text(), "leaseToken": text(), "leaseMs": whole(), "deadline": moment(), "executionId": text(),
        "workflowId": text(), "stepId": text(), "attempt": whole(), "idempotencyKey": text(), "input": true,
        "config": true, "correlationId": text(),
    });
    let health = json!({
        "healthy": truth(), "name": {"const": "orchestr8"}, "version": text(), "pid": whole(), "startedAt": moment(),
    });
    let token = json!({
        "id": text(), "name": text(), "tenant": text(), "roles": list(text()), "scope": list(text()),
        "status": one_of(&["active", "expired", "revoked"]), "createdAt": moment(), "createdBy": text(),
        "expiresAt": or_null(moment()), "rotatedAt": or_null(moment()), "oldSecretUntil": or_null(moment()),
        "revokedAt": or_null(moment()), "revokedBy": or_null(text()), "lastUsedAt": or_null(moment()),
    });
    named([
        ("GovernedPlan", plans::plan()),
        (
            "ApiToken",
            open(token, &["id", "name", "tenant", "roles", "scope", "status", "createdAt", "createdBy"]),
        ),
        ("Approval", open(approval, &["executionId", "stepId", "token"])),
        ("McpServer", super::servers::server()),
        ("Secret", open(secret, &["name", "version", "workflows", "agents", "to", "source"])),
        ("Schedule", open(schedule, &["id", "workflowId", "cron", "paused"])),
        ("Trigger", super::triggers::trigger()),
        (
            "Task",
            open(
                task,
                &["taskId", "leaseToken", "executionId", "stepId", "attempt", "idempotencyKey", "input"],
            ),
        ),
        ("Health", open(health, &["healthy", "name", "version", "pid", "startedAt"])),
    ])
}
