//! Who may act for whom.

use http::Method;
use orchestr8_edge::Caller;
use serde_json::{Value, json};

use crate::world::World;

fn caller(name: &str, tenant: &str) -> Caller {
    Caller {
        name: name.into(),
        tenant: tenant.into(),
        roles: vec!["agent".into()],
        verified: true,
        grant: None,
    }
}

fn event(source: &str, target: &str) -> Value {
    json!({"sourceAgentId": source, "targetAgentId": target, "messageType": "EVENT", "payload": 1})
}

#[tokio::test]
async fn only_who_registered_an_agent_acts_for_it() {
    let world = World::new();
    let (ann, bob) = (caller("ann", "acme"), caller("bob", "acme"));
    let put = async |who: &Caller| {
        world.ask_as(who.clone(), Method::PUT, "/aacp/agents/planner", Some(&json!({}))).await
    };
    assert_eq!(put(&ann).await.status, 200);
    assert_eq!(put(&bob).await.code(), "UNAUTHORIZED");
    let get = async |who: &Caller, target: &str| world.ask_as(who.clone(), Method::GET, target, None).await;
    assert_eq!(get(&ann, "/aacp/agents/planner/inbox").await.status, 200);
    assert_eq!(get(&bob, "/aacp/agents/planner/inbox").await.code(), "UNAUTHORIZED");
    // Anybody may write to it, and nobody else in its name.
    let post = async |who: &Caller, body: Value| {
        world.ask_as(who.clone(), Method::POST, "/aacp/messages", Some(&body)).await
    };
    assert_eq!(post(&bob, event("bob", "planner")).await.status, 201);
    assert_eq!(post(&bob, event("planner", "planner")).await.code(), "UNAUTHORIZED");
    assert_eq!(
        post(&bob, event("echo", "planner")).await.code(),
        "UNAUTHORIZED",
        "an agent of the server speaks for itself"
    );
}

#[tokio::test]
async fn what_belongs_to_another_tenant_is_not_there() {
    let world = World::new();
    let (ann, eve) = (caller("ann", "acme"), caller("ann", "evil"));
    world.ask_as(ann.clone(), Method::PUT, "/aacp/agents/planner", Some(&json!({}))).await;
    let mut body = event("me", "planner");
    body["messageId"] = "00000000-0000-4000-8000-000000006d31".into();
    assert_eq!(world.ask_as(ann, Method::POST, "/aacp/messages", Some(&body)).await.status, 201);
    for target in [
        "/aacp/messages/00000000-0000-4000-8000-000000006d31",
        "/aacp/agents/planner/inbox",
        "/aacp/requests/m1",
    ] {
        assert_eq!(
            world.ask_as(eve.clone(), Method::GET, target, None).await.code(),
            "NOT_FOUND",
            "{target}"
        );
    }
    let pairs = world.ask_as(eve.clone(), Method::GET, "/aacp/pairs", None).await;
    assert_eq!(pairs.text, r#"{"pairs":[]}"#);
    assert_eq!(world.ask_as(eve, Method::POST, "/aacp/messages", Some(&body)).await.code(), "NOT_FOUND");
}
