//! Everything else that is one action each: what is asked of the action, and what comes back.

use http::Method;
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use crate::world::World;

/// Sends one request and tells the status and what the one action was asked.
async fn asked(method: Method, target: &str, body: Option<Value>, action: &str) -> (u16, Value) {
    let world = World::new();
    world.gives(action, json!({"executionId": "e2", "id": "x", "status": "running"}));
    let headers: &[(&str, &str)] = if body.is_some() { &[("content-type", "application/json")] } else { &[] };
    let answer = world.ask(method, target, headers, body.map(|body| body.to_string())).await;
    assert!(!answer.header("x-correlation-id").is_empty());
    (answer.status.as_u16(), world.heard_once(action).args)
}

#[tokio::test]
async fn each_request_about_an_execution_is_one_action() {
    let post = Method::POST;
    let e1 = json!({"executionId": "e1"});
    for (method, target, body, action, status, args) in [
        (&post, "/v1/executions/e1/cancel", None, "executions.cancel", 202, e1.clone()),
        (
            &post,
            "/v1/executions/e1/cancel",
            Some(json!({"reason": "r", "graceful": false})),
            "executions.cancel",
            202,
            json!({"executionId": "e1", "reason": "r", "graceful": false}),
        ),
        (&post, "/v1/executions/e1/pause", None, "executions.pause", 200, e1.clone()),
        (
            &post,
            "/api/v1/executions/e1/resume",
            Some(json!({"budget": {"steps": 9}})),
            "executions.resume",
            200,
            json!({"executionId": "e1", "budget": {"steps": 9}}),
        ),
        (&post, "/v1/executions/e1/retry", None, "executions.retry", 202, e1.clone()),
        (
            &post,
            "/v1/executions/e1/fork?fromStep=b",
            Some(json!({"inputs": {"n": 1}})),
            "executions.fork",
            202,
            json!({"executionId": "e1", "fromStep": "b", "inputs": {"n": 1}}),
        ),
        (
            &post,
            "/v1/executions/e1/events",
            Some(json!({"name": "paid", "payload": 3, "id": "m1"})),
            "executions.signal",
            202,
            json!({"executionId": "e1", "name": "paid", "payload": 3, "id": "m1"}),
        ),
        (
            &post,
            "/v1/executions/e1/steps/b/resolve",
            Some(json!({"action": "complete", "output": {}})),
            "executions.resolve",
            200,
            json!({"executionId": "e1", "stepId": "b", "action": "complete", "output": {}}),
        ),
        (
            &post,
            "/v1/executions/retry",
            Some(json!({"workflowId": "w", "limit": 5})),
            "executions.retry_many",
            202,
            json!({"workflowId": "w", "limit": 5}),
        ),
    ] {
        let found = asked(method.clone(), target, body, action).await;
        assert_eq!(found, (status, args), "{method} {target}");
    }
}

#[tokio::test]
async fn each_request_about_workflows_is_one_action() {
    let (get, post, put, delete) = (Method::GET, Method::POST, Method::PUT, Method::DELETE);
    for (method, target, body, action, status, args) in [
        (
            &get,
            "/v1/workflows?search=a&limit=2",
            None,
            "workflows.list",
            200,
            json!({"search": "a", "limit": 2}),
        ),
        (
            &put,
            "/v1/workflows",
            Some(json!({"workflow": {}})),
            "workflows.apply",
            201,
            json!({"workflow": {}}),
        ),
        (
            &post,
            "/v1/workflows",
            Some(json!({"workflow": {}})),
            "workflows.apply",
            201,
            json!({"workflow": {}}),
        ),
        (
            &post,
            "/v1/workflows/validate",
            Some(json!({"workflow": {}})),
            "workflows.validate",
            200,
            json!({"workflow": {}}),
        ),
        (&get, "/v1/workflows/w", None, "workflows.show", 200, json!({"id": "w"})),
        (&get, "/v1/workflows/w/revisions/2", None, "workflows.show", 200, json!({"id": "w", "revision": 2})),
        (&delete, "/v1/workflows/w", None, "workflows.delete", 200, json!({"id": "w"})),
        (&get, "/v1/agents", None, "workflows.agents", 200, json!({})),
        (&get, "/v1/dashboard/metrics", None, "workflows.metrics", 200, json!({})),
        (&get, "/v1/dashboard/system", None, "workflows.system", 200, json!({})),
    ] {
        let found = asked(method.clone(), target, body, action).await;
        assert_eq!(found, (status, args), "{method} {target}");
    }
}

