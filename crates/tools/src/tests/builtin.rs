//! `echo`, `health` and `tool_search`.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::{AccessRole, AllowedRoles, Code};
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::{Action, Limits, Policy, Transport, Why, registry};
use orchestr8_testing::Person;
use orchestr8_testing::settled::value;
use serde_json::{Value, json};

use super::world::{World, settings};
use crate::{Settings, changed};

#[tokio::test]
async fn echo_gives_back_its_message() {
    let world = World::new(&settings());
    assert_eq!(value(world.call("echo", json!({"message": "hé\n"})).await), json!({"message": "hé\n"}));
    for wrong in [json!({}), json!({"message": 1})] {
        assert_eq!(world.call("echo", wrong).await.code(), Some(Code::InvalidArgument));
    }
}

#[tokio::test]
async fn health_has_the_shape_of_the_seed() {
    let world = World::new(&settings());
    let mut health = value(world.call("health", json!({})).await);
    assert!(health["resources"]["memoryUsageBytes"].as_u64().unwrap() > 1_000_000);
    health["resources"]["memoryUsageBytes"] = json!(0);
    let expected = json!({
        "server": {"name": "test-server", "version": "1.2.3"},
        "config": {
            "toolTimeoutMs": 30_000, "maxConcurrentExecutions": 10, "maxPayloadBytes": 1_048_576, "maxStateBytes": 262_144
        },
        "resources": {
            "memoryUsageBytes": 0, "eventLoopDelayMs": 0.0, "concurrentExecutions": 0, "maxConcurrentExecutions": 10
        },
        "status": "healthy"
    });
    assert_eq!(health, expected);
    assert_eq!(world.call("health", json!({"x": 1})).await.code(), Some(Code::InvalidArgument));
}

#[tokio::test]
async fn health_answers_when_every_slot_is_taken() {
    let settings = Settings { conformance: true, ..settings() };
    let world = World::with_limits(&settings, Limits { concurrent_runs: 1, ..Limits::default() });
    let submission = world.submission("test_sleep", json!({"ms": 60_000}));
    let (kernel, cancel) = (world.kernel.clone(), submission.cancel.clone());
    let sleeper = tokio::spawn(async move { kernel.submit(submission).await });
    while world.kernel.running() == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..3 {
        assert_eq!(world.call("echo", json!({"message": ""})).await.code(), Some(Code::ResourceExhausted));
    }
    let health = value(world.call("health", json!({})).await);
    assert_eq!(
        (&health["status"], &health["resources"]["concurrentExecutions"]),
        (&json!("unhealthy"), &json!(1))
    );
    cancel.fire(Why::Client);
    assert_eq!(sleeper.await.unwrap().code(), Some(Code::Cancelled));
    while world.kernel.running() > 0 {
        tokio::task::yield_now().await;
    }
}

fn action(name: &str, description: &str) -> Action {
    let action = Action::tool(name, description, json!({"type": "object"}), Policy::read(), |_, _| {
        std::future::ready(Ok(orchestr8_contract::Output::json(Value::Null).into()))
    });
    action.unwrap().allowed_to(AllowedRoles::ANYONE)
}

fn add(world: &World, name: &str, description: &str) {
    world.kernel.registry().register(action(name, description)).unwrap();
}

#[tokio::test]
async fn tool_search_ranks_by_name_then_description() {
    let world = World::new(&settings());
    add(&world, "files.deleteFile", "Removes one.");
    add(&world, "files.list", "Lists what could be deleted: a file, a folder.");
    add(&world, "profile", "About a person.");
    let found = value(world.call("tool_search", json!({"query": "delete FILE"})).await);
    let names: Vec<&str> =
        found["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["files.deleteFile", "files.list", "profile"]);
    assert_eq!(
        found["tools"][0],
        json!({"name": "files.deleteFile", "description": "Removes one.", "inputSchema": {"type": "object"}})
    );
    let first = value(world.call("tool_search", json!({"query": "file", "limit": 1})).await);
    assert_eq!((first["tools"].as_array().unwrap().len(), &first["total"]), (1, &json!(3)));
    assert_eq!(
        value(world.call("tool_search", json!({"query": "!"})).await),
        json!({"tools": [], "total": 0})
    );
    for wrong in [json!({"query": ""}), json!({"query": "a", "limit": 0}), json!({"query": "a", "limit": 51})]
    {
        assert_eq!(world.call("tool_search", wrong).await.code(), Some(Code::InvalidArgument));
    }
}

#[tokio::test]
async fn tool_search_finds_only_what_its_caller_may_see() {
    let world = World::new(&settings());
    add(&world, "files.read", "Reads a file.");
    add(&world, "files.write", "Writes a file.");
    let mut admin = action("files.wipe", "Wipes a file.");
    admin.allowed = Some(AllowedRoles::any_of(&[AccessRole::Admin]));
    world.kernel.registry().register(admin).unwrap();
    let client = Arc::new(Person { hidden: vec!["files.write".into()], ..Person::default() });
    let found = value(world.call_with(&client, "tool_search", json!({"query": "file"})).await);
    assert_eq!((&found["total"], &found["tools"][0]["name"]), (&json!(1), &json!("files.read")));
    let inside = value(world.call("tool_search", json!({"query": "file"})).await);
    assert_eq!(inside["total"], 2, "nothing but roles hides anything from a caller without a client");
}

#[tokio::test]
async fn tool_search_is_listed_only_when_the_list_is_long() {
    let settings = Settings { search_above: 3, ..settings() };
    let world = World::new(&settings);
    assert_eq!(world.listed(), ["echo", "health"]);
    add(&world, "a", "one");
    add(&world, "b", "two");
    let mut news = world.kernel.bus().subscribe(&Filter::names([registry::CHANGED]).about("tools")).unwrap();
    changed(&world.kernel, settings.search_above).unwrap();
    assert_eq!(world.listed(), ["a", "b", "echo", "health", "tool_search"]);
    assert_eq!(news.next().await.unwrap().subject, Arc::from("tools"));
    world.kernel.registry().unregister("a");
    changed(&world.kernel, settings.search_above).unwrap();
    assert_eq!(world.listed(), ["b", "echo", "health"]);
    let found = world.call("tool_search", json!({"query": "two"})).await;
    assert_eq!(value(found)["total"], 1, "it can be called all the same");
}

#[tokio::test]
async fn a_cancelled_sleep_ends_at_once() {
    let world = World::new(&Settings { conformance: true, ..settings() });
    let mut submission = world.submission("test_sleep", json!({"ms": 600_000}));
    submission.transport = Transport::Http;
    submission.timeout_ms = Some(1);
    let settled =
        tokio::time::timeout(Duration::from_secs(10), world.kernel.submit(submission)).await.unwrap();
    assert_eq!(settled.code(), Some(Code::Timeout));
    while world.kernel.running() > 0 {
        tokio::task::yield_now().await;
    }
}
