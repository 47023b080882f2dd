//! Lists over MCP show a caller what it may use, and nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::callers::is_governed;
use super::objects::{DYNAMIC_TOOL, Objects};
use super::reference::{GOVERNED, ROLES, allows};
use super::wire::{Request, Wire, post};
use super::{reached, serve};

/// The names that a caller is shown.
fn listed(wire: &mut Wire, method: &'static str, member: &str) -> BTreeSet<String> {
    let reply = wire.ask(&Request::Mcp { method, params: json!({}) });
    let said: Value =
        serde_json::from_str(&reply.text).unwrap_or_else(|_| panic!("{method}: {}", reply.text));
    let items = said["result"][member].as_array().unwrap_or_else(|| panic!("{said}"));
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lists_show_what_the_caller_may_use() {
    let (place, server) = serve();
    let objects = Objects::new(server.address);
    let actions = reached(&place);
    // What the other server offers is known a moment after it has come up.
    let mut owner = Wire::new(server.address, "owner-0");
    while !listed(&mut owner, "prompts/list", "prompts").contains("up.create_workflow") {}
    let lists = [
        ("tools/list", "tools", "tool"),
        ("prompts/list", "prompts", "prompt"),
        ("resources/templates/list", "resourceTemplates", "resource"),
    ];
    for role in ROLES.into_iter().chain(["plain"]) {
        let mut wire = Wire::new(server.address, &format!("{role}-0"));
        for (method, member, kind) in lists {
            let of_kind =
                actions.iter().filter(|(_, reached)| reached == kind).map(|(name, _)| name.as_str());
            // Beyond roles, the tools of admins look at how they are called; they are listed to whom the roles allow.
            let may = |name: &&str| {
                allows(name, role) || (name.starts_with("admin.") && matches!(role, "admin" | "owner"))
            };
            let mut expected: BTreeSet<String> = of_kind.filter(may).map(str::to_owned).collect();
            if kind == "tool" && allows("run_workflow", role) {
                expected.extend([String::from(DYNAMIC_TOOL), String::from("up.echo")]);
            }
            if kind == "prompt" && allows("upstream.prompt", role) {
                expected.extend(["up.create_workflow", "up.analyze_workflow"].map(String::from));
            }
            let shown = listed(&mut wire, method, member);
            if is_governed(role) {
                let is_governed = |name: &String| {
                    let full = format!("{GOVERNED}{name}");
                    name == "mcp.result" || actions.iter().any(|(action, _)| *action == full)
                };
                assert!(shown.iter().all(is_governed), "{role} {method}: {shown:?}");
            } else {
                assert_eq!(shown, expected, "{role} {method}");
            }
        }
    }
    let strangers = listed(&mut Wire::new(server.address, "eve"), "tools/list", "tools");
    assert!(strangers.contains("echo") && !strangers.contains(DYNAMIC_TOOL), "{strangers:?}");
    let made =
        objects.own(&post("/v1/tokens", json!({"name": "narrow", "roles": ["owner"], "scope": ["echo"]})));
    let mut narrow = Wire::new(server.address, made["token"].as_str().unwrap());
    assert_eq!(listed(&mut narrow, "tools/list", "tools"), BTreeSet::from([String::from("echo")]));
    assert_eq!(listed(&mut narrow, "prompts/list", "prompts"), BTreeSet::new());
}
