//! POST /workflows/execute: modes, keys, correlation, limits (ADR-003, ADR-015, WF-19.9).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orchestr8_contract::{Code, Fault};
use orchestr8_workflows_face::Settings;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::world::{World, accepted, execution, workflow};

const EXECUTE: &str = "/v1/workflows/execute";
const SYNC: &str = "/v1/workflows/execute?mode=sync";

fn world() -> World {
    let world = World::new();
    world.gives("workflows.execute", accepted());
    world
}

#[tokio::test]
async fn asynchronous_by_default_adr_015() {
    let world = world();
    for (target, url) in [
        (EXECUTE, "/v1/executions/e1"),
        ("/v1/workflows/execute?mode=async", "/v1/executions/e1"),
        ("/api/v1/workflows/execute", "/api/v1/executions/e1"),
    ] {
        let answer = world.post(target, workflow()).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        assert_eq!((answer.header("location"), answer.header("retry-after")), (url, "5"));
        let body = answer.json();
        assert_eq!(
            (&body["executionId"], &body["status"], &body["checkUrl"]),
            (&json!("e1"), &json!("running"), &json!(url))
        );
        assert!(body["message"].is_string());
    }
    assert_eq!(
        world.heard()[0].args,
        workflow(),
        "the body is the arguments, and the mode is no part of them"
    );
}

#[tokio::test]
async fn the_next_look_is_put_off_when_the_queue_is_long_adr_003() {
    let world = world();
    for (depth, seconds) in [(0, "5"), (100, "10"), (100_000, "60")] {
        let mut queued = accepted();
        queued["queueDepth"] = depth.into();
        queued["status"] = "queued".into();
        world.gives("workflows.execute", queued);
        let answer = world.post(EXECUTE, workflow()).await;
        assert_eq!((answer.header("retry-after"), &answer.json()["status"]), (seconds, &json!("queued")));
    }
}

