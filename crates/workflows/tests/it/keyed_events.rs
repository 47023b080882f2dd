//! Events that are sent to a business key.

use std::sync::Arc;

use futures::future::join_all;
use orchestr8_contract::Code;
use serde_json::{Value, json};

use crate::world::{Desk, World};

/// Waits for a payment of its order, twice if it is told so.
fn order() -> Value {
    json!({"id": "order", "version": "1.0.0", "name": "Order", "variables": {"order": null}, "steps": [
        {"id": "paid", "wait": {"event": "paid", "key": "order-${variables.order}"}},
        {"id": "again", "wait": {"event": "paid", "key": "order-${variables.order}"}, "dependsOn": ["paid"], "if": "${variables.order} == 2"}]})
}

async fn start(world: &World, number: u32) -> String {
    let id = world.start_whole(order(), json!({"order": number})).await;
    world.until_true(&id, |shown| shown["steps"]["paid"]["status"] == "waiting").await;
    id
}

fn paid(number: u32, id: &str) -> Value {
    json!({"name": "paid", "key": format!("order-{number}"), "payload": {"amount": number}, "id": id})
}

#[tokio::test]
async fn an_event_goes_to_the_execution_that_waits_for_its_key() {
    let world = World::new().await;
    let (first, other) = (start(&world, 1).await, start(&world, 3).await);
    let sent = world.ask("events.send", paid(1, "p1")).await;
    assert_eq!((&sent["executions"], &sent["kept"]), (&json!([first]), &json!(false)), "{sent}");
    let ended = world.end(&first).await;
    let output = &ended["outputs"]["paid"];
    assert_eq!(
        (&output["event"], &output["key"], &output["payload"]),
        (&json!("paid"), &json!("order-1"), &json!({"amount": 1}))
    );
    let shown = world.ask("executions.get", json!({"executionId": other})).await;
    assert_eq!(shown["steps"]["paid"]["status"], "waiting");
    let again = world.ask("events.send", paid(1, "p1")).await;
    assert_eq!((&again["duplicate"], &again["executions"]), (&json!(true), &json!([first])), "{again}");
    let mut changed = paid(1, "p1");
    changed["payload"] = json!(2);
    assert_eq!(world.refused("events.send", changed).await.code, Code::StateConflict);
    // An event to the execution itself does not meet the key.
    world.ask("executions.signal", json!({"executionId": other, "name": "paid"})).await;
    world.ask("events.send", paid(3, "p3")).await;
    assert_eq!(world.end(&other).await["outputs"]["paid"]["payload"], json!({"amount": 3}));
}

#[tokio::test]
async fn an_event_that_comes_first_is_kept_and_taken_once() {
    let world = World::new().await;
    let sent = world.ask("events.send", paid(2, "early")).await;
    assert_eq!((&sent["executions"], &sent["kept"]), (&json!([]), &json!(true)), "{sent}");
    assert_eq!(world.ask("events.send", paid(2, "early")).await["duplicate"], true);
    let id = world.start_whole(order(), json!({"order": 2})).await;
    let shown = world.until_true(&id, |shown| shown["steps"]["again"]["status"] == "waiting").await;
    assert_eq!(shown["outputs"]["paid"]["payload"], json!({"amount": 2}), "{shown}");
    world.ask("events.send", paid(2, "late")).await;
    assert_eq!(world.end(&id).await["status"], "completed");
    let short = json!({"name": "paid", "key": "order-9", "keepMs": 1});
    world.ask("events.send", short).await;
    let id = world.start_whole(order(), json!({"order": 9})).await;
    world.until_true(&id, |shown| shown["steps"]["paid"]["status"] == "waiting").await;
}

#[tokio::test]
async fn one_event_goes_to_the_oldest_or_to_all() {
    let world = World::new().await;
    let ids = [start(&world, 5).await, start(&world, 5).await, start(&world, 5).await];
    let sent = world.ask("events.send", paid(5, "one")).await;
    assert_eq!(sent["executions"], json!([ids[0]]), "{sent}");
    let mut all = paid(5, "all");
    all["to"] = json!("all");
    assert_eq!(world.ask("events.send", all).await["executions"], json!([ids[1], ids[2]]));
    for id in ids {
        assert_eq!(world.end(&id).await["status"], "completed");
    }
}

#[tokio::test]
async fn many_events_of_one_key_at_once_each_find_an_execution_or_are_kept() {
    let world = World::new().await;
    let ids = [start(&world, 6).await, start(&world, 6).await];
    let sent = join_all((0..5).map(|number| world.ask("events.send", paid(6, &format!("e{number}"))))).await;
    let told: Vec<&Value> = sent.iter().flat_map(|one| one["executions"].as_array().unwrap()).collect();
    assert_eq!((told.len(), sent.iter().filter(|one| one["kept"] == true).count()), (2, 3));
    assert_ne!(told[0], told[1]);
    for id in ids {
        world.end(&id).await;
    }
    for _ in 0..3 {
        let id = world.start_whole(order(), json!({"order": 6})).await;
        assert_eq!(world.end(&id).await["status"], "completed");
    }
}

#[tokio::test]
async fn an_execution_that_stopped_waiting_takes_nothing_from_the_next() {
    let world = World::new().await;
    let (cancelled, next) = (start(&world, 7).await, start(&world, 7).await);
    world.ask("executions.cancel", json!({"executionId": cancelled})).await;
    world.end(&cancelled).await;
    assert_eq!(world.ask("events.send", paid(7, "p")).await["executions"], json!([next]));
}

#[tokio::test]
async fn kept_events_and_waits_survive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Arc::<Desk>::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let waiting = start(&world, 1).await;
    world.ask("events.send", paid(4, "kept")).await;
    world.die().await;
    let world = World::at(folder.path(), desk).await;
    assert_eq!(world.ask("events.send", paid(1, "p1")).await["executions"], json!([waiting]));
    assert_eq!(world.end(&waiting).await["status"], "completed");
    assert_eq!(world.ask("events.send", paid(4, "kept")).await["duplicate"], true);
    let id = world.start_whole(order(), json!({"order": 4})).await;
    assert_eq!(world.end(&id).await["outputs"]["paid"]["payload"], json!({"amount": 4}));
    world.die().await;
}

#[tokio::test]
async fn what_is_no_key_is_refused() {
    let world = World::new().await;
    let id = world.start_whole(order(), json!({"order": "x".repeat(600)})).await;
    assert_eq!(world.end(&id).await["status"], "failed");
    for wrong in
        [json!({"name": "paid", "key": ""}), json!({"name": "a\u{1f}b", "key": "k"}), json!({"name": "paid"})]
    {
        assert_eq!(world.refused("events.send", wrong).await.code, Code::InvalidArgument);
    }
    let large = json!({"name": "paid", "key": "k", "payload": "x".repeat(65_536)});
    assert_eq!(world.refused("events.send", large).await.code, Code::PayloadTooLarge);
}
