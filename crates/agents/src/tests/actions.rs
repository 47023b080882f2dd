//! The actions, run by a kernel.

use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::{End, Settled, Why};
use serde_json::{Value, json};

use super::world::{Waiting, World, acting, id};
use crate::{Echo, Message, Settings, Surroundings};

fn value(settled: Settled) -> Value {
    match settled.result {
        Ok(Output::Json { value }) => value,
        other => panic!("expected JSON, found {other:?}"),
    }
}

#[tokio::test]
async fn agents_are_listed_messaged_and_shown() {
    let world = World::new(&Settings::default());
    world.coordinator.register(id(Echo::ID), Arc::new(Echo)).unwrap();
    assert_eq!(
        value(world.call("agent.list", json!({})).await),
        json!({"agentIds": ["echo"], "truncated": false})
    );
    let args = json!({"targetAgentId": "echo", "message": {"type": "hi", "payload": {"a": 1}}});
    let answer = value(world.call("agent/sendMessage", args).await);
    assert_eq!(answer, json!({"type": "hi", "payload": {"a": 1}, "count": 1}));
    let shown = value(world.call("agent/getState", json!({"agentId": "echo"})).await);
    assert_eq!(
        shown,
        json!({"agentId": "echo", "truncated": false, "state": {"count": 1, "lastType": "hi"}})
    );
}

#[tokio::test]
async fn an_unknown_agent_is_not_found_and_a_bad_message_is_invalid() {
    let world = World::new(&Settings::default());
    for (action, args) in [
        ("agent.getState", json!({"agentId": "x"})),
        ("agent.sendMessage", json!({"targetAgentId": "x", "message": {"type": "a"}})),
    ] {
        assert_eq!(world.call(action, args).await.code(), Some(Code::NotFound), "{action}");
    }
    for (action, args) in [
        ("agent.getState", json!({})),
        ("agent.getState", json!({"agentId": ""})),
        ("agent.getState", json!({"agentId": "a\nb"})),
        ("agent.sendMessage", json!({"targetAgentId": "x", "message": {"payload": 1}})),
        ("agent.sendMessage", json!({"targetAgentId": "x", "message": "hi"})),
        ("agent.list", json!({"more": 1})),
    ] {
        assert_eq!(world.call(action, args).await.code(), Some(Code::InvalidArgument), "{action}");
    }
}

fn keeping(message: Message, around: Surroundings<'_>) -> BoxFuture<'_, Result<Value, Fault>> {
    Box::pin(async move {
        around.state.set(message.kind, message.payload)?;
        Ok(Value::Null)
    })
}

#[tokio::test]
async fn secrets_are_left_out_and_a_large_state_is_shown_by_its_names() {
    let world = World::new(&Settings { state_bytes: 100 });
    world.coordinator.register(id("keeper"), acting(keeping)).unwrap();
    let keep = |kind: &str, payload: Value| json!({"targetAgentId": "keeper", "message": {"type": kind, "payload": payload}});
    world.call("agent.sendMessage", keep("apiKey", json!("hunter2"))).await;
    world.call("agent.sendMessage", keep("nested", json!({"password": "hunter2", "n": 1}))).await;
    let shown = value(world.call("agent.getState", json!({"agentId": "keeper"})).await);
    assert_eq!(shown["state"], json!({"apiKey": "[REDACTED]", "nested": {"password": "[REDACTED]", "n": 1}}));
    world.call("agent.sendMessage", keep("large", json!("x".repeat(100)))).await;
    let shown = value(world.call("agent.getState", json!({"agentId": "keeper"})).await);
    assert_eq!(shown["truncated"], true);
    assert_eq!((&shown["keys"], &shown["allKeys"]), (&json!(["apiKey", "large", "nested"]), &json!(true)));
    assert!(shown.get("state").is_none());
    let long = "n".repeat(90);
    world.call("agent.sendMessage", keep(&long, json!(1))).await;
    let shown = value(world.call("agent.getState", json!({"agentId": "keeper"})).await);
    assert_eq!((&shown["keys"], &shown["allKeys"]), (&json!(["apiKey", "large", "nested"]), &json!(false)));
}

#[tokio::test]
async fn a_cancelled_call_holds_its_slot_until_the_agent_returns() {
    let world = World::new(&Settings::default());
    let agent = Waiting::new();
    let (begun, gate) = (agent.begun.clone(), agent.gate.clone());
    world.coordinator.register(id("slow"), Arc::new(agent)).unwrap();
    let submission =
        world.submission("agent.sendMessage", json!({"targetAgentId": "slow", "message": {"type": "a"}}));
    let cancel = submission.cancel.clone();
    let kernel = world.kernel.clone();
    let call = tokio::spawn(async move { kernel.submit(submission).await });
    Waiting::has_begun(&begun).await;
    cancel.fire(Why::Client);
    assert_eq!(call.await.unwrap().end, End::Aborted);
    assert_eq!(world.kernel.running(), 1, "MCP-TIMEOUT-4");
    gate.add_permits(1);
    while world.kernel.running() > 0 {
        tokio::task::yield_now().await;
    }
}
