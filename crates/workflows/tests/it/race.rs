//! Races: the first that completes wins, and the losers are cancelled, also over a restart.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::world::{Desk, World, flow, step, with};

fn race(after: &[&str]) -> Value {
    with(step("r", after, json!({"value": "on"})), json!({"join": "race"}))
}

#[tokio::test]
async fn the_losers_of_a_race_are_stopped_whatever_they_do() {
    let world = World::new().await;
    let child = flow(json!([step("in-child", &[], json!({"hold": true}))]));
    let id = world
        .start(json!([
            step("fast", &[], json!({"hold": true, "value": 1})),
            step("slow", &[], json!({"hold": true, "value": 2})),
            {"id": "timer", "wait": {"durationMs": 3_600_000}},
            {"id": "event", "wait": {"event": "never"}},
            {"id": "ask", "approval": {"message": "?"}},
            {"id": "child", "type": "workflow", "workflow": with(child, json!({"id": "child"}))},
            race(&["fast", "slow", "timer", "event", "ask", "child"]),
        ]))
        .await;
    for held in ["fast", "slow", "in-child"] {
        world.desk.called(held, 1).await;
    }
    world.desk.gate("fast").notify_one();
    let end = world.end(&id).await;
    assert_eq!((&end["status"], &end["outputs"]["r"]), (&json!("completed"), &json!("on")), "{end:#}");
    for lost in ["slow", "timer", "event", "ask", "child"] {
        let step = &end["steps"][lost];
        assert_eq!(
            (&step["status"], &step["skipReason"]),
            (&json!("cancelled"), &json!("Lost the race of 'r' to 'fast'")),
            "{lost}"
        );
    }
    assert_eq!(end["errors"], json!([]));
    let listed = world.ask("executions.list", json!({"workflowId": "child"})).await;
    assert_eq!(listed["executions"][0]["status"], "cancelled", "{listed:#}");
    let open = world.ask("executions.approvals", json!({})).await;
    assert_eq!(open["approvals"], json!([]), "the question is withdrawn");
    let told = world.kinds(&id).await.iter().filter(|kind| *kind == "step-cancelled").count();
    assert_eq!(told, 5);
}

#[tokio::test]
async fn a_loser_that_ran_when_the_server_was_killed_does_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let id = world
        .start(json!([
            step("fast", &[], json!({"hold": true, "value": 1})),
            step("slow", &[], json!({"hold": true, "stubborn": true})),
            race(&["fast", "slow"]),
            step("last", &["r"], json!({"hold": true, "value": 3})),
        ]))
        .await;
    desk.called("fast", 1).await;
    desk.called("slow", 1).await;
    desk.gate("fast").notify_one();
    desk.called("last", 1).await;
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    desk.called("last", 2).await;
    desk.gate("last").notify_one();
    let end = world.end(&id).await;
    assert_eq!(
        (&end["status"], &end["steps"]["slow"]["status"]),
        (&json!("completed"), &json!("cancelled")),
        "{end:#}"
    );
    assert_eq!((desk.count("fast"), desk.count("slow"), desk.count("r")), (1, 1, 1));
}
