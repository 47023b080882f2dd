//! Steps done by workers outside: taken, kept alive, ended once; nothing is acknowledged before it is on record.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::world::{Desk, World};

fn step() -> Value {
    json!([{"id": "out", "type": "agent", "agentId": "@worker/mail", "input": {"to": "ada"}}])
}

async fn poll(world: &World) -> Value {
    let polled =
        world.ask("workers.poll", json!({"queue": "mail", "workerId": "w1", "waitMs": 10_000})).await;
    polled["tasks"][0].clone()
}

#[tokio::test]
async fn a_worker_takes_a_task_and_its_output_is_recorded_before_it_is_told() {
    let world = World::new().await;
    let id = world.start(step()).await;
    let task = poll(&world).await;
    assert_eq!(
        (&task["input"], &task["idempotencyKey"]),
        (&json!({"to": "ada"}), &json!(format!("{id}:out")))
    );
    let lease = json!({"taskId": task["taskId"], "leaseToken": task["leaseToken"]});
    assert_eq!(world.ask("workers.heartbeat", lease.clone()).await["cancelled"], false);
    let mut done = lease;
    done["output"] = json!({"sent": true});
    world.ask("workers.complete", done.clone()).await;
    let now = world.ask("executions.get", json!({"executionId": id})).await;
    assert_eq!(now["outputs"]["out"]["sent"], true, "it was acknowledged, so it is there");
    assert_eq!(world.refused("workers.complete", done).await.code.as_str(), "NOT_FOUND");
}

#[tokio::test]
async fn a_task_that_was_out_when_the_process_died_comes_again_under_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let id = world.start(step()).await;
    let first = poll(&world).await;
    world.die().await;
    let world = World::at(folder.path(), desk).await;
    let again = poll(&world).await;
    assert_eq!(first["idempotencyKey"], again["idempotencyKey"]);
    assert_eq!(first["attempt"], again["attempt"]);
    let done = json!({"taskId": again["taskId"], "leaseToken": again["leaseToken"], "output": 1});
    world.ask("workers.complete", done).await;
    assert_eq!(world.end(&id).await["outputs"]["out"], 1);
}

#[tokio::test]
async fn a_worker_that_fails_says_whether_another_try_may_help() {
    let world = World::new().await;
    let id = world.start(step()).await;
    let task = poll(&world).await;
    let fail = |task: &Value, retryable: bool| {
        json!({"taskId": task["taskId"], "leaseToken": task["leaseToken"],
               "error": {"message": "no luck", "retryable": retryable}})
    };
    world.ask("workers.fail", fail(&task, true)).await;
    assert!(world.kinds(&id).await.contains(&"step-retry".to_owned()), "it was acknowledged, so it is there");
    let task = poll(&world).await;
    assert_eq!(task["attempt"], 2);
    world.ask("workers.fail", fail(&task, false)).await;
    let end = world.end(&id).await;
    assert_eq!(
        (end["status"].as_str(), end["steps"]["out"]["error"]["message"].as_str()),
        (Some("failed"), Some("no luck"))
    );
}
