//! Load of one tenant: its calls, steps and large inputs leave room for the work of others.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::actors::{ask, echo, serve, token, workflow};
use super::sandbox::Client;
use crate::program::Place;
use crate::server::Server;

fn people() -> String {
    [
        token("alice", "acme", &["owner"]),
        token("eve", "rival", &["owner"]),
        token("mallory", "rival", &["owner"]),
    ]
    .concat()
}

fn start(server: &Server, who: &str, definition: &Value) -> u16 {
    ask(server, who, "POST", "/v1/workflows/execute", Some(json!({"workflow": definition}))).status
}

fn run(server: &Server, who: &str, definition: &Value) -> (u16, Value) {
    let body = json!({"workflow": definition});
    let answer = ask(server, who, "POST", "/v1/workflows/execute?mode=sync", Some(body));
    (answer.status, answer.json())
}

#[test]
fn steps_of_one_tenant_that_never_end_do_not_keep_another_from_running() {
    let place = Place::new();
    let server = serve(&place, &people());
    // No worker ever comes for them, and each has a slot for a day.
    let step = json!([{"id": "a", "agentId": "@worker/none", "timeout": 86_400_000, "input": {}}]);
    for number in 0..100 {
        assert_eq!(start(&server, "eve", &workflow(&format!("slow-{number}"), step.clone())), 202);
    }
    for number in 0..20 {
        let (status, ended) = run(&server, "alice", &echo(&format!("honest-{number}")));
        assert_eq!((status, &ended["status"]), (200, &json!("completed")), "{ended}");
    }
}

#[test]
fn calls_of_one_tenant_that_do_not_end_leave_slots_for_others() {
    let place = Place::new();
    place.write("orchestr8.toml", &people());
    let server = Server::start(&place, &["--conformance"]);
    let call = |who: &str, tool: &str, arguments: Value| {
        let more = format!("Authorization: Bearer {who}\r\n");
        let params = json!({"name": tool, "arguments": arguments});
        server.connect().modern(1, "tools/call", params, &more).unwrap().json()["result"].clone()
    };
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (call, refused) = (&call, &refused);
        // Twenty of eve's calls find no slot: ten are all that one caller gets.
        let sleep = || {
            move || {
                let said = call("eve", "test_sleep", json!({"ms": 5_000}));
                refused.fetch_add(usize::from(said["isError"] == true), Ordering::SeqCst);
            }
        };
        (0..30).for_each(|_| drop(scope.spawn(sleep())));
        while refused.load(Ordering::SeqCst) < 20 {
            std::thread::yield_now();
        }
        for who in ["alice", "mallory", "alice"] {
            let said = call(who, "echo", json!({"message": "m"}));
            assert_eq!(said["isError"], false, "{who}: {said}");
        }
        let said = call("eve", "echo", json!({"message": "m"}));
        assert_eq!(said["isError"], true, "the limit of one caller is as before: {said}");
    });
}

/// 800 kB of small objects, with operations that look at all of them.
fn heavy(number: usize) -> Value {
    let items: Vec<Value> =
        (0..20_000).map(|at| json!({"n": at % 977, "key": format!("k{:06}", at * 7919 % 20_000)})).collect();
    let operations = json!([{"unique": "key"}, {"sort": "key"}, {"group": "n"}, {"count": true}]);
    workflow(
        &format!("heavy-{number}"),
        json!([{"id": "t", "agentId": "@orchestr8/transform", "input": {"value": items, "operations": operations}}]),
    )
}

#[test]
fn large_inputs_of_one_tenant_do_not_hold_up_small_work_of_another() {
    const HEAVY: usize = 10;
    let place = Place::new();
    let server = serve(&place, &people());
    let ended = AtomicUsize::new(0);
    let mut honest = 0;
    std::thread::scope(|scope| {
        for number in 0..HEAVY {
            let (server, ended) = (&server, &ended);
            scope.spawn(move || {
                let (status, answer) = run(server, "eve", &heavy(number));
                ended.fetch_add(1, Ordering::SeqCst);
                let reason = answer.to_string();
                let is_over_quota = reason.contains("cpu_quota") || reason.contains("memory_quota");
                assert!(
                    status == 200 || is_over_quota || status == 413,
                    "{status}: {}",
                    &reason[..reason.len().min(400)]
                );
            });
        }
        while ended.load(Ordering::SeqCst) < HEAVY {
            let (status, answer) = run(&server, "alice", &echo(&format!("honest-{honest}")));
            assert_eq!(status, 200, "{answer}");
            honest += 1;
        }
    });
    assert!(honest >= 10 * HEAVY, "only {honest} small executions ended beside {HEAVY} large ones");
}

#[test]
fn cpu_time_for_large_inputs_has_a_budget_and_small_work_goes_on() {
    let place = Place::new().with("ORCHESTR8_RESOURCES_MAX_CPU_MS_PER_MINUTE", "1");
    let server = serve(&place, &people());
    let answers: Vec<(u16, Value)> = (0..3).map(|number| run(&server, "eve", &heavy(number))).collect();
    let refused = answers.iter().find(|(_, answer)| answer.to_string().contains("cpu_quota"));
    assert!(refused.is_some(), "{:?}", answers.iter().map(|(status, _)| status).collect::<Vec<_>>());
    assert_eq!(run(&server, "eve", &echo("small")).0, 200, "small work of the same tenant is not concerned");
}

#[test]
fn commands_of_one_tenant_leave_a_reserve_for_others() {
    let place = Place::new();
    let server = serve(
        &place,
        &format!("{}[sessions]\ncommandsPerMinuteOverall = 40\ncommandsPerMinute = 1000\n", people()),
    );
    let mut eve = Client::connect(server.address, Some("eve"));
    let mut refused = Value::Null;
    for _ in 0..60 {
        refused = eve.ask("list_sessions", json!({}));
    }
    assert!(refused.to_string().contains("Global rate limit"), "{refused}");
    let mut alice = Client::connect(server.address, Some("alice"));
    for _ in 0..4 {
        let served = alice.ask("list_sessions", json!({}));
        assert_eq!(served["success"], true, "{served}");
    }
}
