//! One operation of the description, put together piece by piece.

use serde_json::{Map, Value, json};

/// What every request can meet: a wrong parameter, a missing token, a foreign page, a limit, a fault, an end.
const ALWAYS: [u16; 6] = [400, 401, 403, 429, 500, 503];

/// What a request with a body can meet besides.
const WITH_BODY: [u16; 3] = [408, 413, 415];

pub(super) struct Operation {
    fixed: Map<String, Value>,
    parameters: Vec<Value>,
    responses: Map<String, Value>,
}

impl Operation {
    pub fn new(id: &str, tag: &str, summary: &str) -> Self {
        let fixed = [("operationId", json!(id)), ("tags", json!([tag])), ("summary", json!(summary))];
        let fixed = fixed.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let parameters = vec![json!({"$ref": "#/components/parameters/X-Correlation-ID"})];
        Self { fixed, parameters, responses: Map::new() }.fails(&ALWAYS)
    }

    pub fn about(mut self, text: &str) -> Self {
        self.fixed.insert("description".into(), text.into());
        self
    }

    /// Something the path names; where there is none, 404.
    pub fn path(self, name: &str, about: &str) -> Self {
        self.path_like(name, "^[^\\s\\x00-\\x1f\\x7f-\\x9f]{1,128}$", about)
    }

    pub fn path_like(self, name: &str, pattern: &str, about: &str) -> Self {
        let schema = json!({"type": "string", "pattern": pattern});
        self.parameter("path", name, schema, about, true).fails(&[404])
    }

    pub fn query(self, name: &str, schema: Value, about: &str) -> Self {
        self.parameter("query", name, schema, about, false)
    }

    pub fn required_query(self, name: &str, schema: Value, about: &str) -> Self {
        self.parameter("query", name, schema, about, true)
    }

    pub fn header(self, name: &str, schema: Value, about: &str) -> Self {
        self.parameter("header", name, schema, about, false)
    }

    fn parameter(mut self, place: &str, name: &str, schema: Value, about: &str, required: bool) -> Self {
        let parameter =
            json!({"in": place, "name": name, "schema": schema, "description": about, "required": required});
        self.parameters.push(parameter);
        self
    }

    /// It can be repeated safely with a key.
    pub fn keyed(mut self) -> Self {
        self.parameters.push(json!({"$ref": "#/components/parameters/Idempotency-Key"}));
        self.fails(&[409])
    }

    pub fn body(self, schema: Value) -> Self {
        self.any_body(schema, true)
    }

    pub fn optional_body(self, schema: Value) -> Self {
        self.any_body(schema, false)
    }

    fn any_body(mut self, schema: Value, required: bool) -> Self {
        let body = json!({"required": required, "content": {"application/json": {"schema": schema}}});
        self.fixed.insert("requestBody".into(), body);
        self.fails(&WITH_BODY)
    }

    /// A body that works.
    pub fn example(mut self, example: Value) -> Self {
        if let Some(content) = self.fixed.get_mut("requestBody").and_then(|body| body.get_mut("content")) {
            content["application/json"]["example"] = example;
        }
        self
    }

    /// What can be done next with something the answer holds: operations that take it as a parameter.
    pub fn links(mut self, statuses: &[u16], pointer: &str, parameter: &str, operations: &[&str]) -> Self {
        for status in statuses {
            for operation in operations {
                let value = format!("$response.body#{pointer}");
                let link = json!({"operationId": operation, "parameters": {parameter: value}});
                self.response(*status, "")["links"][*operation] = link;
            }
        }
        self
    }

    /// Another form of the body, beside JSON.
    pub fn form(mut self, schema: Value) -> Self {
        if let Some(content) = self.fixed.get_mut("requestBody").and_then(|body| body.get_mut("content")) {
            content["application/x-www-form-urlencoded"] = json!({"schema": schema});
        }
        self
    }

