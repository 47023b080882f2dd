//! Workflows that start when a signed request comes in.

use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Args, Halt, Principal, Submission};
use orchestr8_outbound::{signature, timed_signature};
use serde_json::{Value, json};

use crate::world::{Desk, World, step, value};

const SECRET: &str = "a secret of the sender";

/// A workflow with inputs, and a trigger that starts it.
async fn prepared(world: &World, webhook: Value) {
    let mut workflow = json!({"id": "order", "version": "1.0.0", "name": "Order", "steps": [
        step("take", &[], json!({"value": {"id": "${variables.id}", "list": "${variables.list}"}}))]});
    workflow["variables"] = json!({"id": null, "list": []});
    world.ask("workflows.apply", json!({"workflow": workflow})).await;
    let mut inputs = json!({"id": "${hook.body.id}"});
    if webhook["batch"].is_object() {
        inputs = json!({"n": "${hook.body.id}"});
    }
    let trigger = json!({"id": "orders", "workflowId": "order", "webhook": webhook, "inputs": inputs,
                         "secret": {"value": SECRET}});
    let shown = world.ask("triggers.apply", trigger).await;
    assert_eq!((&shown["url"], &shown["revision"]), (&json!("/v1/hooks/orders"), &json!(1)), "{shown}");
    assert!(!shown.to_string().contains(SECRET), "{shown}");
}

async fn send(world: &World, args: Value) -> Result<Value, Fault> {
    let Value::Object(map) = args else { panic!("arguments are an object") };
    let sender = Arc::new(Principal::webhook_sender(Tenant::local()));
    let correlation = CorrelationId::parse("test").unwrap();
    let settled =
        world.kernel.submit(Submission::new("hooks.deliver", Args::new(map), sender, correlation)).await;
    match settled.result {
        Err(Halt::Fault(fault)) => Err(fault),
        _ => Ok(value(settled)),
    }
}

/// Signed as GitHub signs.
async fn deliver(world: &World, body: Value) -> Result<Value, Fault> {
    let body = body.to_string();
    let signed = signature(SECRET, &body).unwrap();
    send(world, json!({"name": "orders", "body": body, "hubSignature": signed})).await
}

async fn shown(world: &World) -> Value {
    world.ask("triggers.show", json!({"id": "orders"})).await
}

#[tokio::test]
async fn a_signed_delivery_starts_the_workflow_with_mapped_inputs_once() {
    let world = World::new().await;
    prepared(&world, json!({})).await;
    let first = deliver(&world, json!({"id": 42})).await.unwrap();
    let id = first["executionId"].as_str().unwrap();
    let ended = world.end(id).await;
    assert_eq!((&ended["status"], &ended["outputs"]["take"]["id"]), (&json!("completed"), &json!(42)));
    assert_eq!(ended["triggeredBy"], "local");
    let again = deliver(&world, json!({"id": 42})).await.unwrap();
    assert_eq!((&again["duplicate"], &again["executionId"]), (&json!(true), &json!(id)));
    deliver(&world, json!({"id": 43})).await.unwrap();
    let shown = shown(&world).await;
    let counters = ["deliveries", "duplicates", "started"].map(|name| shown[name].as_u64().unwrap());
    assert_eq!(counters, [3, 1, 2], "{shown}");
    assert!(shown["lastDeliveryAt"].is_string() && shown["lastExecutionId"].is_string());
}

