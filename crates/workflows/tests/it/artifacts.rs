//! Results that are kept as artifacts: larger than an output, bound to their tenant, deleted with their execution.

use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{AccessRole, Code, RoleSet, canonical};
use orchestr8_kernel::ports::store::{Batch, Statement};
use orchestr8_kernel::{Halt, Principal};
use orchestr8_workflows::limits::{ARTIFACT_BYTES, OUTPUT_BYTES};
use serde_json::{Value, json};

use crate::world::{Desk, World, step, with};

fn kept(id: &str, after: &[&str], input: Value) -> Value {
    with(step(id, after, input), json!({"output": "artifact", "resilience": {"maxAttempts": 1}}))
}

async fn read(world: &World, execution: &str, output: &Value) -> Value {
    let args = json!({"executionId": execution, "artifactId": output["$artifact"]});
    world.ask("executions.artifact", args).await
}

#[tokio::test]
async fn a_result_beyond_the_limit_of_outputs_is_kept_as_an_artifact_of_its_tenant() {
    let world = World::new().await;
    let size = OUTPUT_BYTES * 2;
    let id = world
        .start(json!([
            kept("big", &[], json!({"size": size})),
            kept("small", &[], json!({"value": {"n": 1}})),
            step("after", &["big"], json!({"value": "${steps.big.output.size}"})),
        ]))
        .await;
    let end = world.end(&id).await;
    assert_eq!((&end["status"], &end["outputs"]["after"]), (&json!("completed"), &json!(size)), "{end:#}");
    let big = &end["outputs"]["big"];
    let text = "x".repeat(size);
    assert_eq!((&big["sha256"], &big["size"]), (&json!(canonical::sha256_hex_of(&text)), &json!(size)));
    assert_eq!(read(&world, &id, big).await["body"], text);
    let small = read(&world, &id, &end["outputs"]["small"]).await;
    assert_eq!((&small["contentType"], &small["body"]), (&json!("application/json"), &json!("{\"n\":1}")));
    let mut theirs =
        world.submission("executions.artifact", json!({"executionId": id, "artifactId": big["$artifact"]}));
    let roles = RoleSet::of(&[AccessRole::Owner]);
    theirs.principal = Arc::new(Principal::new("eve", Tenant::parse("rival").unwrap(), roles));
    match world.kernel.submit(theirs).await.result {
        Err(Halt::Fault(fault)) => assert_eq!(fault.code, Code::NotFound),
        other => panic!("{other:?}"),
    }
    // However its execution is deleted, an artifact goes with it.
    let mut batch = Batch::new();
    batch.then(Statement::new("DELETE FROM wf_executions", Vec::new()));
    let store = &world.kernel.ports().store;
    store.commit(batch).await.unwrap();
    let left = store.query(Statement::new("SELECT COUNT(*) FROM wf_artifacts", Vec::new())).await.unwrap();
    assert_eq!(left[0].int(0).unwrap(), 0);
}

#[tokio::test]
async fn an_artifact_has_a_limit_and_a_plain_output_keeps_its_own() {
    let world = World::new().await;
    for (step, limit) in [
        (kept("a", &[], json!({"size": ARTIFACT_BYTES - 1})), ARTIFACT_BYTES),
        (with(kept("a", &[], json!({"size": OUTPUT_BYTES})), json!({"output": "inline"})), OUTPUT_BYTES),
    ] {
        let end = world.run(json!([step])).await;
        let error = &end["errors"][0];
        assert_eq!(
            (&error["code"], &error["details"]["limit"]),
            (&json!("PAYLOAD_TOO_LARGE"), &json!(limit)),
            "{end:#}"
        );
    }
    // With its two quotes the text is exactly at the limit.
    let end = world.run(json!([kept("a", &[], json!({"size": ARTIFACT_BYTES - 2}))])).await;
    assert_eq!(end["status"], "completed", "{end:#}");
}

#[tokio::test]
async fn an_artifact_survives_a_kill_and_its_step_does_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let steps = json!([
        kept("a", &[], json!({"size": 600_000})),
        step("b", &["a"], json!({"hold": true, "value": 1}))
    ]);
    let id = world.start(steps).await;
    desk.called("b", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("b", 2).await;
    desk.gate("b").notify_one();
    let end = world.end(&id).await;
    assert_eq!(read(&world, &id, &end["outputs"]["a"]).await["body"].as_str().unwrap().len(), 600_000);
    assert_eq!(desk.count("a"), 1);
}
