//! Inside of a workflow: a step that calls a tool has the rights of its starter and no more, however the workflow was started.

use serde_json::{Value, json};

use super::content::workflow;
use super::objects::{Objects, TENANT};
use super::reference::allows;
use super::wire::{Request, Verdict, Wire, post, tool};
use super::{recipes, registered, serve};

/// A workflow whose only step calls this tool.
fn calling(id: &str, name: &str, arguments: &Value) -> Value {
    let input = json!({"tool": name, "arguments": arguments});
    workflow(
        id,
        json!([{"id": "a", "agentId": "@orchestr8/tool", "input": input, "resilience": {"maxAttempts": 1}}]),
    )
}

/// Runs it to its end, by the way the role has.
fn run(wire: &mut Wire, role: &str, definition: Value) -> Verdict {
    if role != "agent" {
        return wire.ask(&post("/v1/workflows/execute?mode=sync", json!({"workflow": definition}))).verdict;
    }
    let started = wire.ask(&tool("run_workflow", json!({"workflow": definition})));
    assert_eq!(started.verdict, Verdict::Done, "{}", started.text);
    let started: Value = serde_json::from_str(&started.text).unwrap();
    let id = &started["result"]["structuredContent"]["executionId"];
    let ended = wire.ask(&tool("get_status", json!({"executionId": id, "waitForMs": 20_000})));
    match (
        ended.text.contains("completed"),
        ended.text.contains("UNAUTHORIZED") || ended.text.contains("FORBIDDEN"),
    ) {
        (true, _) => Verdict::Done,
        (false, true) => Verdict::Refused,
        (false, false) => Verdict::Failed(ended.text),
    }
}

#[test]
fn a_step_that_calls_a_tool_has_the_rights_of_its_starter() {
    let (place, server) = serve();
    let recipes = recipes(&registered(&place));
    let mut objects = Objects::new(server.address);
    objects.release();
    let mut mistakes = Vec::new();
    for role in ["agent", "operator", "owner"] {
        let name = format!("{role}-0");
        let mut wire = Wire::new(server.address, &name);
        for recipe in &recipes {
            objects.turn(&name, TENANT);
            let Some(called) = recipe.route.strip_prefix("tools/call ") else { continue };
            if called.starts_with('(') {
                continue;
            }
            let Request::Mcp { params, .. } = (recipe.request)(&objects) else { continue };
            let definition = calling(&objects.fresh("calling"), called, &params["arguments"]);
            let verdict = run(&mut wire, role, definition);
            let is_governed = called.starts_with(super::reference::GOVERNED);
            let is_right = match (is_governed, allows(&recipe.action, role)) {
                (true, _) => matches!(verdict, Verdict::NotFound | Verdict::Failed(_)),
                (false, true) => verdict == Verdict::Done,
                (false, false) => verdict == Verdict::Refused,
            };
            if !is_right {
                mistakes.push(format!("{role} {called}: {verdict:?}"));
            }
        }
    }
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}
