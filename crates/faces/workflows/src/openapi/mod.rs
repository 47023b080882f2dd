//! The description of this API: OpenAPI 3.1, built here, committed as `schemas/openapi.json`, served as it is.

use serde_json::{Value, json};

/// The whole description.
pub fn document() -> Value {
    json!({"openapi": "3.1.0", "info": {"title": "orchestr8", "version": "1"}, "paths": {}})
}
