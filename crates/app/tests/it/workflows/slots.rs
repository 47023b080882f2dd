//! Step slots on the real program: what waits holds none, a backoff outlives the process, and limits by key do too.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use orchestr8_testing::until;
use serde_json::{Value, json};

use crate::program::Place;
use crate::server::{Http, Server};

/// Answers below this are quick on every machine, however busy; only beyond it medians are compared.
const QUICK: Duration = Duration::from_millis(100);

#[allow(clippy::disallowed_methods, reason = "the time between two calls is what is promised")]
fn now() -> Instant {
    Instant::now()
}

fn start(http: &mut Http, workflow: &Value) -> String {
    let body = json!({"workflow": workflow}).to_string();
    let answer = http.request("POST", "/v1/workflows/execute", "", Some(&body)).unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["executionId"].as_str().unwrap().to_owned()
}

fn workflow(id: &str, steps: Value) -> Value {
    json!({"id": id, "version": "1.0.0", "name": id, "steps": steps})
}

fn hello() -> Value {
    workflow("hello", json!([{"id": "say", "agentId": "@orchestr8/echo", "input": {"text": "hello"}}]))
}

/// Runs hello-world in sync mode; it must complete.
fn greet(http: &mut Http) -> Duration {
    let began = now();
    let body = json!({"workflow": hello()}).to_string();
    let answer = http.request("POST", "/v1/workflows/execute?mode=sync", "", Some(&body)).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    began.elapsed()
}

fn median(http: &mut Http) -> Duration {
    let mut times: Vec<Duration> = (0..31).map(|_| greet(http)).collect();
    times.sort();
    times[times.len() / 2]
}

fn execution(http: &mut Http, id: &str) -> Value {
    http.get(&format!("/v1/executions/{id}")).json()
}

/// The execution once a step has this status.
async fn until_step(http: &mut Http, id: &str, step: &str, status: &str) -> Value {
    let mut now = Value::Null;
    until(&format!("{step} to be {status}"), || {
        now = execution(http, id);
        now["steps"][step]["status"] == status
    })
    .await;
    now
}

/// A server outside that refuses the first call with this `Retry-After` and takes the others; it tells when it is called.
fn reluctant(retry_after_s: u64) -> (SocketAddr, Receiver<Instant>) {
    let (tell, calls) = channel();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let count = std::sync::atomic::AtomicUsize::new(0);
    let state = std::sync::Arc::new((tell, count));
    let take = move || {
        let state = state.clone();
        async move {
            let _ = state.0.send(now());
            let mut headers = HeaderMap::new();
            match state.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => {
                    headers.insert("retry-after", retry_after_s.into());
                    (StatusCode::SERVICE_UNAVAILABLE, headers, "{}")
                }
                _ => (StatusCode::OK, headers, "{\"taken\":true}"),
            }
        }
    };
    let router = Router::new().route("/effect", post(take));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    (address, calls)
}

/// A step that calls it. What may have happened must not be done again, so a backoff must not be taken for that.
fn careful_call(address: SocketAddr) -> Value {
    json!([{"id": "call", "agentId": "@orchestr8/http", "onUnknown": "fail",
        "config": {"method": "POST", "url": format!("http://{address}/effect")}, "input": {"body": {}}}])
}

fn place() -> Place {
    Place::new()
        .with("ORCHESTR8_WORKFLOWS_HTTP_ALLOW_PRIVATE", "true")
        .with("ORCHESTR8_LOGGING_LEVEL", "error")
}

/// WF-19.3: long-running tasks do not block the ready queue.
#[tokio::test]
async fn wf_19_3_executions_that_wait_for_a_worker_leave_the_slots_to_others() {
    let place = place();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let unserved =
        workflow("unserved", json!([{"id": "out", "agentId": "@worker/unserved", "timeout": 3_600_000}]));
    let idle = median(&mut http);
    let mut waiting = Vec::new();
    for wanted in [10, 1000] {
        while waiting.len() < wanted {
            waiting.push(start(&mut http, &unserved));
        }
        until_step(&mut http, waiting.last().unwrap(), "out", "running").await;
        let busy = median(&mut http);
        assert!(
            busy <= (idle * 2).max(QUICK),
            "{wanted} executions wait: hello-world took {busy:?}, and {idle:?} before"
        );
    }
    let queue = http.get("/v1/dashboard/system").json()["queue"].clone();
    assert_eq!(queue["runningSteps"], 0, "{queue:#}");
}

