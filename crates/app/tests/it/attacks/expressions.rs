//! Conditions that compare large lists again and again: they fail at a limit, and while they run the server answers others, executions
//! can be cancelled, and the server stops and starts.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::actors::{ask, echo, execute, expect, serve, token, workflow};
use crate::program::Place;
use crate::server::Server;

fn people() -> String {
    [token("alice", "acme", &["owner"]), token("eve", "rival", &["owner"]), token("bot", "rival", &["agent"])]
        .concat()
}

/// A loop over two lists of 6,000 items, which differ at their end and are compared so many times before each round.
fn comparing(id: &str, comparisons: usize) -> Value {
    let mut items = vec!["B"; 6_000];
    let b = json!(items);
    items[5_999] = "C";
    let terms = vec!["${variables.b} == ${variables.c}"; comparisons].join(" || ");
    let condition = format!("${{iteration}} < 900 && !({terms})");
    let mut definition = workflow(
        id,
        json!([{"id": "a", "agentId": "@orchestr8/echo", "input": {"message": "m"},
                "while": {"condition": condition, "maxIterations": 1000}}]),
    );
    definition["variables"] = json!({"b": b, "c": items});
    definition
}

/// As much as one evaluation may cost, in each round, until the limit of the execution is reached.
fn costly(id: &str) -> Value {
    comparing(id, 80)
}

fn start(server: &Server, definition: &Value) -> String {
    let body = json!({"workflow": definition});
    let begun = expect(server, "eve", ("POST", "/v1/workflows/execute"), Some(body), 202);
    begun["executionId"].as_str().unwrap().to_owned()
}

/// Waits for the end of an execution.
fn end(server: &Server, id: &str) -> Value {
    loop {
        let answer = ask(server, "eve", "GET", &format!("/v1/executions/{id}?wait=5"), None);
        // What only reads is refused while the tenant has used up its time.
        if answer.status == 429 {
            std::thread::yield_now();
            continue;
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        let seen = answer.json();
        if !seen["completedAt"].is_null() {
            return seen;
        }
    }
}

/// What others see of the server: it lives, is ready, and runs their work.
fn serves_others(server: &Server, number: usize) {
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.connect().get(path).status, 200, "{path}");
    }
    let body = json!({"workflow": echo(&format!("honest-{number}"))});
    assert_eq!(execute(server, "alice", body)["status"], "completed");
}

#[test]
fn a_condition_that_compares_too_much_fails_and_says_so() {
    let place = Place::new();
    let server = serve(&place, &people());
    let started: Vec<String> =
        (0..3).map(|number| start(&server, &comparing(&format!("attack-{number}"), 900))).collect();
    for id in &started {
        let ended = end(&server, id);
        assert_eq!(
            (&ended["status"], &ended["errors"][0]["code"]),
            (&json!("failed"), &json!("EXPR_TOO_COSTLY"))
        );
        assert_eq!(ended["errors"][0]["isRetryable"], false, "{}", ended["errors"]);
        assert!(
            ended["errors"][0]["message"].as_str().unwrap().contains("1048576 units"),
            "{}",
            ended["errors"]
        );
    }
    let definition = comparing("of-an-agent", 900);
    let params = json!({"name": "run_workflow", "arguments": {"workflow": definition}});
    let said =
        server.connect().modern(1, "tools/call", params, "Authorization: Bearer bot\r\n").unwrap().json();
    assert_eq!(said["result"]["isError"], false, "{said}");
    serves_others(&server, 0);
}

#[test]
fn costly_conditions_of_one_tenant_do_not_hold_up_others() {
    const ATTACKS: usize = 2;
    // Without a budget, so that they never wait for it.
    let place = Place::new().with("ORCHESTR8_RESOURCES_MAX_CPU_MS_PER_MINUTE", "0");
    let server = serve(&place, &people());
    let started: Vec<String> =
        (0..ATTACKS).map(|number| start(&server, &costly(&format!("attack-{number}")))).collect();
    let ended = AtomicUsize::new(0);
    let mut served = 0;
    std::thread::scope(|scope| {
        for id in &started {
            let (server, ended) = (&server, &ended);
            scope.spawn(move || {
                let seen = end(server, id);
                ended.fetch_add(1, Ordering::SeqCst);
                assert_eq!(seen["errors"][0]["code"], "EXPR_TOO_COSTLY", "{}", seen["errors"]);
            });
        }
        while ended.load(Ordering::SeqCst) < ATTACKS {
            serves_others(&server, served);
            served += 1;
        }
    });
    assert!(served >= 2 * ATTACKS, "only {served} rounds of honest work ended beside {ATTACKS} attacks");
}

#[test]
fn costly_executions_can_be_cancelled_and_survive_neither_a_stop_nor_a_start_of_the_server() {
    // The tenant has used up its time at once, so they wait for the rest of the test.
    let place = Place::new().with("ORCHESTR8_RESOURCES_MAX_CPU_MS_PER_MINUTE", "100");
    let server = serve(&place, &people());
    let started: Vec<String> =
        (0..6).map(|number| start(&server, &costly(&format!("attack-{number}")))).collect();
    serves_others(&server, 0);
    let cancel = |server: &Server, id: &str| {
        let path = format!("/v1/executions/{id}/cancel");
        expect(server, "eve", ("POST", &path), Some(json!({"force": true})), 202);
        assert_eq!(end(server, id)["status"], "cancelled");
    };
    cancel(&server, &started[0]);
    server.kill();
    let server = Server::start(&place, &[]);
    serves_others(&server, 1);
    cancel(&server, &started[1]);
    serves_others(&server, 2);
    assert!(server.terminate().success(), "it stops while executions wait for their turn");
    let server = Server::start(&place, &[]);
    serves_others(&server, 3);
    for id in &started[2..] {
        cancel(&server, id);
    }
}
