//! Workflows that start when something happens in another execution.

use std::sync::Arc;

use orchestr8_contract::Code;
use serde_json::{Value, json};

use crate::world::{Desk, World, step};

/// A workflow of one step, which gives its input back.
fn echo(id: &str, input: &Value) -> Value {
    json!({"id": id, "version": "1.0.0", "name": id, "variables": {"of": null, "fail": null},
           "steps": [step(&format!("{id}-step"), &[], input.clone())]})
}

async fn prepared(world: &World, event: Value, inputs: Value) {
    for workflow in [
        echo("order", &json!({"fail": "${variables.fail}", "value": 1})),
        echo("alert", &json!({"value": "${variables.of}"})),
    ] {
        world.ask("workflows.apply", json!({"workflow": workflow})).await;
    }
    let trigger = json!({"id": "alerts", "workflowId": "alert", "event": event, "inputs": inputs});
    let shown = world.ask("triggers.apply", trigger).await;
    assert_eq!((&shown["url"], &shown["webhook"]), (&json!(null), &json!(null)), "{shown}");
}

async fn run(world: &World, fail: Value) -> String {
    let inputs = if fail.is_null() { json!({}) } else { json!({"fail": fail}) };
    let args = json!({"workflowId": "order", "inputs": inputs});
    let id = world.ask("workflows.execute", args).await["executionId"].as_str().unwrap().to_owned();
    world.end(&id).await;
    id
}

#[tokio::test]
async fn a_failed_execution_starts_another_workflow_once_if_the_filter_holds() {
    let world = World::new().await;
    let event = json!({"types": ["workflow.failed"], "filter": "${event.workflowId} == 'order'"});
    prepared(&world, event, json!({"of": "${event.executionId}"})).await;
    run(&world, Value::Null).await;
    let failed = run(&world, json!("NOT_FOUND")).await;
    world.desk.called("alert-step", 1).await;
    let seen = world.desk.inputs.lock().iter().filter(|input| input["value"] == json!(failed)).count();
    assert_eq!(seen, 1);
    let shown = world.ask("triggers.show", json!({"id": "alerts"})).await;
    assert_eq!((&shown["started"], &shown["deliveries"]), (&json!(1), &json!(1)), "{shown}");
}

#[tokio::test]
async fn what_happened_before_it_was_stored_and_while_it_was_paused_starts_nothing() {
    let world = World::new().await;
    let order = echo("order", &json!({"fail": "${variables.fail}", "value": 1}));
    world.ask("workflows.apply", json!({"workflow": order})).await;
    run(&world, Value::Null).await;
    let event = json!({"types": ["workflow.completed"], "filter": "${event.workflowId} == 'order'"});
    prepared(&world, event, json!({"of": "${event.executionId}"})).await;
    world.ask("triggers.pause", json!({"id": "alerts"})).await;
    run(&world, Value::Null).await;
    world.ask("triggers.resume", json!({"id": "alerts"})).await;
    let last = run(&world, Value::Null).await;
    world.desk.called("alert-step", 1).await;
    assert_eq!(world.desk.inputs.lock().last().unwrap()["value"], json!(last));
    assert_eq!(world.ask("triggers.show", json!({"id": "alerts"})).await["started"], 1);
}

#[tokio::test]
async fn triggers_that_start_each_other_stop_with_a_clear_error() {
    let world = World::new().await;
    prepared(&world, json!({"types": ["workflow.completed"]}), json!({"of": "${event.executionId}"})).await;
    run(&world, Value::Null).await;
    world.desk.called("alert-step", 4).await;
    let shown = loop {
        let shown = world.ask("triggers.show", json!({"id": "alerts"})).await;
        if shown["lastError"].is_string() {
            break shown;
        }
        tokio::task::yield_now().await;
    };
    assert!(shown["lastError"].as_str().unwrap().contains("4 triggers started each other"), "{shown}");
    assert_eq!((&shown["started"], world.desk.count("alert-step")), (&json!(4), 4), "{shown}");
}

#[tokio::test]
async fn an_event_that_can_never_start_the_workflow_is_left_out_and_told() {
    let world = World::new().await;
    prepared(&world, json!({"types": ["workflow.completed"]}), json!({"unknown": 1})).await;
    run(&world, Value::Null).await;
    let shown = loop {
        let shown = world.ask("triggers.show", json!({"id": "alerts"})).await;
        if shown["lastError"].is_string() {
            break shown;
        }
        tokio::task::yield_now().await;
    };
    assert!(shown["lastError"].as_str().unwrap().contains("declares no input"), "{shown}");
    assert_eq!(shown["started"], 0);
}

#[tokio::test]
async fn events_that_came_while_the_process_was_away_are_taken_once() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Arc::<Desk>::default();
    let world = World::at(folder.path(), desk.clone()).await;
    let event = json!({"types": ["workflow.completed"], "filter": "${event.workflowId} == 'order'"});
    prepared(&world, event, json!({"of": "${event.executionId}"})).await;
    for _ in 0..3 {
        run(&world, Value::Null).await;
    }
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    run(&world, Value::Null).await;
    loop {
        if world.ask("triggers.show", json!({"id": "alerts"})).await["started"] == 4 {
            break;
        }
        tokio::task::yield_now().await;
    }
    world.die().await;
}

#[tokio::test]
async fn what_is_wrong_with_an_event_trigger_is_said_with_its_place() {
    let world = World::new().await;
    world.ask("workflows.apply", json!({"workflow": echo("order", &json!({"value": 1}))})).await;
    for (path, trigger) in [
        ("/event/types", json!({"event": {"types": ["workflow.exploded"]}})),
        ("/event/filter", json!({"event": {"types": ["workflow.failed"], "filter": "${hook.body} == 1"}})),
        ("/event/filter", json!({"event": {"types": ["workflow.failed"], "filter": "${event.id"}})),
        ("/event/maxPerMinute", json!({"event": {"types": ["workflow.failed"], "maxPerMinute": 601}})),
        ("/inputs", json!({"event": {"types": ["workflow.failed"]}, "inputs": {"a": "${hook.body}"}})),
        (
            "/event",
            json!({"event": {"types": ["workflow.failed"]}, "webhook": {}, "secret": {"value": "12345678"}}),
        ),
        ("/secret", json!({"event": {"types": ["workflow.failed"]}, "secret": {"generate": true}})),
        ("/webhook", json!({})),
    ] {
        let mut trigger = trigger;
        (trigger["id"], trigger["workflowId"]) = (json!("t"), json!("order"));
        let refused = world.refused("triggers.apply", trigger.clone()).await;
        assert!(refused.message.starts_with(path), "{trigger}: {refused:?}");
        assert!(matches!(refused.code, Code::InvalidArgument | Code::ExprInvalidSyntax), "{refused:?}");
    }
}
