//! What a definition or an agent gets wrong has a code and a category of its own: a user's failure is never INTERNAL.

use orchestr8_contract::{Code, Kind};
use serde_json::{Value, json};

use crate::world::{World, flow, step, with};

/// What fails, its steps, and the code and the category of the failure.
type Failing = (&'static str, Value, &'static str, &'static str);

fn call(id: &str, input: Value) -> Value {
    json!([{"id": "x", "type": "agent", "agentId": id, "input": input}])
}

/// A step with these members after one whose output is an empty object.
fn after(more: Value) -> Value {
    json!([step("a", &[], json!({"value": {}})), with(step("x", &["a"], json!({})), more)])
}

fn invalid(what: &'static str, steps: Value) -> Failing {
    (what, steps, "INVALID_ARGUMENT", "validation")
}

fn mistakes_of_definitions() -> Vec<Failing> {
    let rounds = json!({"while": {"condition": "1 == 1", "maxIterations": 2}});
    let rounds = json!([with(step("x", &[], json!({"value": 1})), rounds)]);
    let path = after(json!({"input": {"v": "${steps.a.output.nope}"}}));
    let long = after(json!({"input": {"v": "${variables.long}${variables.long}"}}));
    let mut approval = after(json!({}));
    approval[1] = json!({"id": "x", "type": "approval", "dependsOn": ["a"], "approval": {"message": "${steps.a.output.nope}"}});
    vec![
        ("a path that is not there", path, "EXPR_PATH_NOT_FOUND", "validation"),
        ("an approval whose text cannot be made", approval, "EXPR_PATH_NOT_FOUND", "validation"),
        ("a text that grows too long", long, "PAYLOAD_TOO_LARGE", "validation"),
        ("too many rounds", rounds, "LIMIT_EXCEEDED", "validation"),
        invalid("a condition over unlike values", after(json!({"if": "${steps.a.output} > 1"}))),
        invalid("an empty key", after(json!({"idempotencyKey": "${variables.empty}"}))),
        invalid("items that are no list", after(json!({"forEach": {"items": "${steps.a.output}"}}))),
        invalid(
            "a wait without a duration",
            json!([{"id": "x", "type": "wait", "wait": {"duration": "${variables.long}"}}]),
        ),
    ]
}

fn mistakes_in_calls() -> Vec<Failing> {
    let send = json!({"to": "b", "from": "a", "payload": {}});
    let unknown = json!({"value": 1, "operations": [{"nope": true}]});
    let private = json!({"url": "http://127.0.0.1:9/"});
    vec![
        ("an unknown agent", call("@nowhere/agent", json!({})), "NOT_FOUND", "validation"),
        ("an unknown tool", call("@orchestr8/tool", json!({"tool": "nope"})), "NOT_FOUND", "validation"),
        ("a host that is not allowed", call("@orchestr8/http", private), "UNAUTHORIZED", "validation"),
        (
            "programs that are not configured",
            call("@orchestr8/exec", json!({})),
            "CONFIGURATION",
            "validation",
        ),
        ("messages on a server without", call("@orchestr8/send", send), "CONFIGURATION", "validation"),
        invalid("a request without an address", call("@orchestr8/http", json!({}))),
        invalid("an operation that there is not", call("@orchestr8/transform", unknown)),
        invalid("a model without a provider", call("@orchestr8/llm", json!({"model": "x", "prompt": "p"}))),
    ]
}

fn failures_of_others() -> Vec<Failing> {
    let no = || call("@test/agent", json!({"fail": "AGENT_FAILED"}));
    let child = |workflow: Value| json!([{"id": "x", "type": "workflow", "workflow": workflow}]);
    let item =
        json!([with(step("x", &[], json!({"fail": "AGENT_FAILED"})), json!({"forEach": {"items": [1]}}))]);
    let tool = call("@test/agent", json!({"fail": "UNKNOWN_TOOL_FAILURE"}));
    let mut undeclared = child(flow(json!([step("c", &[], json!({}))])));
    undeclared[0]["inputs"] = json!({"n": 1});
    let event = json!([{"id": "x", "type": "wait", "wait": {"event": "go", "timeoutMs": 1}}]);
    vec![
        ("an agent's own no", no(), "AGENT_FAILED", "business"),
        ("a tool's own failure", tool, "UNKNOWN_TOOL_FAILURE", "business"),
        ("a child that says no", child(flow(no())), "AGENT_FAILED", "business"),
        ("an item that says no", item, "AGENT_FAILED", "business"),
        ("an unknown stored child", child(json!({"id": "nope"})), "NOT_FOUND", "validation"),
        invalid("an undeclared input of a child", undeclared),
        ("an event that does not come", event, "TIMEOUT", "timeout"),
    ]
}

#[tokio::test]
async fn no_failure_of_a_user_is_internal() {
    let world = World::new().await;
    let all = [mistakes_of_definitions(), mistakes_in_calls(), failures_of_others()].concat();
    for (what, steps, code, category) in all {
        let mut workflow = flow(steps);
        workflow["variables"] = json!({"empty": "", "long": "x".repeat(40_000)});
        let id = world.start_whole(workflow, json!({})).await;
        let end = world.end(&id).await;
        let error = &end["errors"][0];
        assert_eq!(
            (&error["code"], &error["category"]),
            (&json!(code), &json!(category)),
            "{what}: {error:#}"
        );
        let kind = Code::ALL.iter().find(|one| one.as_str() == code).unwrap().kind();
        // The face says AGENT_FAILED for it.
        assert!(kind != Kind::Internal || code == "UNKNOWN_TOOL_FAILURE", "{what}");
        assert_eq!(error["isRetryable"], code == "TIMEOUT", "{what}");
        if let Some(items) = error["details"]["failed"].as_array() {
            assert_eq!(items[0]["error"]["category"], category, "{what}: {error:#}");
        }
        let journal = world.journal(&id).await;
        let entry = journal.iter().find(|entry| entry["data"]["error"]["code"] == code);
        let entry = entry.unwrap_or_else(|| panic!("{what}: {journal:#?}"));
        assert_eq!(entry["data"]["error"]["category"], category, "{what}");
    }
}
