//! Other MCP servers.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, number_of, schema, text_of};
use super::shapes::{any_object, closed, list, map_of, one_of, open, or_null, text, truth, whole};

const TAG: &str = "servers";
const NAME: &str = "^[A-Za-z0-9_-]{1,32}$";

/// What the settings name may have other characters, which are found all the same.
const ANY_NAME: &str = "^.{1,256}$";

/// Limits of the members of an entry.
const TEXT: u64 = 4_096;
const DAY_MS: u64 = 86_400_000;

pub(super) fn paths() -> Vec<Path> {
    vec![
        ("/servers", vec![("get", listing()), ("post", add())]),
        ("/servers/{name}", vec![("get", show()), ("delete", remove())]),
        ("/servers/{name}/restart", vec![("post", restart())]),
        ("/servers/{name}/logs", vec![("get", logs())]),
    ]
}

/// A server and the instance of it that serves the caller's tenant.
pub(super) fn server() -> Value {
    let refused = open(json!({"tool": text(), "why": text()}), &["tool", "why"]);
    let last_error = open(json!({"message": text(), "at": text()}), &["message", "at"]);
    let phase = || one_of(&["idle", "starting", "running", "waiting", "stopped"]);
    let instance =
        open(json!({"tenant": text(), "phase": phase(), "problem": or_null(text())}), &["tenant", "phase"]);
    let properties = json!({
        "name": text(), "phase": phase(), "tools": whole(), "quarantined": list(text()), "refused": list(refused),
        "problem": or_null(text()), "exitCode": or_null(whole()), "stderr": list(text()), "lastError": or_null(last_error),
        "nextAttemptAt": or_null(text()), "source": one_of(&["settings", "added"]), "removable": truth(), "shared": truth(),
        "instances": list(instance), "entry": any_object(), "toolNames": list(text()), "addedBy": or_null(text()),
        "addedAt": or_null(text()),
    });
    open(properties, &["name", "phase", "tools", "quarantined", "refused", "source", "removable", "shared"])
}

fn listing() -> Operation {
    let page = open(json!({"servers": list(schema("McpServer"))}), &["servers"]);
    Operation::new("listServers", TAG, "The other MCP servers whose tools are offered to the tenant.").gives(
        200,
        "Each with the instance that serves the tenant.",
        page,
    )
}

fn add() -> Operation {
    let texts = || json!({"type": "array", "maxItems": 64, "items": text_of(TEXT)});
    let timeout = |least: u64| number_of(least, DAY_MS);
    let members = json!({
        "name": {"type": "string", "pattern": NAME, "description": "Its tools are called name.tool."},
        "command": text_of(TEXT), "args": texts(), "env": map_of(text_of(TEXT)), "cwd": text_of(TEXT),
        "url": text_of(TEXT), "headers": map_of(text_of(TEXT)), "prefix": text_of(64), "allow": texts(), "deny": texts(),
        "maxConcurrent": number_of(1, 10_000), "startTimeoutMs": timeout(1), "timeoutMs": timeout(1), "idleTimeoutMs": timeout(0),
    });
    let done = json!({"name": text(), "tenant": text(), "added": {"const": true}});
    Operation::new("addServer", TAG, "Adds a server; for admins and owners.")
        .about("It belongs to the tenant. Give command, or url. ${NAME} in args, env, url and headers stands for a named secret of the tenant; credentials themselves are refused.")
        .body(closed(members, &["name"]))
        .example(json!({"name": "search", "url": "https://search.example.org/mcp", "headers": {"Authorization": "Bearer ${SEARCH_TOKEN}"}}))
        .gives(200, "It is stored and starts.", open(done, &["name", "tenant", "added"]))
        .links(&[200], "/name", "name", &["showServer", "removeServer", "restartServer"])
        .fails(&[409])
}

fn show() -> Operation {
    Operation::new("showServer", TAG, "One server with its entry, without credentials.")
        .path_like("name", ANY_NAME, "The server.")
        .gives(200, "The server.", schema("McpServer"))
        .fails(&[404])
}

fn remove() -> Operation {
    let done = open(json!({"name": text(), "removed": {"const": true}}), &["name", "removed"]);
    Operation::new(
        "removeServer",
        TAG,
        "Removes a server that was added; one of the settings is removed there.",
    )
    .path_like("name", ANY_NAME, "The server.")
    .gives(200, "It is gone, with its accepted tools.", done)
    .fails(&[404, 409])
}

fn restart() -> Operation {
    let done = open(json!({"name": text(), "restarting": {"const": true}}), &["name", "restarting"]);
    Operation::new("restartServer", TAG, "Restarts the instance that serves the tenant.")
        .about("For admins and owners of the tenant local: all instances of a server of the settings. One that does not run is started.")
        .path_like("name", ANY_NAME, "The server.")
        .gives(200, "It restarts.", done)
        .fails(&[404])
}

fn logs() -> Operation {
    let lines = json!({"name": text(), "lines": list(text()), "limit": whole()});
    Operation::new("serverLogs", TAG, "The last lines that the instance of the tenant wrote to stderr.")
        .path_like("name", ANY_NAME, "The server.")
        .gives(200, "The oldest first.", open(lines, &["name", "lines", "limit"]))
        .fails(&[404])
}
