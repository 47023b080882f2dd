//! Recipes of the session protocol: every command over WebSocket.

use serde_json::{Value, json};

use super::objects::Objects;
use super::recipe::Recipe;
use super::wire::Request;

pub fn all() -> Vec<Recipe> {
    [of_server(), reads(), changes(), of_machine()].into_iter().flatten().collect()
}

/// A command with these members.
fn command(
    name: &'static str,
    action: &'static str,
    members: impl Fn(&Objects) -> Value + 'static,
) -> Recipe {
    Recipe::new(format!("command {name}"), action, move |o| {
        let mut command = members(o);
        command["type"] = json!(name);
        Request::Command(command)
    })
}

/// A command that names its session and nothing else.
fn about(name: &'static str, action: &'static str) -> Recipe {
    command(name, action, |o| json!({"sessionId": o.session()}))
}

fn of_server() -> Vec<Recipe> {
    let plain = |name, action| command(name, action, |_| json!({}));
    vec![
        plain("list_sessions", "session.list_sessions"),
        plain("get_metrics", "session.get_metrics"),
        plain("health_check", "session.health_check"),
        plain("get_startup_recovery", "session.get_startup_recovery"),
        plain("get_command_history", "session.get_command_history"),
        plain("list_stored_sessions", "session.list_stored_sessions"),
        command("create_session", "session.create_session", |o| json!({"sessionId": o.fresh("created")})),
        // Only the principal that a session belongs to deletes it.
        command("delete_session", "session.delete_session", |o| json!({"sessionId": o.own_session()})),
        about("switch_session", "session.switch_session"),
        about("events", "session.events"),
        command(
            "load_session",
            "session.load_session",
            |o| json!({"sessionId": o.fresh("loaded"), "sessionPath": "none.jsonl"}),
        )
        .ends(&["NOT_FOUND", "INVALID_ARGUMENT"]),
    ]
}

fn reads() -> Vec<Recipe> {
    vec![
        about("get_state", "session.get_state"),
        about("get_messages", "session.get_messages"),
        about("get_session_stats", "session.get_session_stats"),
        about("get_last_assistant_text", "session.get_last_assistant_text"),
        about("get_context_usage", "session.get_context_usage"),
        about("get_commands", "session.get_commands"),
        about("get_skills", "session.get_skills"),
        about("get_tools", "session.get_tools"),
        about("get_available_models", "session.get_available_models"),
        about("get_fork_messages", "session.get_fork_messages"),
        about("get_tree", "session.get_tree"),
        about("list_session_files", "session.list_session_files"),
    ]
}

fn changes() -> Vec<Recipe> {
    let saying =
        |name, action| command(name, action, |o| json!({"sessionId": o.session(), "message": "hello"}));
    let switching =
        |name, action| command(name, action, |o| json!({"sessionId": o.session(), "enabled": true}));
    vec![
        saying("prompt", "session.prompt"),
        saying("steer", "session.steer"),
        saying("follow_up", "session.follow_up"),
        about("abort", "session.abort"),
        about("abort_retry", "session.abort_retry"),
        about("abort_compaction", "session.abort_compaction"),
        about("compact", "session.compact").ends(&["FAILED_PRECONDITION", "INVALID_ARGUMENT", "CONFLICT"]),
        // Nothing was asked.
        command(
            "extension_ui_response",
            "session.extension_ui_response",
            |o| json!({"sessionId": o.session(), "requestId": "none", "response": {"method": "cancelled"}}),
        )
        .ends(&["NOT_FOUND"]),
        command(
            "set_model",
            "session.set_model",
            |o| json!({"sessionId": o.session(), "provider": "none", "modelId": "none"}),
        )
        .ends(&["NOT_FOUND", "INVALID_ARGUMENT"]),
        about("cycle_model", "session.cycle_model"),
        command(
            "set_thinking_level",
            "session.set_thinking_level",
            |o| json!({"sessionId": o.session(), "level": "low"}),
        ),
        about("cycle_thinking_level", "session.cycle_thinking_level"),
        switching("set_auto_compaction", "session.set_auto_compaction"),
        switching("set_auto_retry", "session.set_auto_retry"),
        command(
            "set_session_name",
            "session.set_session_name",
            |o| json!({"sessionId": o.session(), "name": "n"}),
        ),
        command(
            "share_session",
            "session.share_session",
            |o| json!({"sessionId": o.own_session(), "principal": "friend", "access": "read"}),
        ),
        about("new_session", "session.new_session"),
        command("fork", "session.fork", |o| {
            let (session, entry) = o.entry();
            json!({"sessionId": session, "entryId": entry})
        }),
        command("navigate_tree", "session.navigate_tree", |o| {
            let (session, entry) = o.entry();
            json!({"sessionId": session, "targetId": entry})
        }),
    ]
}

fn of_machine() -> Vec<Recipe> {
    vec![
        command(
            "switch_session_file",
            "session.switch_session_file",
            |o| json!({"sessionId": o.session(), "sessionPath": "none.jsonl"}),
        )
        .ends(&["NOT_FOUND", "INVALID_ARGUMENT"]),
        command(
            "export_session",
            "session.export_session",
            |o| json!({"sessionId": o.session(), "inline": true}),
        ),
        command("export_html", "session.export_html", |o| json!({"sessionId": o.session(), "inline": true})),
        command("bash", "session.bash", |o| json!({"sessionId": o.session(), "command": "true"})),
        about("abort_bash", "session.abort_bash"),
    ]
}
