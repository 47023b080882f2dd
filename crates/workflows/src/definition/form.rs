//! The two forms a definition can have, and which members belong to which.

use serde_json::{Map, Value};

use super::fields::Known;

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
    "steps",
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
    "steps",
];

const CANONICAL_STEP: &[&str] = &[
    "id",
    "name",
    "type",
    "agent",
    "input",
    "workflow",
    "inputs",
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
    "idempotencyKey",
];

const ENGINE_STEP: &[&str] = &[
    "id",
    "name",
    "type",
    "agentId",
    "config",
    "input",
    "workflow",
    "inputs",
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
    "idempotencyKey",
];

const IN_CANONICAL: &str = "it belongs to the engine form, and this workflow is in the canonical form";
const IN_ENGINE: &str = "it belongs to the canonical form, and this workflow is in the engine form";

const ENGINE_ONLY_TOP: &[(&str, &str, &str)] = &[
    ("id", IN_CANONICAL, "Use one form throughout: write metadata.id."),
    ("name", IN_CANONICAL, "Use one form throughout: write metadata.name."),
    ("description", IN_CANONICAL, "Use one form throughout: write metadata.description."),
    ("tags", IN_CANONICAL, "Use one form throughout: write metadata.tags."),
    ("variables", IN_CANONICAL, "Use one form throughout: write context.variables."),
    ("secretRefs", IN_CANONICAL, "Use one form throughout: write context.secretRefs."),
    ("allowedEnvVars", IN_CANONICAL, "Use one form throughout: write context.allowedEnvVars."),
    ("maxConcurrency", IN_CANONICAL, "Use one form throughout: write policies.maxConcurrency."),
];

const CANONICAL_ONLY_TOP: &[(&str, &str, &str)] = &[
    ("metadata", IN_ENGINE, "Use one form throughout: write id, name, description and tags at the top."),
    (
        "context",
        IN_ENGINE,
        "Use one form throughout: write variables, secretRefs and allowedEnvVars at the top.",
    ),
];

const ENGINE_ONLY_STEP: &[(&str, &str, &str)] = &[
    ("agentId", IN_CANONICAL, "Use one form throughout: write \"agent\": {\"id\": …}."),
    ("config", IN_CANONICAL, "Use one form throughout: write \"agent\": {\"id\": …, \"config\": …}."),
    ("dependsOn", IN_CANONICAL, "Use one form throughout: write dependencies."),
    ("if", IN_CANONICAL, "Use one form throughout: write \"condition\": {\"if\": …}."),
    ("unless", IN_CANONICAL, "Use one form throughout: write \"condition\": {\"unless\": …}."),
    (
        "maxRetries",
        IN_CANONICAL,
        "Use one form throughout: write policies.retry.maxAttempts, the first attempt included.",
    ),
    ("timeout", IN_CANONICAL, "Use one form throughout: write policies.timeout."),
    (
        "resilience",
        IN_CANONICAL,
        "Use one form throughout: write policies.timeout, policies.retry and policies.circuitBreaker.",
    ),
];

const CANONICAL_ONLY_STEP: &[(&str, &str, &str)] = &[
    ("agent", IN_ENGINE, "Use one form throughout: write agentId and config."),
    ("condition", IN_ENGINE, "Use one form throughout: write if and unless."),
    ("policies", IN_ENGINE, "Use one form throughout: write timeout, maxRetries or resilience."),
];