#[tokio::test]
async fn schedules_and_workers_are_one_action_each() {
    let (get, post, put, delete) = (Method::GET, Method::POST, Method::PUT, Method::DELETE);
    let nightly = json!({"id": "n", "workflowId": "w", "cron": "0 3 * * *", "timeZone": "Europe/Berlin"});
    let unnamed = json!({"workflowId": "w", "cron": "0 3 * * *", "timeZone": "Europe/Berlin"});
    for (method, target, body, action, status, args) in [
        (&get, "/v1/schedules?limit=9", None, "schedules.list", 200, json!({"limit": 9})),
        (&post, "/v1/schedules", Some(nightly.clone()), "schedules.apply", 200, nightly.clone()),
        (&put, "/v1/schedules", Some(nightly.clone()), "schedules.apply", 200, nightly.clone()),
        (&put, "/v1/schedules/n", Some(unnamed), "schedules.apply", 200, nightly.clone()),
        (&get, "/v1/schedules/n", None, "schedules.show", 200, json!({"id": "n"})),
        (&delete, "/v1/schedules/n", None, "schedules.delete", 200, json!({"id": "n"})),
        (&post, "/v1/schedules/n/pause", None, "schedules.pause", 200, json!({"id": "n"})),
        (&post, "/v1/schedules/n/resume", None, "schedules.resume", 200, json!({"id": "n"})),
        (&post, "/v1/schedules/n/trigger", None, "schedules.trigger", 202, json!({"id": "n"})),
        (
            &post,
            "/v1/workers/gpu/poll",
            Some(json!({"workerId": "me", "waitMs": 1, "limit": 2})),
            "workers.poll",
            200,
            json!({"queue": "gpu", "workerId": "me", "waitMs": 1, "limit": 2}),
        ),
        (
            &post,
            "/v1/tasks/t/complete",
            Some(json!({"leaseToken": "l", "output": 1})),
            "workers.complete",
            200,
            json!({"taskId": "t", "leaseToken": "l", "output": 1}),
        ),
        (
            &post,
            "/v1/tasks/t/fail",
            Some(json!({"leaseToken": "l", "error": {"message": "m"}})),
            "workers.fail",
            200,
            json!({"taskId": "t", "leaseToken": "l", "error": {"message": "m"}}),
        ),
        (
            &post,
            "/v1/tasks/t/heartbeat",
            Some(json!({"leaseToken": "l"})),
            "workers.heartbeat",
            200,
            json!({"taskId": "t", "leaseToken": "l"}),
        ),
    ] {
        let found = asked(method.clone(), target, body, action).await;
        assert_eq!(found, (status, args), "{method} {target}");
    }
    let world = World::new();
    let other = json!({"id": "other", "workflowId": "w", "cron": "0 3 * * *"});
    let headers = [("content-type", "application/json")];
    let answer = world.ask(Method::PUT, "/v1/schedules/n", &headers, Some(other.to_string())).await;
    assert_eq!(answer.error(400), "VALIDATION");
}

#[tokio::test]
async fn cancelling_what_has_ended_is_a_success_with_its_status() {
    let world = World::new();
    world.gives(
        "executions.cancel",
        json!({"executionId": "e1", "status": "completed", "graceful": true, "alreadyFinal": true, "message": "It had completed."}),
    );
    let answer = world.post("/v1/executions/e1/cancel", json!({})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!({"executionId": "e1", "status": "completed", "graceful": true, "message": "It had completed."})
    );
}

#[tokio::test]
async fn what_began_is_pointed_to_and_what_is_stored_already_is_200() {
    let world = World::new();
    world.gives("executions.fork", json!({"executionId": "e2", "status": "running", "forkedFrom": "e1"}));
    let answer = world.post("/api/v1/executions/e1/fork?fromStep=b", json!({})).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (202, "/api/v1/executions/e2"));
    for missing in ["/v1/executions/e1/fork", "/v1/executions/e1/fork?fromStep="] {
        assert_eq!(world.post(missing, json!({})).await.error(400), "VALIDATION");
    }
    world.gives("workflows.apply", json!({"id": "w", "revision": 1, "unchanged": true}));
    let answer = world.post("/v1/workflows", json!({"workflow": {}})).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (200, "/v1/workflows/w"));
}

#[tokio::test]
async fn every_post_can_be_repeated_safely_with_a_key() {
    let world = World::new();
    world.gives("executions.signal", json!({"executionId": "e1", "accepted": true}));
    let send = async || {
        let headers = [("idempotency-key", "k1")];
        world.post_with("/v1/executions/e1/events", &headers, json!({"name": "paid"})).await
    };
    let (first, again) = (send().await, send().await);
    assert_eq!((first.text.as_str(), again.header("idempotency-replayed")), (again.text.as_str(), "true"));
    world.heard_once("executions.signal");
}

#[tokio::test]
async fn a_worker_that_leaves_is_given_nothing() {
    let world = std::sync::Arc::new(World::new());
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    world.on_later("workers.poll", move |_, context| {
        let tell = tell.clone();
        async move {
            tell.send("waiting").unwrap();
            context.cancel.fired().await;
            tell.send("stopped").unwrap();
            Err(Fault::new(Code::Cancelled, "nobody waits"))
        }
    });
    let client = tokio::spawn({
        let world = world.clone();
        async move { world.post("/v1/workers/q/poll", json!({"workerId": "w"})).await }
    });
    assert_eq!(told.recv().await, Some("waiting"));
    client.abort();
    assert_eq!(told.recv().await, Some("stopped"));
}