#[tokio::test]
async fn synchronous_gives_the_outputs_adr_015() {
    let world = world();
    world.gives("executions.get", execution("completed"));
    let answer = world.post(SYNC, workflow()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(
        answer.json(),
        json!({
            "executionId": "e1", "status": "completed", "outputs": {"a": {"n": 1}}, "duration": 9,
            "timestamp": "2026-01-01T00:00:00.010Z",
        })
    );
    let asked = world.heard_once("executions.get").args;
    assert_eq!((&asked["executionId"], &asked["until"]), (&json!("e1"), &json!("final")));
    assert!((29_000..=30_000).contains(&asked["waitMs"].as_u64().unwrap()), "{asked}");
}

#[tokio::test]
async fn a_failed_or_cancelled_execution_is_not_a_fault_of_the_server() {
    let world = world();
    let mut failed = execution("failed");
    failed["errors"] = json!([{
        "stepId": "a", "code": "UNAVAILABLE", "message": "no route", "isRetryable": true, "details": {"host": "h"},
    }]);
    world.gives("executions.get", failed);
    let answer = world.post(SYNC, workflow()).await;
    assert_eq!(answer.error(422), "RETRYABLE");
    let body = answer.json();
    assert_eq!((&body["executionId"], &body["error"]["cause"]), (&json!("e1"), &json!("UNAVAILABLE")));
    assert_eq!(body["error"]["isRetryable"], true);
    let details = &body["error"]["details"];
    assert_eq!(
        (&details["stepId"], &details["host"], &details["checkUrl"]),
        (&json!("a"), &json!("h"), &json!("/v1/executions/e1"))
    );
    assert_eq!(details["errors"][0]["code"], "RETRYABLE");
    assert_eq!(answer.header("location"), "/v1/executions/e1");

    world.gives("executions.get", execution("cancelled"));
    let answer = world.post(SYNC, workflow()).await;
    assert_eq!(answer.error(409), "CANCELLED");
    assert_eq!(answer.json()["executionId"], "e1");
}

#[tokio::test]
async fn at_the_cap_the_client_is_pointed_to_the_execution_adr_015() {
    let world = World::with(Settings { sync_limit_ms: 40, ..Settings::new("1") });
    world.gives("workflows.execute", accepted());
    world.on_later("executions.get", |args, context| async move {
        // A domain that gives up waiting early is asked again for what is left.
        let half_ms = args["waitMs"].as_u64().unwrap().div_ceil(2);
        context.kernel.ports().clock.sleep(std::time::Duration::from_millis(half_ms)).await;
        Ok(execution("running"))
    });
    let answer = world.post(SYNC, workflow()).await;
    assert_eq!(answer.error(504), "TIMEOUT");
    assert_eq!((answer.header("location"), answer.header("retry-after")), ("/v1/executions/e1", "10"));
    let details = &answer.json()["error"]["details"];
    assert_eq!((&details["executionId"], &details["checkUrl"]), (&json!("e1"), &json!("/v1/executions/e1")));
    assert!(details["elapsedTime"].as_u64().unwrap() >= 40, "{details}");
    assert!(world.heard().iter().filter(|heard| heard.action == "executions.get").count() >= 2);
}

#[tokio::test]
async fn a_large_result_is_pointed_to_and_never_cut_adr_015() {
    let world = world();
    let mut large = execution("completed");
    large["outputs"] = json!({"a": "x".repeat(1_048_576)});
    world.gives("executions.get", large);
    let answer = world.post(SYNC, workflow()).await;
    assert_eq!(answer.error(413), "PAYLOAD_TOO_LARGE");
    let body = answer.json();
    assert_eq!(body["error"]["details"]["checkUrl"], "/v1/executions/e1");
    assert_eq!((&body["executionId"], answer.header("location")), (&json!("e1"), "/v1/executions/e1"));
}

#[tokio::test]
async fn a_repeat_of_a_key_gets_the_first_answer_adr_003() {
    let world = World::new();
    let count = AtomicU64::new(0);
    world.on("workflows.execute", move |_| {
        let mut given = accepted();
        given["executionId"] = format!("e{}", count.fetch_add(1, Ordering::SeqCst) + 1).into();
        Ok(given)
    });
    let key = [("idempotency-key", "order-1")];
    let first = world.post_with(EXECUTE, &key, workflow()).await;
    let again = world.post_with(EXECUTE, &key, workflow()).await;
    assert_eq!((first.status, again.status, &first.text), (again.status, first.status, &again.text));
    assert_eq!((first.header("idempotency-replayed"), again.header("idempotency-replayed")), ("", "true"));
    assert_eq!(
        (first.header("location"), again.header("location")),
        ("/v1/executions/e1", "/v1/executions/e1")
    );

    world.on("executions.get", |args| {
        let mut found = execution("completed");
        found["executionId"] = args["executionId"].clone();
        Ok(found)
    });
    let sync = world.post_with(SYNC, &key, workflow()).await;
    assert_eq!(
        (sync.status.as_u16(), &sync.json()["executionId"]),
        (200, &json!("e1")),
        "the mode is no part of it"
    );
    assert_eq!(sync.header("idempotency-replayed"), "true");

    let other = world.post_with(EXECUTE, &key, json!({"workflowId": "w"})).await;
    assert_eq!(other.error(409), "IDEMPOTENCY_KEY_CONFLICT");
    let without = world.post(EXECUTE, workflow()).await;
    assert_eq!(without.json()["executionId"], "e2");
    world.heard_once("executions.get");
}

#[tokio::test]
async fn a_failed_outcome_is_repeated_as_it_was() {
    let world = World::new();
    let problem = json!({"path": "/steps/0/agentId", "message": "missing", "hint": "name an agent", "code": "required"});
    let fault = Fault::new(Code::InvalidWorkflow, "1 problem").with("problems", json!([problem]));
    world.fails("workflows.execute", fault);
    let key = [("idempotency-key", "k"), ("x-correlation-id", "mine")];
    let first = world.post_with(EXECUTE, &key, workflow()).await;
    assert_eq!(first.error(400), "VALIDATION");
    let error = &first.json()["error"];
    assert_eq!((&error["cause"], &error["details"]["problems"][0]), (&json!("INVALID_WORKFLOW"), &problem));
    let again = world.post_with(EXECUTE, &key, workflow()).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!((again.status, &again.json()["error"]), (first.status, error));
    world.heard_once("workflows.execute");
}

#[tokio::test]
async fn sixty_four_at_once_under_one_key_are_one_execution() {
    let world = Arc::new(World::new());
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    world.on_later("workflows.execute", move |_, _| {
        let held = held.clone();
        async move {
            held.acquire().await.unwrap().forget();
            Ok(accepted())
        }
    });
    let asks = (0..64).map(|_| {
        let world = world.clone();
        tokio::spawn(async move { world.post_with(EXECUTE, &[("idempotency-key", "one")], workflow()).await })
    });
    let asks: Vec<_> = asks.collect();
    gate.add_permits(64);
    let mut replayed = 0;
    for ask in asks {
        let answer = ask.await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.header("location")), (202, "/v1/executions/e1"));
        replayed += usize::from(answer.header("idempotency-replayed") == "true");
    }
    assert_eq!(replayed, 63);
    world.heard_once("workflows.execute");
}

