//! JSON Schemas of callers that would keep the server busy.

use serde_json::{Map, Value, json};

use super::actors::{ask, execute, serve, tokens, workflow};
use crate::program::Place;

/// Four alternatives at each of 24 levels: 4^24 ways to be wrong.
fn exponential() -> Value {
    let mut defs = Map::new();
    for level in 0..24 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"anyOf": [next, next, next, next]}));
    }
    defs.insert(String::from("d24"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"s": {"$ref": "#/$defs/d0"}}, "$defs": defs})
}

/// Many patterns that each take long to compile.
fn patterns(count: usize) -> Value {
    let member = |n: usize| (format!("p{n}"), json!({"pattern": format!("[\\w\\W]{{2000}}{n}")}));
    json!({"type": "object", "properties": (0..count).map(member).collect::<Map<_, _>>()})
}

#[test]
fn schemas_that_cost_too_much_are_refused_before_they_are_used() {
    let place = Place::new();
    let server = serve(&place, &tokens());
    for schema in [exponential(), patterns(1), patterns(600)] {
        let ask_person = workflow("ask", json!([{"id": "ok", "approval": {"message": "?", "form": schema}}]));
        let said =
            ask(&server, "viewer", "POST", "/v1/workflows/validate", Some(json!({"workflow": ask_person})));
        assert!(said.status == 400 || said.json()["valid"] == false, "{said:?}");
        let input = json!({"prompt": "{\"s\":\"a\"}"});
        let steps =
            json!([{"id": "s", "agentId": "@orchestr8/llm", "input": input, "config": {"schema": schema}}]);
        let body = json!({"workflow": workflow("check", steps)});
        let said = ask(&server, "operator", "POST", "/v1/workflows/execute?mode=sync", Some(body));
        assert!([400, 422].contains(&said.status), "{said:?}");
        assert_eq!(server.connect().get("/healthz").status, 200);
    }
    let echo =
        workflow("e", json!([{"id": "a", "agentId": "@orchestr8/echo", "input": {"message": "hello"}}]));
    assert_eq!(execute(&server, "operator", json!({"workflow": echo}))["status"], "completed");
}
