//! API tokens.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{closed, list, open, or_null, text};
use crate::settings::PAGE_LIMIT;

const TAG: &str = "tokens";
const ID: &str = "^[a-z0-9]{12}$";

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/tokens", vec![("get", listing()), ("post", create())]),
        ("/tokens/{id}", vec![("delete", revoke("deleteToken"))]),
        ("/tokens/{id}/rotate", vec![("post", rotate())]),
        ("/tokens/{id}/revoke", vec![("post", revoke("revokeToken"))]),
    ]
}

fn listing() -> Operation {
    let page = open(json!({"tokens": list(schema("ApiToken")), "nextCursor": or_null(text())}), &["tokens"]);
    Operation::new("listTokens", TAG, "API tokens, never their secrets; for admins and owners.")
        .query(
            "tenant",
            text_of(128),
            "Only those of this tenant; another than one's own only for those who administer the machine.",
        )
        .query(
            "cursor",
            json!({"type": "string", "pattern": "^[a-z0-9]{1,32}$"}),
            "The nextCursor of the page before.",
        )
        .query("limit", number_of(1, PAGE_LIMIT), "Tokens on the page.")
        .gives(200, "A page.", page)
}

fn create() -> Operation {
    let name = json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._@:-]{0,63}$"});
    let members = json!({
        "name": name, "tenant": text_of(128), "roles": list(text_of(128)), "scope": list(text_of(128)),
        "expiresAt": {"type": ["string", "null"], "maxLength": 64, "format": "date-time"},
        "reuseName": {"type": "boolean"},
    });
    Operation::new("createToken", TAG, "Creates an API token. The answer is the only one that holds it.")
        .about("Without a role it is a viewer. A caller cannot grant a role that it does not have, nor create tokens of another tenant. `scope` narrows: `face:mcp`, `executions.*`. The name of a token that was revoked is refused, since the new one would inherit what belongs to it, unless `reuseName` is true.")
        .body(closed(members, &["name"]))
        .example(json!({"name": "ci", "roles": ["operator"], "scope": ["face:workflows"]}))
        .gives(201, "It is valid from now on.", with_secret())
        .links(&[201], "/id", "id", &["rotateToken", "revokeToken", "deleteToken"])
        .fails(&[409])
}

fn rotate() -> Operation {
    Operation::new(
        "rotateToken",
        TAG,
        "Gives a token another secret; the old one works until its grace ends.",
    )
    .path_like("id", ID, "The token.")
    .optional_body(closed(json!({"graceMs": number_of(0, 2_592_000_000)}), &[]))
    .gives(200, "The token with its new secret.", with_secret())
    .fails(&[404, 409])
}

fn revoke(id: &str) -> Operation {
    Operation::new(id, TAG, "Ends a token at once, its open connections included.")
        .path_like("id", ID, "The token.")
        .optional_body(closed(json!({}), &[]))
        .gives(200, "It is revoked.", schema("ApiToken"))
        .fails(&[404])
}

/// A token with the secret that is shown once.
fn with_secret() -> Value {
    json!({"allOf": [schema("ApiToken"), open(json!({"token": text()}), &["token"])]})
}
