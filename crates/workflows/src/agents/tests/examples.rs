//! The example worker does real work over real HTTP.

use std::process::Stdio;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use orchestr8_contract::id::Tenant;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use uuid::Uuid;

use super::super::workers::{Failure, HeldTask, QueueKey};
use super::super::{Usage, Workers};
use super::world::World;

type Answered = Result<Json<Value>, StatusCode>;

/// The worker protocol over these queues, in as few lines as it takes.
async fn serve(workers: Workers) -> String {
    let router = Router::new()
        .route("/v1/workers/{queue}/poll", post(poll))
        .route("/v1/tasks/{id}/{what}", post(answer))
        .with_state(workers);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

async fn poll(
    State(workers): State<Workers>,
    Path(queue): Path<String>,
    Json(body): Json<Value>,
) -> Answered {
    let wait = Duration::from_millis(body["waitMs"].as_u64().unwrap());
    let tasks = workers
        .poll(
            QueueKey { tenant: Tenant::local(), name: queue.into() },
            body["workerId"].as_str().unwrap(),
            wait,
            1,
        )
        .await
        .unwrap();
    let shown = tasks.iter().map(|task| {
        json!({"taskId": task.id, "leaseToken": task.lease_token, "leaseMs": task.lease_ms, "input": task.call.input,
               "executionId": &*task.call.execution, "stepId": &*task.call.step})
    });
    Ok(Json(json!({"tasks": shown.collect::<Vec<_>>()})))
}

async fn answer(
    State(workers): State<Workers>,
    Path((id, what)): Path<(Uuid, String)>,
    Json(body): Json<Value>,
) -> Answered {
    let (token, error) = (body["leaseToken"].as_str().unwrap(), &body["error"]);
    let tenant = Tenant::local();
    let held = HeldTask { tenant: &tenant, id, token };
    let answered = match what.as_str() {
        "complete" => workers.complete(&held, body["output"].clone(), Usage::default()).map(|_| json!({})),
        "fail" => {
            let failure = Failure {
                message: error["message"].as_str().unwrap().to_owned(),
                code: error["code"].as_str().map(str::to_owned),
                retryable: error["retryable"].as_bool().unwrap(),
            };
            workers.fail(&held, failure).map(|_| json!({}))
        }
        "heartbeat" => workers.heartbeat(&held).map(|cancelled| json!({"cancelled": cancelled})),
        _ => return Err(StatusCode::BAD_REQUEST),
    };
    answered.map(Json).map_err(|_| StatusCode::NOT_FOUND)
}

fn start(url: &str) -> Child {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workers/worker.py");
    Command::new("python3")
        .args([program, "--queue", "shout", "--url", url])
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("python3 runs the example")
}

#[tokio::test]
async fn the_python_worker_completes_and_fails_tasks() {
    let world = World::new();
    let _worker = start(&serve(world.workers.clone()).await);
    let done = world.output("@worker/shout", json!({"text": "hi"})).await.unwrap();
    assert_eq!(done, json!({"text": "HI!"}));
    let fault = world.output("@worker/shout", json!({"text": 5})).await.unwrap_err();
    assert_eq!(
        (fault.message.as_ref(), &fault.details.unwrap()["workerCode"]),
        ("text must be a text", &json!("ValueError"))
    );
    let fault = world.output("@worker/shout", json!({})).await.unwrap_err();
    assert_eq!(fault.details.unwrap()["workerCode"], "KeyError");
}
