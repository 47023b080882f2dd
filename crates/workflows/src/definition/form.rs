//! The two forms a definition can have, and which members belong to which.

use serde_json::{Map, Value};

use super::fields::{Elsewhere, Known};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `metadata`, `context`, and steps with `agent`, `condition` and `policies`.
    Canonical,
    /// Everything at the top, and steps with `agentId`, `dependsOn`, `if` and `resilience`.
    Engine,
}

impl Form {
    /// What the members say. Without any sign, the engine form: it is the shorter one to complete.
    pub fn of(members: &Map<String, Value>) -> Self {
        let has = |names: &[&str]| names.iter().any(|name| members.contains_key(*name));
        if has(&["metadata", "context"]) {
            return Form::Canonical;
        }
        if has(&["id", "name", "variables", "allowedEnvVars", "secretRefs", "maxConcurrency"]) {
            return Form::Engine;
        }
        let steps = members.get("steps").and_then(Value::as_array);
        let is_canonical = |step: &Value| {
            ["agent", "condition", "policies"].iter().any(|name| step.get(name).is_some())
                && step.get("agentId").is_none()
        };
        if steps.is_some_and(|steps| steps.iter().any(is_canonical)) { Form::Canonical } else { Form::Engine }
    }

    pub fn top(self) -> Known<'static> {
        match self {
            Form::Canonical => Known { names: CANONICAL_TOP, elsewhere: ENGINE_ONLY_TOP },
            Form::Engine => Known { names: ENGINE_TOP, elsewhere: CANONICAL_ONLY_TOP },
        }
    }

    /// Every member a step may have in this form, whatever it does.
    pub fn step(self) -> Known<'static> {
        match self {
            Form::Canonical => Known { names: CANONICAL_STEP, elsewhere: ENGINE_ONLY_STEP },
            Form::Engine => Known { names: ENGINE_STEP, elsewhere: CANONICAL_ONLY_STEP },
        }
    }
}

pub(super) const CANONICAL_TOP: &[&str] = &[
    "$schema",
    "version",
    "schemaVersion",
    "schemaHash",
    "metadata",
    "context",
    "inputs",
    "policies",
    "compensateOn",
    "steps",
    "onFailure",
    "finally",
];

pub(super) const ENGINE_TOP: &[&str] = &[
    "$schema",
    "id",
    "version",
    "name",
    "description",
    "tags",
    "schemaVersion",
    "schemaHash",
    "variables",
    "secretRefs",
    "allowedEnvVars",
    "inputs",
    "policies",
    "maxConcurrency",
    "compensateOn",
    "steps",
    "onFailure",
    "finally",
];

const CANONICAL_STEP: &[&str] = &[
    "id",
    "name",
    "type",
    "agent",
    "input",
    "output",
    "workflow",
    "inputs",
    "detached",
    "wait",
    "approval",
    "switch",
    "dependencies",
    "condition",
    "forEach",
    "while",
    "onError",
    "fallbackStepId",
    "policies",
    "onUnknown",
    "compensate",
    "heartbeatTimeoutMs",
    "checkpoint",
    "join",
    "idempotencyKey",
];

const ENGINE_STEP: &[&str] = &[
    "id",
    "name",
    "type",
    "agentId",
    "config",
    "input",
    "output",
    "workflow",
    "inputs",
    "detached",
    "wait",
    "approval",
    "switch",
    "dependencies",
    "dependsOn",
    "if",
    "unless",
    "forEach",
    "while",
    "onError",
    "fallbackStepId",
    "maxRetries",
    "timeout",
    "resilience",
    "onUnknown",
    "compensate",
    "heartbeatTimeoutMs",
    "checkpoint",
    "join",
    "idempotencyKey",
];

const ENGINE_ONLY_TOP: Elsewhere<'static> = Elsewhere {
    forms: ("engine", "canonical"),
    instead: &[
        ("id", "metadata.id"),
        ("name", "metadata.name"),
        ("description", "metadata.description"),
        ("tags", "metadata.tags"),
        ("variables", "context.variables"),
        ("secretRefs", "context.secretRefs"),
        ("allowedEnvVars", "context.allowedEnvVars"),
        ("maxConcurrency", "policies.maxConcurrency"),
    ],
};

const CANONICAL_ONLY_TOP: Elsewhere<'static> = Elsewhere {
    forms: ("canonical", "engine"),
    instead: &[
        ("metadata", "id, name, description and tags at the top"),
        ("context", "variables, secretRefs and allowedEnvVars at the top"),
    ],
};

const ENGINE_ONLY_STEP: Elsewhere<'static> = Elsewhere {
    forms: ("engine", "canonical"),
    instead: &[
        ("agentId", "\"agent\": {\"id\": …}"),
        ("config", "\"agent\": {\"id\": …, \"config\": …}"),
        ("dependsOn", "dependencies"),
        ("if", "\"condition\": {\"if\": …}"),
        ("unless", "\"condition\": {\"unless\": …}"),
        ("maxRetries", "policies.retry.maxAttempts, the first attempt included"),
        ("timeout", "policies.timeout"),
        ("resilience", "policies.timeout, policies.retry and policies.circuitBreaker"),
    ],
};

const CANONICAL_ONLY_STEP: Elsewhere<'static> = Elsewhere {
    forms: ("canonical", "engine"),
    instead: &[
        ("agent", "agentId and config"),
        ("condition", "if and unless"),
        ("policies", "timeout, maxRetries or resilience"),
    ],
};
