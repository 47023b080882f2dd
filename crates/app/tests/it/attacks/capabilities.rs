//! Attempts to get around the tools that a session or a client is limited to, through the workflows it may start.

use serde_json::{Value, json};

use super::actors::{ask, execute, expect, serve, token, workflow};
use crate::program::Place;
use crate::server::Server;

/// What a limited caller may not do, one step each, with the name of what it does.
fn forbidden() -> [(&'static str, Value); 10] {
    let step = |agent: &str, input: Value| json!([{"id": "s", "agentId": agent, "input": input}]);
    [
        ("tool", step("@orchestr8/tool", json!({"tool": "list_documents"}))),
        ("alias", step("@orchestr8/tool", json!({"tool": "agent/list"}))),
        ("query", step("@orchestr8/knowledge", json!({"operation": "query", "query": "x"}))),
        ("create", step("@orchestr8/knowledge", json!({"operation": "create", "title": "x", "body": "x"}))),
        ("send", step("@orchestr8/send", json!({"to": "builder", "payload": {}}))),
        ("request", step("@orchestr8/request", json!({"to": "builder", "payload": {}}))),
        ("session", step("@orchestr8/session", json!({"message": "/tool list_documents"}))),
        ("llm", step("@orchestr8/llm", json!({"prompt": "hello"}))),
        ("http", step("@orchestr8/http", json!({"url": "https://example.org/"}))),
        ("worker", step("@worker/pay", json!({"amount": 1}))),
    ]
}

fn people() -> String {
    [token("alice", "acme", &["owner"]), "[sessions]\ncwd = '/tmp'\n".to_owned()].concat()
}

fn call(server: &Server, more: &str, tool: &str, arguments: Value) -> Value {
    let head = format!("Authorization: Bearer alice\r\n{more}");
    let params = json!({"name": tool, "arguments": arguments});
    server.connect().modern(1, "tools/call", params, &head).unwrap().json()["result"].clone()
}

/// Starts a workflow from inside a session, by a tool call of its model.
fn run_in_session(server: &Server, session: &str, definition: &Value) {
    let message = format!("/tool run_workflow {}", json!({"workflow": definition}));
    let said = call(server, "", "prompt_session", json!({"sessionId": session, "message": message}));
    assert_eq!(said["isError"], false, "{said}");
}

fn start_session(server: &Server) -> String {
    let started = call(server, "", "start_session", json!({}));
    started["structuredContent"]["sessionId"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
}

/// The newest execution of a workflow.
fn execution_of(server: &Server, id: &str) -> String {
    let listed = expect(server, "alice", ("GET", &format!("/v1/executions?workflowId={id}")), None, 200);
    listed["executions"][0]["executionId"].as_str().unwrap_or_else(|| panic!("{id}: {listed}")).to_owned()
}

fn end_of(server: &Server, execution: &str) -> Value {
    expect(server, "alice", ("GET", &format!("/v1/executions/{execution}?wait=10s")), None, 200)
}

fn assert_limited(ended: &Value) {
    assert_eq!(ended["status"], "failed", "{ended}");
    let error = &ended["errors"][0];
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("FORBIDDEN"), &json!("tool_limit")),
        "{ended}"
    );
}

#[test]
fn a_workflow_of_a_session_may_use_no_tool_that_the_session_may_not() {
    let place = Place::new();
    let config = people().replace("[sessions]", "[sessions]\ntools = ['run_workflow', 'get_status']");
    let server = serve(&place, &config);
    let session = start_session(&server);
    for (name, steps) in forbidden() {
        run_in_session(&server, &session, &workflow(name, steps));
        let ended = end_of(&server, &execution_of(&server, name));
        assert_limited(&ended);
        assert_eq!(ended["toolLimit"], json!(["run_workflow", "get_status"]), "{ended}");
    }
    let pure = json!([{"id": "e", "agentId": "@orchestr8/echo", "input": {"message": "m"}}]);
    run_in_session(&server, &session, &workflow("pure", pure));
    assert_eq!(end_of(&server, &execution_of(&server, "pure"))["status"], "completed");
    let inside = workflow("inside", forbidden()[0].1.clone());
    run_in_session(&server, &session, &workflow("outside", json!([{"id": "c", "workflow": inside}])));
    assert_eq!(end_of(&server, &execution_of(&server, "outside"))["status"], "failed");
    assert_limited(&end_of(&server, &execution_of(&server, "inside")));
    // The same by someone whose tools are not limited.
    let free = execute(&server, "alice", json!({"workflow": workflow("free", forbidden()[0].1.clone())}));
    assert_eq!((&free["status"], &free["toolLimit"]), (&json!("completed"), &Value::Null), "{free}");
}

