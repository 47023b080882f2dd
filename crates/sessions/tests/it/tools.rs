//! The tools and the resource of MCP, and that no session uses them on itself.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_contract::id::Key;
use orchestr8_kernel::action::Tasking;
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::registry::RESOURCE_UPDATED;
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_testing::{Person, settled, submission, within};
use serde_json::{Value, json};

use crate::world::World;

async fn call(world: &World, tool: &str, args: Value) -> Value {
    settled::value(world.kernel.submit(submission(tool, args)).await)
}

async fn read(world: &World, id: &str) -> String {
    let args = json!({"uri": format!("session://{id}"), "id": id});
    let told = settled::wire(world.kernel.submit(submission("session", args)).await);
    assert_eq!(told["contents"][0]["mimeType"], "text/markdown");
    told["contents"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_is_started_prompted_and_looked_at() {
    let world = World::new().await;
    let args = json!({"cwd": "/", "name": "mine", "model": "offline/echo", "systemPrompt": "x", "tools": ["math.add"]});
    let started = call(&world, "start_session", args).await;
    let id = started["sessionId"].as_str().unwrap();
    assert_eq!(
        (&started["model"], &started["cwd"], &started["name"], &started["uri"]),
        (&json!("offline/echo"), &json!("/"), &json!("mine"), &json!(format!("session://{id}")))
    );
    let prompt = json!({"sessionId": id, "message": "/tool math.add {\"a\": 2, \"b\": 3}"});
    let said = call(&world, "prompt_session", prompt).await;
    assert_eq!((&said["text"], &said["stopReason"]), (&json!("math.add answered: 5"), &json!("stop")));
    let state = call(&world, "get_session", json!({"sessionId": id})).await;
    assert_eq!(
        (&state["status"], &state["messageCount"], &state["lastText"]),
        (&json!("idle"), &json!(4), &json!("math.add answered: 5"))
    );
    assert_eq!(state["messages"][1]["calls"], json!(["math.add"]));
    assert_eq!(
        (&state["messages"][2]["tool"], &state["messages"][2]["text"]),
        (&json!("math.add"), &json!("5"))
    );
    assert_eq!(state["usage"]["total"], said["usage"]["total"]);
    let version = world.settle("get_state", json!({"sessionId": id})).await.version;
    assert_eq!(version, Some(1), "it is counted like one that a client of the protocol made");
    let text = read(&world, id).await;
    for part in ["# mine", "## User", "Calls `math.add`", "### Result of `math.add`", "```\n5\n```"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[tokio::test]
async fn a_call_that_is_repeated_under_its_key_starts_one_session() {
    let world = World::new().await;
    let start = || {
        let mut wish = submission("start_session", json!({}));
        let key = Key::parse("k").unwrap();
        wish.identities.push(Identity { scope: Scope("test".into()), key, ttl_ms: 60_000 });
        world.kernel.submit(wish)
    };
    let first = settled::value(start().await);
    assert_eq!(settled::value(start().await), first);
    assert_eq!(world.ask("list_sessions", json!({})).await["sessions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let world = World::new().await;
    let refused = |tool: &'static str, args: Value| {
        let wish = submission(tool, args);
        async { settled::fault(world.kernel.submit(wish).await).code }
    };
    assert_eq!(refused("start_session", json!({"model": "echo"})).await, Code::InvalidArgument);
    assert_eq!(refused("start_session", json!({"model": "offline/nobody"})).await, Code::NotFound);
    assert_eq!(refused("start_session", json!({"cwd": "relative"})).await, Code::InvalidArgument);
    assert_eq!(refused("start_session", json!({"folder": "/"})).await, Code::InvalidArgument);
    assert_eq!(refused("prompt_session", json!({"sessionId": "s", "message": "x"})).await, Code::NotFound);
    assert_eq!(refused("get_session", json!({"sessionId": "s"})).await, Code::NotFound);
    assert_eq!(refused("session", json!({"uri": "session://s", "id": "s"})).await, Code::NotFound);
    world.session().await;
    assert_eq!(
        refused("prompt_session", json!({"sessionId": "s", "message": "/fail INTERNAL"})).await,
        Code::Internal
    );
}

#[tokio::test]
async fn a_prompt_tells_its_progress_and_that_the_conversation_has_grown() {
    let world = World::new().await;
    world.session().await;
    let mut news =
        world.kernel.bus().subscribe(&Filter::names([RESOURCE_UPDATED]).about("session://s")).unwrap();
    let person = Arc::new(Person::default());
    let message = "/slow 20\n/tool math.add {\"a\": 1, \"b\": 1}";
    let mut wish = submission("prompt_session", json!({"sessionId": "s", "message": message}));
    wish.peer = Some(person.clone());
    settled::value(world.kernel.submit(wish).await);
    let told: Vec<f64> =
        person.heard.lock().iter().map(|heard| heard["progress"].as_f64().unwrap()).collect();
    assert!(told.len() >= 2 && told.is_sorted_by(|a, b| a < b), "{told:?}");
    within(news.next()).await.unwrap();
    let tool = world.kernel.registry().find("prompt_session").unwrap();
    assert_eq!(tool.policy.tasking, Tasking::Optional);
}

#[tokio::test]
async fn a_model_gets_nowhere_with_tools_it_was_not_offered() {
    let world = World::new().await;
    world.session().await;
    for call in [
        "start_session {}",
        "prompt_session {\"sessionId\": \"s\", \"message\": \"x\"}",
        "session.create_session {\"sessionId\": \"t\"}",
        "session.delete_session {\"sessionId\": \"s\"}",
        "llm.complete {\"prompt\": \"x\"}",
    ] {
        let answer = within(world.prompt(&format!("/tool {call}"))).await;
        assert!(answer["text"].as_str().unwrap().contains("There is no tool named"), "{call}: {answer}");
    }
    assert_eq!(world.ask("list_sessions", json!({})).await["sessions"].as_array().unwrap().len(), 1);
    world.ask("create_session", json!({"sessionId": "t", "tools": ["ask"]})).await;
    let args = json!({"sessionId": "t", "message": "/tool math.add {\"a\": 1, \"b\": 1}"});
    let answer = world.ask("prompt", args).await;
    assert!(answer["text"].as_str().unwrap().contains("There is no tool named 'math.add'"), "{answer}");
}

#[tokio::test]
async fn another_tenant_sees_nothing() {
    let world = World::new().await;
    world.session().await;
    let mut wish = submission("get_session", json!({"sessionId": "s"}));
    let mut other = orchestr8_kernel::Principal::local();
    other.tenant = orchestr8_contract::id::Tenant::parse("other").unwrap();
    wish.principal = Arc::new(other);
    assert_eq!(world.kernel.submit(wish).await.code(), Some(Code::NotFound));
}