#[tokio::test]
async fn what_is_not_signed_as_the_trigger_says_is_refused_like_an_unknown_name() {
    let world = World::new().await;
    prepared(&world, json!({"signature": "timed"})).await;
    let body = json!({"id": 1}).to_string();
    let now_ms = world.kernel.ports().clock.now_ms();
    let timed = |secret: &str, at_ms: i64| timed_signature(secret, &body, at_ms).unwrap();
    let hub = signature(SECRET, &body).unwrap();
    let unknown =
        send(&world, json!({"name": "none", "body": body, "timedSignature": timed(SECRET, now_ms)})).await;
    let unknown = unknown.unwrap_err();
    assert_eq!(unknown.code, Code::Unauthenticated);
    for (what, args) in [
        ("none", json!({})),
        ("other secret", json!({"timedSignature": timed("another secret", now_ms)})),
        ("too old", json!({"timedSignature": timed(SECRET, now_ms - 302_000)})),
        ("too new", json!({"timedSignature": timed(SECRET, now_ms + 302_000)})),
        ("without a time", json!({"hubSignature": hub})),
        ("changed time", json!({"timedSignature": timed(SECRET, now_ms - 302_000).replace("t=", "t=1")})),
    ] {
        let mut args = args;
        (args["name"], args["body"]) = (json!("orders"), json!(body));
        let refused = send(&world, args).await.unwrap_err();
        assert_eq!(
            (refused.code, &refused.message, &refused.details),
            (unknown.code, &unknown.message, &unknown.details),
            "{what}"
        );
    }
    assert_eq!(shown(&world).await["deliveries"], 0);
    let right = json!({"name": "orders", "body": body, "timedSignature": timed(SECRET, now_ms - 1000)});
    assert!(send(&world, right.clone()).await.unwrap()["executionId"].is_string());
    // A recorded request is recognised whatever its headers say, and its signature cannot be written differently.
    let mut replayed = right;
    replayed["headers"] = json!({"x_github_delivery": "another"});
    replayed["timedSignature"] = json!(format!("{} , x=1", replayed["timedSignature"].as_str().unwrap()));
    assert_eq!(send(&world, replayed).await.unwrap()["duplicate"], true);
}

#[tokio::test]
async fn a_delivery_is_known_by_its_id_or_by_the_key_of_the_trigger() {
    let world = World::new().await;
    prepared(&world, json!({})).await;
    let sent = |id: &str, order: u32| {
        let body = json!({"id": order}).to_string();
        let signed = signature(SECRET, &body).unwrap();
        json!({"name": "orders", "body": body, "hubSignature": signed, "headers": {"x_github_delivery": id}})
    };
    assert_eq!(send(&world, sent("a", 1)).await.unwrap()["duplicate"], false);
    assert_eq!(send(&world, sent("a", 2)).await.unwrap()["duplicate"], true);
    assert_eq!(send(&world, sent("b", 3)).await.unwrap()["duplicate"], false);
    prepared(&world, json!({"deduplication": {"key": "${hook.body.id}"}})).await;
    assert_eq!(send(&world, sent("c", 7)).await.unwrap()["duplicate"], false);
    assert_eq!(send(&world, sent("d", 7)).await.unwrap()["duplicate"], true);
}

#[tokio::test]
async fn the_same_delivery_sent_many_times_at_once_starts_one_execution() {
    let world = World::new().await;
    prepared(&world, json!({})).await;
    let answers = join_all((0..20).map(|_| deliver(&world, json!({"id": 1})))).await;
    let fresh = answers.iter().filter(|answer| answer.as_ref().unwrap()["duplicate"] == false).count();
    assert_eq!(fresh, 1);
    assert_eq!(shown(&world).await["started"], 1);
}

#[tokio::test]
async fn what_the_workflow_would_refuse_is_refused_and_not_remembered() {
    let world = World::new().await;
    prepared(&world, json!({})).await;
    let missing = deliver(&world, json!({"other": 1})).await.unwrap_err();
    assert_eq!(missing.code, Code::ExprPathNotFound, "{missing:?}");
    assert_eq!(shown(&world).await["deliveries"], 0);
    let long = "x".repeat(262_145);
    let args = json!({"name": "orders", "body": long, "hubSignature": signature(SECRET, &long).unwrap()});
    assert_eq!(send(&world, args).await.unwrap_err().code, Code::PayloadTooLarge);
    for wrong in [
        json!({"debounce": {"quietMs": 0}}),
        json!({"debounce": {"quietMs": 10}, "batch": {"size": 2, "windowMs": 10, "input": "list"}}),
        json!({"batch": {"size": 101, "windowMs": 10, "input": "list"}}),
        json!({"batch": {"size": 2, "windowMs": 10, "input": "unknown"}}),
        json!({"deduplication": {"key": "${variables.x}"}}),
        json!({"deduplication": {"windowMs": 604_800_001_i64}}),
        json!({"maxPerMinute": 6001}),
    ] {
        let trigger =
            json!({"id": "wrong", "workflowId": "order", "webhook": wrong, "secret": {"value": SECRET}});
        let refused = world.refused("triggers.apply", trigger).await;
        assert!(refused.message.starts_with("/webhook"), "{wrong}: {refused:?}");
    }
    let named = json!({"id": "wrong", "workflowId": "order", "webhook": {}, "secret": {"name": "NONE"}});
    assert!(world.refused("triggers.apply", named).await.message.contains("no secret named"));
}

