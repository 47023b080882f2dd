//! Trees of child executions: children that start children do not take the server from others, and the limits of a tree hold over
//! a kill.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::actors::{ask, echo, execute, expect, serve, token, workflow};
use crate::program::Place;
use crate::server::Server;

#[allow(
    clippy::disallowed_methods,
    reason = "how long an answer takes is promised, and a test that waits in vain must end"
)]
fn now() -> Instant {
    Instant::now()
}

fn people() -> String {
    [token("alice", "acme", &["owner"]), token("eve", "rival", &["owner"])].concat()
}

fn place(level: usize, tree: usize) -> Place {
    Place::new()
        .with("ORCHESTR8_WORKFLOWS_MAX_EXECUTIONS_PER_TREE_LEVEL", &level.to_string())
        .with("ORCHESTR8_WORKFLOWS_MAX_EXECUTIONS_PER_TREE", &tree.to_string())
}

/// A workflow whose only step starts so many children of another one, or of itself.
fn forks(id: &str, child: &str, width: usize, more: Value) -> Value {
    let items: Vec<usize> = (0..width).collect();
    let mut step = json!({"id": "fork", "workflow": {"id": child},
                          "forEach": {"items": items, "concurrency": width, "onItemError": "continue"}});
    step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    workflow(id, json!([step]))
}

fn store(server: &Server, definition: &Value) {
    expect(server, "eve", ("POST", "/v1/workflows"), Some(json!({"workflow": definition})), 201);
}

fn start(server: &Server, id: &str) -> String {
    let begun =
        expect(server, "eve", ("POST", "/v1/workflows/execute"), Some(json!({"workflowId": id})), 202);
    begun["executionId"].as_str().unwrap().to_owned()
}

fn get(server: &Server, id: &str) -> Value {
    expect(server, "eve", ("GET", &format!("/v1/executions/{id}")), None, 200)
}

/// Waits for the end of an execution. One that never ends fails the test.
fn end(server: &Server, id: &str) -> Value {
    let since = now();
    loop {
        let seen = expect(server, "eve", ("GET", &format!("/v1/executions/{id}?wait=5")), None, 200);
        if !seen["completedAt"].is_null() {
            return seen;
        }
        assert!(since.elapsed() < Duration::from_secs(120), "it does not end: {}", seen["status"]);
    }
}

/// What the data file says: one number.
fn count(place: &Place, sql: &str) -> usize {
    let file = Connection::open(place.data_file()).unwrap();
    file.busy_timeout(Duration::from_secs(10)).unwrap();
    let number: i64 = file.query_row(sql, [], |row| row.get(0)).unwrap();
    usize::try_from(number).unwrap()
}

const CHILDREN: &str = "SELECT COUNT(*) FROM wf_executions WHERE parent IS NOT NULL";
const LIVE: &str = "SELECT COUNT(*) FROM wf_executions WHERE ended_ms IS NULL";
const LIVE_CHILDREN: &str =
    "SELECT COUNT(*) FROM wf_executions WHERE parent IS NOT NULL AND ended_ms IS NULL";

/// Waits until the data file says so.
fn until(place: &Place, sql: &str, is_so: impl Fn(usize) -> bool) {
    let since = now();
    while !is_so(count(place, sql)) {
        assert!(
            since.elapsed() < Duration::from_secs(120),
            "it is never so: {} for {sql}",
            count(place, sql)
        );
        std::thread::yield_now();
    }
}