#[test]
fn a_limit_holds_after_a_crash_and_for_what_is_retried_or_forked() {
    let place = Place::new();
    let config = people().replace("[sessions]", "[sessions]\ntools = ['run_workflow', 'get_status']");
    let server = serve(&place, &config);
    let session = start_session(&server);
    let steps = json!([
        {"id": "ok", "approval": {"message": "Go on?"}},
        {"id": "s", "dependencies": ["ok"], "agentId": "@orchestr8/tool", "input": {"tool": "list_documents"}}
    ]);
    run_in_session(&server, &session, &workflow("later", steps));
    let id = execution_of(&server, "later");
    server.kill();
    // Not even a server without the setting lifts it.
    let server = serve(&place, &people());
    let approve = || {
        let open = expect(&server, "alice", ("GET", "/v1/approvals"), None, 200);
        let path = format!("/v1/approvals/{}", open["approvals"][0]["token"].as_str().unwrap());
        expect(&server, "alice", ("POST", &path), Some(json!({"decision": "approve"})), 200);
    };
    approve();
    assert_limited(&end_of(&server, &id));
    let retried = ask(&server, "alice", "POST", &format!("/v1/executions/{id}/retry"), None);
    assert!(retried.status < 300, "{retried:?}");
    assert_limited(&end_of(&server, &id));
    let forked = ask(&server, "alice", "POST", &format!("/v1/executions/{id}/fork?fromStep=s"), None);
    assert!(forked.status < 300, "{forked:?}");
    approve();
    let forked = end_of(&server, forked.json()["executionId"].as_str().unwrap());
    assert_limited(&forked);
    assert_eq!(forked["toolLimit"], json!(["run_workflow", "get_status"]), "{forked}");
    let place = place.with("ORCHESTR8_TOKEN", "alice");
    let shown = place.run(&["inspect", &id, "--server", &format!("http://{}", server.address)]);
    assert!(shown.out.contains("run_workflow, get_status"), "{shown:?}");
}

#[test]
fn what_the_filter_hides_from_clients_is_hidden_from_their_workflows() {
    let place = Place::new();
    let config =
        format!("{}[tools]\nfilter = ['run_workflow', 'get_status', 'search_knowledge']\n", people());
    let server = serve(&place, &config);
    let run = |name: &str, steps: Value| {
        let started = call(&server, "", "run_workflow", json!({"workflow": workflow(name, steps)}));
        let id = started["structuredContent"]["executionId"].as_str().unwrap_or_else(|| panic!("{started}"));
        end_of(&server, id)
    };
    for (name, steps) in forbidden() {
        match name {
            "query" => assert_eq!(run(name, steps)["status"], "completed", "search_knowledge is offered"),
            _ => assert_limited(&run(name, steps)),
        }
    }
}

#[test]
fn an_agent_that_the_server_does_not_allow_is_called_by_no_one() {
    let place = Place::new();
    let config = format!("{}[workflows]\nallowedAgents = ['@orchestr8/echo', '@worker/pay']\n", people());
    let server = serve(&place, &config);
    let path = "/v1/workflows/execute?mode=sync";
    for (name, steps) in forbidden().into_iter().filter(|(name, _)| *name != "worker") {
        let body = json!({"workflow": workflow(name, steps)});
        let ended = expect(&server, "alice", ("POST", path), Some(body), 422);
        assert_eq!(ended["error"]["code"], "FORBIDDEN", "{ended}");
        assert!(ended["error"]["message"].as_str().unwrap().contains("does not let steps call"), "{ended}");
    }
    let listed = expect(&server, "alice", ("GET", "/v1/agents"), None, 200);
    let ids: Vec<&str> =
        listed["agents"].as_array().unwrap().iter().filter_map(|agent| agent["id"].as_str()).collect();
    assert_eq!(ids, ["@orchestr8/echo", "@worker/"], "{listed}");
}

#[test]
fn the_admin_token_of_a_request_is_not_passed_on_to_what_the_request_starts() {
    let place = Place::new().with("O8_ADMIN", "adm1n");
    let config = format!(
        "{}[tools]\nadminRegistrationEnabled = true\n[tools.adminPolicy]\nmode = 'token'\ntokenEnvVar = 'O8_ADMIN'\n\
         [security]\ndynamicRegistrationEnabled = true\n",
        people()
    );
    let server = serve(&place, &config);
    let register = |name: &str| json!({"name": name, "description": "x", "toolType": "echo"});
    let admin = "X-Admin-Token: adm1n\r\n";
    let direct = call(&server, admin, "admin.registerTool", register("w.direct"));
    assert_eq!(direct["isError"], false, "{direct}");
    let steps = json!([{"id": "s", "agentId": "@orchestr8/tool",
        "input": {"tool": "admin.registerTool", "arguments": register("w.workflow")}}]);
    let started = call(&server, admin, "run_workflow", json!({"workflow": workflow("w", steps)}));
    let ended = end_of(&server, started["structuredContent"]["executionId"].as_str().unwrap());
    assert_eq!(
        (&ended["status"], &ended["errors"][0]["code"]),
        (&json!("failed"), &json!("FORBIDDEN")),
        "{ended}"
    );
    let started = call(&server, admin, "start_session", json!({}));
    let session = started["structuredContent"]["sessionId"].clone();
    let message = format!("/tool admin.registerTool {}", register("w.session"));
    call(&server, admin, "prompt_session", json!({"sessionId": session, "message": message}));
    let again = call(&server, "", "w.direct", json!({"message": "m"}));
    assert_eq!(again["isError"], false, "{again}");
    for name in ["w.workflow", "w.session"] {
        assert_eq!(call(&server, admin, name, json!({"message": "m"}))["isError"], true, "{name}");
    }
}