#[tokio::test]
async fn the_last_delivery_before_a_quiet_period_starts_one_execution() {
    let world = World::new().await;
    prepared(&world, json!({"debounce": {"quietMs": 300}})).await;
    for id in 1..=3 {
        assert_eq!(deliver(&world, json!({"id": id})).await.unwrap()["pending"], 1);
    }
    world.desk.called("take", 1).await;
    assert_eq!(world.desk.inputs.lock()[0]["value"]["id"], 3);
    let shown = shown(&world).await;
    assert_eq!(
        (&shown["started"], &shown["pending"], &shown["deliveries"]),
        (&json!(1), &json!(0), &json!(3))
    );
}

#[tokio::test]
async fn a_batch_starts_when_it_is_full_or_its_time_is_over() {
    let world = World::new().await;
    prepared(&world, json!({"batch": {"size": 3, "windowMs": 86_400_000, "input": "list"}})).await;
    for id in 1..=3 {
        assert_eq!(deliver(&world, json!({"id": id})).await.unwrap()["pending"], id);
    }
    world.desk.called("take", 1).await;
    assert_eq!(world.desk.inputs.lock()[0]["value"]["list"], json!([{"n": 1}, {"n": 2}, {"n": 3}]));
    prepared(&world, json!({"batch": {"size": 3, "windowMs": 50, "input": "list"}})).await;
    deliver(&world, json!({"id": 4})).await.unwrap();
    world.desk.called("take", 2).await;
    assert_eq!(world.desk.inputs.lock()[1]["value"]["list"], json!([{"n": 4}]));
}

#[tokio::test]
async fn limits_refuse_the_next_delivery_and_lose_none() {
    let world = World::new().await;
    prepared(
        &world,
        json!({"batch": {"size": 100, "windowMs": 86_400_000, "input": "list"}, "maxPerMinute": 2}),
    )
    .await;
    deliver(&world, json!({"id": 1})).await.unwrap();
    deliver(&world, json!({"id": 2})).await.unwrap();
    let refused = deliver(&world, json!({"id": 3})).await.unwrap_err();
    assert_eq!(
        (refused.code, &refused.details.unwrap()["reason"]),
        (Code::ResourceExhausted, &json!("rate"))
    );
    assert_eq!(shown(&world).await["pending"], 2);
}

#[tokio::test]
async fn a_paused_trigger_takes_nothing_and_keeps_what_waits() {
    let world = World::new().await;
    prepared(&world, json!({"batch": {"size": 2, "windowMs": 86_400_000, "input": "list"}})).await;
    deliver(&world, json!({"id": 1})).await.unwrap();
    world.ask("triggers.pause", json!({"id": "orders"})).await;
    assert_eq!(deliver(&world, json!({"id": 2})).await.unwrap_err().code, Code::StateConflict);
    world.ask("triggers.resume", json!({"id": "orders"})).await;
    deliver(&world, json!({"id": 2})).await.unwrap();
    world.desk.called("take", 1).await;
    let dropped = world.ask("triggers.delete", json!({"id": "orders"})).await;
    assert_eq!(dropped, json!({"id": "orders", "deleted": true, "pendingDropped": 0}));
    assert_eq!(deliver(&world, json!({"id": 3})).await.unwrap_err().code, Code::Unauthenticated);
}

async fn at(folder: &Path, desk: &Arc<Desk>) -> World {
    World::at(folder, desk.clone()).await
}

#[tokio::test]
async fn what_was_acknowledged_survives_the_process_and_starts_once() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Arc::<Desk>::default();
    let world = at(folder.path(), &desk).await;
    prepared(&world, json!({"batch": {"size": 3, "windowMs": 1000, "input": "list"}})).await;
    deliver(&world, json!({"id": 1})).await.unwrap();
    deliver(&world, json!({"id": 2})).await.unwrap();
    world.die().await;
    let world = at(folder.path(), &desk).await;
    desk.called("take", 1).await;
    assert_eq!(desk.inputs.lock()[0]["value"]["list"], json!([{"n": 1}, {"n": 2}]));
    let shown = world.ask("triggers.show", json!({"id": "orders"})).await;
    assert_eq!((&shown["started"], &shown["pending"]), (&json!(1), &json!(0)), "{shown}");
    world.die().await;
}