#[tokio::test]
async fn correlation_comes_in_and_goes_out() {
    let world = world();
    let answer = world.post_with(EXECUTE, &[("x-correlation-id", "req-7")], workflow()).await;
    assert_eq!(
        (answer.header("x-correlation-id"), world.heard()[0].correlation.as_str()),
        ("req-7", "req-7")
    );
    // The body's own id is meant for the execution.
    let mut body = workflow();
    body["context"] = json!({"correlationId": "order 42"});
    let answer = world.post_with(EXECUTE, &[("x-correlation-id", "req-7")], body.clone()).await;
    assert_eq!(
        (answer.header("x-correlation-id"), world.heard()[1].correlation.as_str()),
        ("order 42", "order 42")
    );
    world.fails("workflows.execute", Fault::new(Code::NotFound, "no such workflow"));
    let answer = world.post(EXECUTE, body.clone()).await;
    assert_eq!((answer.error(404).as_str(), answer.header("x-correlation-id")), ("NOT_FOUND", "order 42"));
    for wrong in [json!(""), json!(7), json!("x".repeat(300))] {
        body["context"]["correlationId"] = wrong;
        let answer = world.post(EXECUTE, body.clone()).await;
        assert_eq!(answer.error(400), "VALIDATION");
        assert_eq!(answer.json()["error"]["details"]["errors"][0]["path"], "/context/correlationId");
    }
    // One that is not fit to be repeated is replaced.
    let answer = world.post_with(EXECUTE, &[("x-correlation-id", "two words")], workflow()).await;
    assert_eq!(answer.header("x-correlation-id").len(), 36);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_with_its_path() {
    let world = world();
    let path = |answer: &crate::world::Answer| answer.json()["error"]["details"]["errors"][0]["path"].clone();
    for (target, body, expected) in [
        (EXECUTE, json!({"workflow": {}, "workflw": 1}), "/workflw"),
        (EXECUTE, json!({}), "/"),
        (EXECUTE, json!({"workflow": {}, "workflowId": "w"}), "/"),
        (EXECUTE, json!([]), "/"),
        ("/v1/workflows/execute?mode=later", workflow(), "?mode"),
        ("/v1/workflows/execute?made=sync", workflow(), "?made"),
    ] {
        let answer = world.post(target, body).await;
        assert_eq!(answer.error(400), "VALIDATION");
        assert_eq!(path(&answer), Value::from(expected), "{}", answer.text);
    }
    for wrong in ["two words", "a/b", "", &"x".repeat(256)] {
        let answer = world.post_with(EXECUTE, &[("idempotency-key", wrong)], workflow()).await;
        assert_eq!(
            (answer.error(400).as_str(), path(&answer)),
            ("VALIDATION", json!("Idempotency-Key")),
            "{wrong}"
        );
    }
    assert!(world.heard().is_empty(), "nothing wrong reaches the domain");
}

#[tokio::test]
async fn a_client_that_leaves_does_not_stop_the_execution() {
    let world = Arc::new(World::new());
    let (begun, ended) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (gate, let_go) = (Arc::new(Semaphore::new(0)), ended.clone());
    let (held, started) = (gate.clone(), begun.clone());
    world.on_later("workflows.execute", move |_, context| {
        let (held, started, let_go) = (held.clone(), started.clone(), let_go.clone());
        async move {
            started.add_permits(1);
            held.acquire().await.unwrap().forget();
            assert!(!context.cancel.is_fired());
            let_go.add_permits(1);
            Ok(accepted())
        }
    });
    let client = tokio::spawn({
        let world = world.clone();
        async move { world.post(SYNC, workflow()).await }
    });
    begun.acquire().await.unwrap().forget();
    client.abort();
    assert!(client.await.is_err());
    gate.add_permits(1);
    ended.acquire().await.unwrap().forget();
}