#[tokio::test]
async fn a_step_in_backoff_leaves_its_slot_to_others() {
    let place = place().with("ORCHESTR8_WORKFLOWS_MAX_CONCURRENT_STEPS", "1");
    let (address, calls) = reluctant(30);
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let id = start(&mut http, &workflow("careful", careful_call(address)));
    calls.recv_timeout(crate::program::PATIENCE).unwrap();
    until_step(&mut http, &id, "call", "retrying").await;
    greet(&mut http);
    let now = execution(&mut http, &id);
    assert_eq!(now["steps"]["call"]["status"], "retrying", "the slot came from its backoff: {now:#}");
}

#[tokio::test]
async fn a_backoff_keeps_its_due_time_when_the_server_is_killed() {
    let (place, (address, calls)) = (place(), reluctant(3));
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let id = start(&mut http, &workflow("careful", careful_call(address)));
    let first = calls.recv_timeout(crate::program::PATIENCE).unwrap();
    let before = until_step(&mut http, &id, "call", "retrying").await;
    server.kill();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let after = execution(&mut http, &id);
    if first.elapsed() < Duration::from_secs(3) {
        assert_eq!(after["steps"]["call"]["status"], "retrying", "{after:#}");
        assert_eq!(after["steps"]["call"]["nextRetryAt"], before["steps"]["call"]["nextRetryAt"]);
    }
    let end = http.get(&format!("/v1/executions/{id}?wait=30")).json();
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(end["steps"]["call"]["attempts"], 2, "{end:#}");
    let second = calls.recv_timeout(crate::program::PATIENCE).unwrap();
    let apart = second - first;
    assert!(apart >= Duration::from_millis(2900), "called again after {apart:?}, not after 3 s");
    assert!(calls.try_recv().is_err(), "a third call");
    let journal = http.get(&format!("/v1/executions/{id}/journal?types=step-lost,step-start")).json();
    let kinds: Vec<(&str, u64)> = journal["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["type"].as_str().unwrap(), entry["data"]["attempt"].as_u64().unwrap_or(0)))
        .collect();
    assert_eq!(kinds, [("step-start", 1), ("step-start", 2)], "{journal:#}");
}

#[test]
fn a_rate_limit_counts_starts_of_before_the_server_was_killed() {
    let place = place();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let mut limited = hello();
    limited["id"] = json!("limited");
    limited["policies"] = json!({"rateLimit": {"limit": 1, "perMs": 3_600_000}});
    let first = start(&mut http, &limited);
    let end = http.get(&format!("/v1/executions/{first}?wait=30")).json();
    assert_eq!(end["status"], "completed", "{end:#}");
    server.kill();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let second = start(&mut http, &limited);
    // Whatever could run has run by then.
    greet(&mut http);
    let now = http.get(&format!("/v1/executions/{second}?wait=1")).json();
    assert_eq!(now["status"], "queued", "a second start within the hour: {now:#}");
}

/// A key counts from the start to the end, waiting included, over the death of the server.
#[tokio::test]
async fn concurrency_by_key_is_held_while_an_execution_waits() {
    let place = place();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let mut one = workflow("one", json!([{"id": "w", "wait": {"event": "go"}}]));
    one["policies"] = json!({"concurrency": {"key": "k", "limit": 1}});
    let first = start(&mut http, &one);
    until_step(&mut http, &first, "w", "waiting").await;
    let second = start(&mut http, &one);
    greet(&mut http);
    assert_eq!(execution(&mut http, &second)["status"], "queued");
    server.kill();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let third = start(&mut http, &one);
    greet(&mut http);
    for id in [&second, &third] {
        assert_eq!(execution(&mut http, id)["status"], "queued");
    }
    for (id, next) in [(&first, Some(&second)), (&second, Some(&third)), (&third, None)] {
        until_step(&mut http, id, "w", "waiting").await;
        if let Some(next) = next {
            assert_eq!(execution(&mut http, next)["status"], "queued");
        }
        let signal = format!("/v1/executions/{id}/events");
        let answer = http.request("POST", &signal, "", Some(r#"{"name":"go"}"#)).unwrap();
        assert_eq!(answer.status, 202, "{answer:?}");
        let end = http.get(&format!("/v1/executions/{id}?wait=30")).json();
        assert_eq!(end["status"], "completed", "{end:#}");
    }
}

/// A server with one program, which works in `work`.
fn with_program(script: &str) -> (Place, Server) {
    let place = place();
    place.write("work/readme", "");
    place.write("bin/program.sh", &format!("#!/bin/bash\n{script}\n"));
    let program = place.path().join("bin/program.sh");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let template = json!({"program": program, "directory": place.path().join("work")});
    let config = json!({"workflows": {"exec": {"templates": {"program": template}}}});
    place.write("orchestr8.json", &config.to_string());
    let server = Server::start(&place, &[]);
    (place, server)
}

fn program(more: Value) -> Value {
    let mut step = json!({"id": "run", "agentId": "@orchestr8/exec", "config": {"template": "program"}});
    step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    workflow("program", json!([step]))
}

/// Starts the program, cancels it once it has said that it is there, and gives the end.
async fn cancel_program(place: &Place, server: &Server) -> (Value, Value) {
    let mut http = server.connect();
    let id = start(&mut http, &program(json!({"maxRetries": 0})));
    until("the program to begin", || place.path().join("work/begun").exists()).await;
    let answer = http.request("POST", &format!("/v1/executions/{id}/cancel"), "", Some("{}")).unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
    let end = http.get(&format!("/v1/executions/{id}?wait=30")).json();
    let journal = http
        .get(&format!("/v1/executions/{id}/journal?types=cancellation-complete,cancellation-forced"))
        .json();
    (end, journal["entries"][0].clone())
}

#[tokio::test]
async fn wf_19_4_a_cancelled_execution_has_ended_with_its_program() {
    let clean_up =
        "trap 'sleep 1; echo yes > cleaned; exit 0' TERM; echo 1 > begun; while :; do sleep 0.05; done";
    let (place, server) = with_program(clean_up);
    let (end, entry) = cancel_program(&place, &server).await;
    assert_eq!(end["status"], "cancelled", "{end:#}");
    assert_eq!(place.read("work/cleaned"), "yes\n", "its clean-up ended before the execution did");
    assert_eq!((&entry["type"], &entry["data"]["graceful"]), (&json!("cancellation-complete"), &json!(true)));
    assert_eq!(end["steps"]["run"]["error"]["details"]["forced"], Value::Null, "{end:#}");
}

#[tokio::test]
async fn wf_19_4_a_program_that_had_to_be_killed_is_reported() {
    let (place, server) = with_program("trap '' TERM; echo 1 > begun; while :; do sleep 0.05; done");
    let (end, _) = cancel_program(&place, &server).await;
    assert_eq!(end["status"], "cancelled", "{end:#}");
    let error = &end["steps"]["run"]["error"];
    assert_eq!((&error["code"], &error["details"]["forced"]), (&json!("CANCELLED"), &json!(true)), "{end:#}");
}

#[test]
fn attempts_of_a_program_do_not_overlap_when_one_times_out() {
    // Whatever lives of an attempt holds the lock. The first one takes its time to end.
    let script = "exec 9>lock; flock -n 9 || echo overlap >> overlaps; echo 1 >> begun\n\
                  [ $(wc -l < begun) -gt 1 ] && { echo '\"done\"'; exit 0; }\n\
                  trap 'sleep 1; exit 1' TERM; while :; do sleep 0.05; done";
    let (place, server) = with_program(script);
    let mut http = server.connect();
    let resilience = json!({"maxAttempts": 2, "baseDelayMs": 0, "timeoutMs": 500});
    let id = start(&mut http, &program(json!({"resilience": resilience})));
    let end = http.get(&format!("/v1/executions/{id}?wait=30")).json();
    assert_eq!((&end["status"], &end["outputs"]["run"]), (&json!("completed"), &json!("done")), "{end:#}");
    assert_eq!(place.read("work/begun"), "1\n1\n");
    assert!(!place.path().join("work/overlaps").exists(), "two attempts at once");
}
