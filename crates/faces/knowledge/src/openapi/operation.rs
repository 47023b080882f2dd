//! One operation of the description, put together piece by piece.

use serde_json::{Map, Value, json};

/// What every request can meet: something wrong with it, a missing proof, a missing role, a limit, a fault, an end.
const ALWAYS: [u16; 6] = [400, 401, 403, 429, 500, 503];

/// All refusals, each under its status.
const REFUSALS: [(u16, &str); 11] = [
    (400, "Something is wrong with the request: INVALID_ARGUMENT."),
    (401, "Nobody known is asking: UNAUTHORIZED."),
    (403, "Somebody known asks for what they may not have: FORBIDDEN."),
    (404, "It is not there, or not in this tenant: NOT_FOUND."),
    (405, "This path does not take the method: INVALID_ARGUMENT."),
    (409, "It contradicts what has happened: CONFLICT."),
    (422, "The arguments do not fit: UNPROCESSABLE_ENTITY."),
    (429, "Too much at once: RATE_LIMIT_EXCEEDED."),
    (440, "Its time is over: EXPIRED."),
    (500, "Our fault: INTERNAL."),
    (503, "Not now: UNAVAILABLE."),
];

/// The statuses of refusals besides those any request can meet.
pub(super) const MISSING: &[u16] = &[404];
pub(super) const WRITES: &[u16] = &[409, 413, 422];
pub(super) const ENVELOPE: &[u16] = &[404, 409, 413, 422, 440];

pub(super) struct Operation {
    value: Value,
    parameters: Vec<Value>,
    responses: Map<String, Value>,
}

impl Operation {
    pub fn new(id: &str, tag: &str, summary: &str) -> Self {
        let value = json!({"operationId": id, "tags": [tag], "summary": summary});
        Self { value, parameters: Vec::new(), responses: Map::new() }.fails(&ALWAYS)
    }

    /// What the path names; where there is none, 404.
    pub fn path(self, name: &str, pattern: &str) -> Self {
        let schema = json!({"type": "string", "pattern": pattern});
        self.parameter("path", name, schema, true).fails(MISSING)
    }

    pub fn query(self, name: &str, schema: Value) -> Self {
        self.parameter("query", name, schema, false)
    }

    /// On this machine it says which tenant is meant; elsewhere it must be the proof's.
    pub fn of_tenant(self) -> Self {
        self.query("tenant_id", json!({"type": "string", "pattern": TENANT}))
    }

    /// It can be repeated safely with a key.
    pub fn keyed(self) -> Self {
        let key = json!({"type": "string", "pattern": "^[!-~]{1,256}$"});
        self.parameter("header", "Idempotency-Key", key, false)
    }

    fn parameter(mut self, place: &str, name: &str, schema: Value, required: bool) -> Self {
        self.parameters.push(json!({"in": place, "name": name, "schema": schema, "required": required}));
        self
    }

    pub fn body(self, schema: Value, example: Value) -> Self {
        self.body_as("application/json", json!({"schema": schema, "example": example}))
    }

    pub fn body_as(mut self, media: &str, content: Value) -> Self {
        self.value["requestBody"]["required"] = true.into();
        self.value["requestBody"]["content"][media] = content;
        self.fails(&[413, 503])
    }

    /// A success with a JSON body.
    pub fn gives(self, status: u16, schema: Value) -> Self {
        self.gives_as(status, "application/json", schema)
    }

    pub fn gives_as(mut self, status: u16, media: &str, schema: Value) -> Self {
        let response = self.responses.entry(status.to_string()).or_insert_with(|| answer("Done."));
        response["content"][media] = json!({"schema": schema});
        self
    }

    /// Refusals, all of one shape.
    pub fn fails(mut self, statuses: &[u16]) -> Self {
        for status in statuses.iter().filter(|status| **status != 413) {
            let shared = json!({"$ref": format!("#/components/responses/{status}")});
            self.responses.entry(status.to_string()).or_insert(shared);
        }
        if statuses.contains(&413) {
            // A body that is too large is refused by the edge before it is read, or as INVALID_ARGUMENT.
            self.responses.entry("413").or_insert_with(|| refusal("The body is too large."));
        }
        self
    }

    pub fn into_value(self) -> Value {
        let mut value = self.value;
        if !self.parameters.is_empty() {
            value["parameters"] = self.parameters.into();
        }
        value["responses"] = self.responses.into();
        value
    }
}

/// A tenant, as everywhere.
pub(super) const TENANT: &str = "^[A-Za-z0-9_.-]{1,128}$";

pub(super) fn refusals() -> Map<String, Value> {
    REFUSALS.iter().map(|(status, about)| (status.to_string(), refusal(about))).collect()
}

pub(super) fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// `{"ok": true, "data": …}`
pub(super) fn success(data: Value) -> Value {
    json!({"type": "object", "required": ["ok", "data"], "properties": {"ok": {"const": true}, "data": data}})
}

pub(super) fn number(least: u64, most: u64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

fn answer(about: &str) -> Value {
    json!({"description": about, "headers": {"X-Correlation-ID": {"schema": {"type": "string"}, "required": true}}})
}

fn refusal(about: &str) -> Value {
    let mut refusal = answer(about);
    refusal["content"]["application/json"] = json!({"schema": schema("Error")});
    refusal
}