/// The median of what an answer takes.
fn median(mut ask: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..31)
        .map(|_| {
            let since = now();
            ask();
            since.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[test]
fn a_fork_bomb_of_one_tenant_leaves_work_and_probes_of_others_alone() {
    let place = Place::new();
    let server = serve(&place, &people());
    let mut number = 0;
    let mut hello = || {
        number += 1;
        execute(&server, "alice", json!({"workflow": echo(&format!("hello-{number}"))}));
    };
    let probe = || assert_eq!(server.connect().get("/healthz").status, 200);
    let idle = (median(&mut hello), median(probe));
    store(&server, &forks("bomb", "bomb", 200, json!({})));
    store(&server, &forks("shrapnel", "shrapnel", 200, json!({"detached": true})));
    start(&server, "bomb");
    start(&server, "shrapnel");
    until(&place, CHILDREN, |children| children >= 2_000);
    let busy = (median(&mut hello), median(probe));
    let live = count(&place, LIVE);
    println!("idle {idle:?}, with a bomb {busy:?}, {live} live of {}", count(&place, CHILDREN));
    // Seven levels of two trees, of five hundred each.
    assert!(live <= 2 * 7 * 500 + 2, "{live} executions at once");
    let allowed = |idle: Duration| idle * 10 + Duration::from_millis(100);
    assert!(busy.0 <= allowed(idle.0), "hello-world: {:?} became {:?}", idle.0, busy.0);
    assert!(busy.1 <= allowed(idle.1), "/healthz: {:?} became {:?}", idle.1, busy.1);
}

#[test]
fn the_cancel_of_a_root_ends_the_whole_tree() {
    let place = place(20, 1_000_000);
    let server = serve(&place, &people());
    store(&server, &forks("bomb", "bomb", 50, json!({})));
    let root = start(&server, "bomb");
    // All levels are full but the lowest, whose executions fail at once.
    until(&place, LIVE_CHILDREN, |live| live >= 6 * 20);
    let path = format!("/v1/executions/{root}/cancel");
    assert!(ask(&server, "eve", "POST", &path, Some(json!({}))).status < 300);
    assert_eq!(end(&server, &root)["status"], "cancelled");
    until(&place, LIVE, |live| live == 0);
}

/// A workflow that waits for an event.
fn waiting() -> Value {
    workflow("waiting", json!([{"id": "go", "wait": {"event": "go"}}]))
}

/// Lets one of the waiting children end; false if there is none.
fn go(server: &Server) -> bool {
    let listed = expect(server, "eve", ("GET", "/v1/executions?workflowId=waiting&limit=100"), None, 200);
    let Some(open) = listed["executions"].as_array().unwrap().iter().find(|one| one["completedAt"].is_null())
    else {
        return false;
    };
    let path = format!("/v1/executions/{}/events", open["executionId"].as_str().unwrap());
    ask(server, "eve", "POST", &path, Some(json!({"name": "go"}))).status < 300
}

#[test]
fn the_limits_of_a_tree_hold_over_a_kill_and_a_full_tree_fails_its_step() {
    let place = place(3, 8);
    let server = serve(&place, &people());
    store(&server, &waiting());
    let items: Vec<usize> = (0..10).collect();
    store(&server, &forks("root", "waiting", 10, json!({"forEach": {"items": items, "concurrency": 10}})));
    let id = start(&server, "root");
    let still_waits =
        |server: &Server| assert!((0..20).all(|_| get(server, &id)["steps"]["fork"]["status"] == "running"));
    until(&place, LIVE_CHILDREN, |live| live == 3);
    still_waits(&server);
    assert_eq!(count(&place, CHILDREN), 3);
    server.kill();
    let server = Server::start(&place, &[]);
    still_waits(&server);
    assert_eq!((count(&place, CHILDREN), count(&place, LIVE_CHILDREN)), (3, 3), "after the kill");
    // Each end makes room for the next one, until the tree has had as many as it may have.
    for begun in 4..=8 {
        assert!(go(&server));
        until(&place, CHILDREN, |children| children == begun);
        assert!(count(&place, LIVE_CHILDREN) <= 3);
    }
    server.kill();
    let server = Server::start(&place, &[]);
    let since = now();
    while get(&server, &id)["completedAt"].is_null() {
        go(&server);
        assert!(since.elapsed() < Duration::from_secs(120));
    }
    let ended = get(&server, &id);
    let error = &ended["errors"][0];
    assert_eq!(
        (&ended["status"], &error["cause"]),
        (&json!("failed"), &json!("LIMIT_EXCEEDED")),
        "{ended:#}"
    );
    assert_eq!(count(&place, CHILDREN), 8);
}

#[test]
fn trees_that_are_wider_and_deeper_than_the_limits_complete() {
    let place = place(2, 1_000);
    let server = serve(&place, &people());
    store(&server, &echo("leaf"));
    let mut below = String::from("leaf");
    for level in 0..4 {
        let id = format!("level-{level}");
        store(&server, &forks(&id, &below, 3, json!({"forEach": {"items": [1, 2, 3], "concurrency": 3}})));
        below = id;
    }
    let roots: Vec<String> = (0..3).map(|_| start(&server, &below)).collect();
    for root in &roots {
        assert_eq!(end(&server, root)["status"], "completed");
    }
    assert_eq!(count(&place, CHILDREN), 3 * (3 + 9 + 27 + 81));
}
