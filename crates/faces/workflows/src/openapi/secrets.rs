//! Named secrets.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, schema};
use super::shapes::{closed, list, open, or_null, text};

const TAG: &str = "secrets";
const NAME: &str = "^[A-Za-z0-9_-]{1,128}$";

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/secrets", vec![("get", listing()), ("post", set())]),
        ("/secrets/{name}", vec![("put", rotate()), ("delete", delete())]),
    ]
}

fn value() -> Value {
    json!({"type": "string", "minLength": 8, "maxLength": 65_536, "format": "password", "writeOnly": true})
}

fn names(about: &str) -> Value {
    json!({"type": "array", "maxItems": 32, "items": {"type": "string", "minLength": 1, "maxLength": 512}, "description": about})
}

fn listing() -> Operation {
    let page = open(json!({"secrets": list(schema("Secret")), "locked": or_null(text())}), &["secrets"]);
    Operation::new("listSecrets", TAG, "The secrets of the tenant: names and bindings, no values.").gives(
        200,
        "All of them; locked says why stored secrets cannot be used.",
        page,
    )
}

fn set() -> Operation {
    let members = json!({
        "name": {"type": "string", "pattern": NAME}, "value": value(),
        "workflows": names("Ids of stored workflows, or hashes of definitions."),
        "agents": names("Ids of agents, such as @orchestr8/http."),
        "to": names("Where it may go: HOST:HEADER, HOST:body or exec:TEMPLATE:VARIABLE."),
    });
    Operation::new("setSecret", TAG, "Creates a secret, or replaces its value and bindings.")
        .about("A secret is bound to workflows or agents, or both, and to at least one destination. Its value is never shown again.")
        .body(closed(members, &["name", "value", "to"]))
        .example(json!({"name": "SHOP_TOKEN", "value": "an example value", "workflows": ["shop"], "to": ["api.shop.example:Authorization"]}))
        .gives(200, "It is stored.", schema("Secret"))
        .links(&[200], "/name", "name", &["rotateSecret", "deleteSecret"])
        .fails(&[409])
}

fn rotate() -> Operation {
    Operation::new("rotateSecret", TAG, "Replaces the value of a secret; its bindings stay.")
        .path_like("name", NAME, "The secret.")
        .body(closed(json!({"value": value()}), &["value"]))
        .gives(200, "It is stored.", schema("Secret"))
        .fails(&[409])
}

fn delete() -> Operation {
    let done = open(json!({"name": text(), "deleted": {"const": true}}), &["name", "deleted"]);
    Operation::new("deleteSecret", TAG, "Deletes a secret.")
        .path_like("name", NAME, "The secret.")
        .gives(200, "It is gone.", done)
        .fails(&[409])
}