    /// A success with a JSON body.
    pub fn gives(self, status: u16, about: &str, schema: Value) -> Self {
        self.gives_as(status, about, "application/json", schema)
    }

    pub fn gives_as(mut self, status: u16, about: &str, media: &str, schema: Value) -> Self {
        let response = self.response(status, about);
        response["content"][media] = json!({"schema": schema});
        self
    }

    /// An answer without a body.
    pub fn gives_nothing(mut self, status: u16, about: &str) -> Self {
        self.response(status, about);
        self
    }

    /// A header of an answer that is always there.
    pub fn with_header(mut self, status: u16, name: &str, about: &str) -> Self {
        let header = json!({"schema": {"type": "string"}, "description": about, "required": true});
        self.response(status, "")["headers"][name] = header;
        self
    }

    /// Refusals, all of one shape.
    pub fn fails(mut self, statuses: &[u16]) -> Self {
        for status in statuses {
            let shared = json!({"$ref": format!("#/components/responses/{status}")});
            self.responses.entry(status.to_string()).or_insert(shared);
        }
        self
    }

    /// The answer with this status, with whatever it has so far.
    fn response(&mut self, status: u16, about: &str) -> &mut Value {
        let response = self.responses.entry(status.to_string()).or_insert_with(|| answer(""));
        if response.get("$ref").is_some() {
            *response = refusal(status);
        }
        if !about.is_empty() {
            response["description"] = about.into();
        }
        response
    }

    pub fn into_value(self) -> Value {
        let mut value = self.fixed;
        value.insert("parameters".into(), self.parameters.into());
        value.insert("responses".into(), self.responses.into());
        value.into()
    }
}

/// Every refusal an operation can name, under its status.
pub(super) fn refusals() -> Map<String, Value> {
    const ALL: [u16; 15] = [400, 401, 403, 404, 408, 409, 412, 413, 415, 422, 426, 429, 500, 503, 504];
    ALL.into_iter().map(|status| (status.to_string(), refusal(status))).collect()
}

/// Parameters many operations have.
pub(super) fn parameters() -> Value {
    let header = |name: &str, schema: Value, about: &str| json!({"in": "header", "name": name, "schema": schema, "description": about, "required": false});
    json!({
        "X-Correlation-ID": header("X-Correlation-ID", json!({"type": "string"}), "Your id for this request: 1 to 128 visible ASCII, else one is made."),
        "Idempotency-Key": header(
            "Idempotency-Key",
            json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,255}$"}),
            "Makes repeats of this request recognisable for a day.",
        ),
    })
}

fn answer(about: &str) -> Value {
    json!({"description": about, "headers": {"X-Correlation-ID": {"schema": {"type": "string"}, "required": true}}})
}

fn refusal(status: u16) -> Value {
    let mut refusal = answer(meaning(status));
    refusal["content"]["application/json"] = json!({"schema": schema("Error")});
    refusal["headers"]["X-Error-Code"] = json!({"schema": {"type": "string"}, "required": true});
    refusal
}

/// A printable text of at most so many characters.
pub(super) fn text_of(limit: u64) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": limit, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"})
}

/// A whole number within limits.
pub(super) fn number_of(least: u64, most: u64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

pub(super) fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "Something of the request is wrong; details.errors has each mistake with its path.",
        401 => "The server asks for a token.",
        403 => "This caller, host or page may not do this.",
        404 => "There is no such thing.",
        408 => "The body came too slowly.",
        409 => "It contradicts what is, or the key was used for another request.",
        412 => "The resource is another than If-Match names.",
        413 => "Too large.",
        415 => "The body must be JSON.",
        422 => "It was understood, and it failed.",
        426 => "This path speaks WebSocket.",
        429 => "A limit is reached; Retry-After says when to come again.",
        503 => "Something needed is not there now; Retry-After says when to come again.",
        504 => "It takes longer than we wait.",
        _ => "The server failed.",
    }
}
