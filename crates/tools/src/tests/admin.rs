//! Registering tools at run time.

use orchestr8_contract::Code;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::{Halt, Settled, Transport, registry};
use serde_json::{Value, json};

use orchestr8_testing::settled::value;

use super::world::{World, settings};
use crate::{AdminMode, Settings};

fn world() -> World {
    World::new(&Settings { admin: Some(AdminMode::LocalStdioOnly), ..settings() }).with_agent()
}

fn definition(name: &str, kind: &str) -> Value {
    json!({"name": name, "description": "Made at run time", "toolType": kind})
}

fn message(settled: Settled) -> (Code, String) {
    match settled.result {
        Err(Halt::Fault(fault)) => (fault.code, fault.message.into_owned()),
        other => panic!("expected a fault, found {other:?}"),
    }
}

#[tokio::test]
async fn without_both_flags_there_are_no_admin_tools() {
    let world = World::new(&settings());
    assert!(!world.listed().iter().any(|name| name.starts_with("admin")));
    assert_eq!(world.call("admin/registerTool", definition("a", "echo")).await.code(), Some(Code::NotFound));
}

#[tokio::test]
async fn the_mode_is_enforced_before_anything_else() {
    for (mode, transport, expected) in [
        (AdminMode::DenyAll, Transport::Stdio, "Admin operations are disabled"),
        (AdminMode::LocalStdioOnly, Transport::Http, "Admin operations only allowed via stdio"),
        (AdminMode::Token, Transport::Stdio, "Token mode not supported in v0.1"),
    ] {
        let world = World::new(&Settings { admin: Some(mode), ..settings() });
        assert_eq!(world.listed(), ["admin.registerTool", "admin.unregisterTool", "echo", "health"]);
        for action in ["admin.registerTool", "admin.unregisterTool"] {
            let mut submission = world.submission(action, json!({"no": "sense"}));
            submission.transport = transport;
            let (code, text) = message(world.kernel.submit(submission).await);
            assert_eq!((code, text.as_str()), (Code::Unauthorized, expected));
        }
    }
}

#[tokio::test]
async fn each_kind_can_be_registered_called_and_taken_away() {
    let world = world();
    let mut news = world.kernel.bus().subscribe(&Filter::names([registry::CHANGED]).about("tools")).unwrap();
    for (kind, args, expected) in [
        ("echo", json!({"message": "hi"}), json!({"message": "hi"})),
        ("agentProxy", json!({"targetAgentId": "echo", "message": {"a": 1}}), json!({"a": 1})),
    ] {
        let mut definition = definition("mine", kind);
        definition["version"] = json!("2.0");
        let made = value(world.call("admin/registerTool", definition).await);
        assert_eq!(made, json!({"name": "mine", "toolType": kind, "registered": true}));
        assert!(news.next().await.is_some(), "list_changed follows");
        let action = world.kernel.registry().find_for(&Tenant::local(), "mine").unwrap();
        assert_eq!(
            (action.about.description.as_str(), action.about.version.as_deref()),
            ("Made at run time", Some("2.0"))
        );
        assert_eq!(value(world.call("mine", args).await), expected);
        let gone = value(world.call("admin/unregisterTool", json!({"name": "mine"})).await);
        assert_eq!(gone, json!({"name": "mine", "unregistered": true}));
        assert!(news.next().await.is_some(), "list_changed follows");
        assert_eq!(world.call("mine", json!({})).await.code(), Some(Code::NotFound));
    }
    value(world.call("admin.registerTool", definition("pulse", "health")).await);
    assert_eq!(value(world.call("pulse", json!({})).await)["status"], "healthy");
}

#[tokio::test]
async fn a_proxy_tells_what_the_agent_side_said() {
    let world = world();
    value(world.call("admin.registerTool", definition("proxy", "agentProxy")).await);
    let unknown = json!({"targetAgentId": "nobody", "message": {}});
    assert_eq!(world.call("proxy", unknown).await.code(), Some(Code::NotFound));
    assert_eq!(
        world.call("proxy", json!({"targetAgentId": "echo"})).await.code(),
        Some(Code::InvalidArgument)
    );
}

#[tokio::test]
async fn a_schema_that_is_given_must_be_the_canonical_one() {
    let world = world();
    let mut given = definition("mine", "health");
    given["inputSchema"] = json!({"type": "object", "properties": {}});
    let (code, text) = message(world.call("admin.registerTool", given.clone()).await);
    assert_eq!((code, text.starts_with("/inputSchema: ")), (Code::InvalidArgument, true), "{text}");
    given["inputSchema"] = json!({"additionalProperties": false, "properties": {}, "type": "object"});
    assert_eq!(value(world.call("admin.registerTool", given).await)["registered"], true);
}

#[tokio::test]
async fn what_cannot_be_registered_is_refused_with_its_path() {
    let world = world();
    let long = "x".repeat(129);
    for (name, kind, path) in [
        ("ok", "shell", "/toolType"),
        ("", "echo", "/name"),
        ("a/b", "echo", "/name"),
        (long.as_str(), "echo", "/name"),
        ("echo", "echo", "/name"),
        ("admin/registerTool", "echo", "/name"),
    ] {
        let (code, text) = message(world.call("admin.registerTool", definition(name, kind)).await);
        assert_eq!((code, text.starts_with(path)), (Code::InvalidArgument, true), "{name}: {text}");
    }
    for wrong in [
        json!({"name": "a", "toolType": "echo"}),
        json!({"name": "a", "toolType": "echo", "description": ""}),
        json!({"name": "a", "toolType": "echo", "description": "d", "handler": "rm"}),
        json!({"name": "a", "toolType": "echo", "description": "d", "inputSchema": []}),
    ] {
        assert_eq!(world.call("admin.registerTool", wrong).await.code(), Some(Code::InvalidArgument));
    }
}

#[tokio::test]
async fn only_tools_made_at_run_time_can_be_taken_away() {
    let world = world();
    for name in ["echo", "health", "admin.registerTool", "nothing", ""] {
        let (code, _) = message(world.call("admin.unregisterTool", json!({"name": name})).await);
        assert_eq!(code, Code::NotFound, "{name}");
    }
    assert!(world.kernel.registry().find("echo").is_some());
}
