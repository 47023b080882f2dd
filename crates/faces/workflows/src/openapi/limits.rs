//! Limits that are changed while the server runs.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, text_of};
use super::shapes::{closed, list, moment, one_of, open, or_null, text, whole};

const TAG: &str = "limits";

const SCOPES: [&str; 3] = ["agent", "queue", "tenant"];

pub(super) fn paths() -> Vec<Path> {
    vec![("/limits", vec![("get", listing()), ("put", set()), ("delete", unset())])]
}

fn limit() -> Value {
    let members = json!({
        "scope": one_of(&SCOPES), "name": text(), "tenant": or_null(text()), "value": or_null(whole()),
        "setting": or_null(whole()), "maximum": whole(), "origin": one_of(&["setting", "runtime"]), "setBy": text(),
        "setAt": moment(),
    });
    open(members, &["scope", "name", "value", "maximum", "origin"])
}

fn listing() -> Operation {
    Operation::new(
        "listLimits",
        TAG,
        "The limits of a tenant, its queues and agents, and where each comes from.",
    )
    .query("tenant", text_of(128), "Another tenant, for those who administer the machine.")
    .gives(
        200,
        "The limits.",
        open(json!({"tenant": text(), "limits": list(limit())}), &["tenant", "limits"]),
    )
}

fn set() -> Operation {
    let members = json!({
        "scope": one_of(&SCOPES), "name": text_of(256), "value": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
        "tenant": text_of(128),
    });
    Operation::new("setLimit", TAG, "Changes a limit at once. It holds until it is unset, also after a restart.")
        .about("A tenant has the limits executions, stepSlots and startsPerMinute. An agent that all tenants share is changed by those who administer the machine.")
        .keyed()
        .body(closed(members, &["scope", "name", "value"]))
        .example(json!({"scope": "queue", "name": "emails", "value": 10}))
        .gives(200, "The limit.", limit())
        .fails(&[404])
}

fn unset() -> Operation {
    Operation::new("unsetLimit", TAG, "Lets a limit be what the settings say.")
        .required_query("scope", one_of(&SCOPES), "What is limited.")
        .required_query("name", text_of(256), "The queue, the agent, or the limit of the tenant.")
        .query("tenant", text_of(128), "Another tenant, for those who administer the machine.")
        .keyed()
        .gives(200, "The limit.", limit())
        .fails(&[404])
}
