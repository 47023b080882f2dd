//! Nothing is left out: every action, route, MCP method and session command has a recipe.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{recipes, registered, serve};

/// Actions that no client reaches: the program runs them for an agent of a workflow, for its upkeep, for a list that leaves out what
/// the caller may not use, or to record a refused call.
pub const INTERNAL: [&str; 8] = [
    "knowledge.changes",
    "knowledge.delete_due",
    "llm.complete",
    "session.run",
    "tool_search",
    "upstream.list",
    "workspace.refused_call",
    "workspace.unknown_tool",
];

/// Methods that are served before a caller can ask for an action, or that only keep a stream open.
const WITHOUT_ACTION: [&str; 2] = ["initialize", "subscriptions/listen"];

/// The API descriptions, and what their paths begin with.
const DESCRIPTIONS: [(&str, &str); 3] = [
    ("/v1", include_str!("../../../../../../schemas/openapi.json")),
    ("/aacp", include_str!("../../../../../../schemas/aacp.openapi.json")),
    ("", include_str!("../../../../../../schemas/knowledge.openapi.json")),
];

#[test]
fn every_action_route_method_and_command_has_a_recipe() {
    let (place, _server) = serve();
    let actions = registered(&place);
    let recipes = recipes(&actions);
    let routes: BTreeSet<&str> = recipes.iter().map(|recipe| recipe.route.as_str()).collect();
    let reached: BTreeSet<&str> = recipes.iter().map(|recipe| recipe.action.as_str()).collect();
    let mut missing = Vec::new();
    for (action, _) in &actions {
        if !reached.contains(action.as_str()) && !INTERNAL.contains(&action.as_str()) {
            missing.push(format!("the action {action}"));
        }
        let command = action
            .strip_prefix("session.")
            .filter(|name| !INTERNAL.contains(&format!("session.{name}").as_str()));
        if let Some(command) = command.filter(|name| !routes.contains(format!("command {name}").as_str())) {
            missing.push(format!("the command {command}"));
        }
    }
    for (prefix, text) in DESCRIPTIONS {
        let description: Value = serde_json::from_str(text).unwrap();
        for (path, methods) in description["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys().filter(|name| *name != "parameters") {
                let route = format!("{} {prefix}{path}", method.to_uppercase());
                if !routes.contains(route.as_str()) {
                    missing.push(format!("the route {route}"));
                }
            }
        }
    }
    for method in orchestr8_mcp::method_names() {
        let has = routes.iter().any(|route| route.split(' ').next() == Some(method));
        if !has && !WITHOUT_ACTION.contains(&method) {
            missing.push(format!("the MCP method {method}"));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
