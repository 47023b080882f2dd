//! Workflows that start when a document changes or a message comes for an agent.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, RoleSet};
use orchestr8_kernel::{Args, Halt, Principal, Submission};
use orchestr8_stores::sqlite::Place;
use serde_json::{Value, json};

use crate::world::{Desk, World, step};

async fn prepared(world: &World, event: Value, inputs: Value) {
    let workflow = json!({"id": "react", "version": "1.0.0", "name": "React", "variables": {"what": null, "edit": false},
        "steps": [step("react", &[], json!({"value": "${variables.what}"})),
                  {"id": "edit", "agentId": "@orchestr8/knowledge", "dependsOn": ["react"], "if": "${variables.edit}",
                   "input": {"operation": "update", "document_id": "${variables.what}", "update_mask": ["metadata.title"],
                             "patch": {"metadata": {"title": "Seen ${execution.id}"}}}}]});
    world.ask("workflows.apply", json!({"workflow": workflow})).await;
    let trigger = json!({"id": "t", "workflowId": "react", "event": event, "inputs": inputs});
    world.ask("triggers.apply", trigger).await;
}

async fn create(world: &World, title: &str) -> String {
    let document = json!({"document_id": uuid(title), "parent_id": "root", "is_human_readable": true,
        "content": {"mime_type": "text/plain", "body": "text"}, "metadata": {"title": title}});
    world.ask("knowledge.create_document", document).await["id"].as_str().unwrap().to_owned()
}

/// An id that is made of a title.
fn uuid(title: &str) -> String {
    let number: u64 = title.bytes().map(u64::from).sum();
    format!("00000000-0000-4000-8000-{number:012}")
}

async fn rename(world: &World, id: &str, title: &str) {
    let change = json!({"document_id": id, "update_mask": ["metadata.title"], "patch": {"metadata": {"title": title}}});
    world.ask("knowledge.update_document", change).await;
}

async fn shown_when(world: &World, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let shown = world.ask("triggers.show", json!({"id": "t"})).await;
        if holds(&shown) {
            return shown;
        }
        tokio::task::yield_now().await;
    }
}

fn seen(world: &World) -> Vec<Value> {
    world.desk.inputs.lock().iter().map(|input| input["value"].clone()).collect()
}

#[tokio::test]
async fn every_change_of_a_document_that_the_filter_takes_starts_the_workflow_once() {
    let world = World::with_neighbours(Place::Memory, Arc::default()).await;
    create(&world, "before").await;
    let event = json!({"types": ["document.created", "document.updated"], "filter": "${event.data.title} != 'secret'"});
    prepared(&world, event, json!({"what": "${event.type} ${event.data.title} ${event.data.revision}"}))
        .await;
    let id = create(&world, "plan").await;
    rename(&world, &id, "secret").await;
    rename(&world, &id, "plan B").await;
    world.ask("knowledge.delete_document", json!({"document_id": id})).await;
    rename(&world, &uuid("before"), "after").await;
    world.desk.called("react", 3).await;
    let expected = ["document.created plan 1", "document.updated plan B 3", "document.updated after 2"];
    let mut found = seen(&world);
    found.sort_by_key(|value| expected.iter().position(|one| value == one));
    assert_eq!(found, expected.map(Value::from));
    assert_eq!(shown_when(&world, |shown| shown["started"] == 3).await["deliveries"], 3);
}

#[tokio::test]
async fn a_workflow_that_changes_the_document_that_started_it_stops_with_a_clear_error() {
    let world = World::with_neighbours(Place::Memory, Arc::default()).await;
    let inputs = json!({"what": "${event.data.documentId}", "edit": true});
    prepared(&world, json!({"types": ["document.created", "document.updated"]}), inputs).await;
    create(&world, "round").await;
    let shown = shown_when(&world, |shown| shown["lastError"].is_string()).await;
    assert!(shown["lastError"].as_str().unwrap().contains("4 triggers started each other"), "{shown}");
    assert_eq!(shown["started"], 4, "{shown}");
}

#[tokio::test]
async fn changes_of_documents_while_the_process_was_away_are_taken_once() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Arc::<Desk>::default();
    let world = World::with_neighbours(Place::File(folder.path().join("data.sqlite3")), desk.clone()).await;
    let event = json!({"types": ["document.updated"]});
    prepared(&world, event, json!({"what": "${event.data.title}"})).await;
    let id = create(&world, "one").await;
    for title in ["two", "three", "four"] {
        rename(&world, &id, title).await;
    }
    world.die().await;
    let world = World::with_neighbours(Place::File(folder.path().join("data.sqlite3")), desk.clone()).await;
    rename(&world, &id, "five").await;
    shown_when(&world, |shown| shown["started"] == 4).await;
    world.die().await;
}

async fn register(world: &World, id: &str) {
    world.ask("agents.register", json!({"agentId": id})).await;
}

async fn send(world: &World, to: &str, payload: Value) {
    let message =
        json!({"sourceAgentId": "boss", "targetAgentId": to, "messageType": "EVENT", "payload": payload});
    world.ask("aacp.send", message).await;
}

async fn inbox(world: &World, agent: &str) -> usize {
    world.ask("aacp.inbox", json!({"agentId": agent})).await["messages"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_message_for_an_agent_starts_the_workflow_and_is_acknowledged() {
    let world = World::with_neighbours(Place::Memory, Arc::default()).await;
    register(&world, "desk").await;
    send(&world, "desk", json!({"n": 1})).await;
    let event =
        json!({"types": ["message.received"], "agent": "desk", "filter": "${event.data.payload.n} != 2"});
    prepared(&world, event, json!({"what": "${event.data.sourceAgentId} ${event.data.payload.n}"})).await;
    for n in 2..=3 {
        send(&world, "desk", json!({"n": n})).await;
    }
    world.desk.called("react", 2).await;
    let mut found = seen(&world);
    found.sort_by_key(ToString::to_string);
    assert_eq!(
        found,
        ["boss 1", "boss 3"].map(Value::from),
        "one that waited counts, one that is left out does not"
    );
    shown_when(&world, |shown| shown["started"] == 2).await;
    while inbox(&world, "desk").await > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn messages_stay_for_others_to_acknowledge_if_the_trigger_says_so() {
    let world = World::with_neighbours(Place::Memory, Arc::default()).await;
    register(&world, "desk").await;
    let event = json!({"types": ["message.received"], "agent": "desk", "acknowledge": false});
    prepared(&world, event, json!({"what": "${event.data.payload}"})).await;
    for n in 1..=3 {
        send(&world, "desk", json!(n)).await;
    }
    shown_when(&world, |shown| shown["started"] == 3).await;
    assert_eq!(inbox(&world, "desk").await, 3);
}

/// Whoever stores the trigger reads what it follows.
#[tokio::test]
async fn an_inbox_of_another_principal_and_documents_without_the_right_are_refused() {
    let world = World::with_neighbours(Place::Memory, Arc::default()).await;
    register(&world, "desk").await;
    prepared(&world, json!({"types": ["workflow.failed"]}), json!({})).await;
    let apply = async |roles: [&str; 2], event: Value| {
        let args = json!({"id": "mine", "workflowId": "react", "event": event});
        let principal = Principal::new("eve", Tenant::local(), RoleSet::named(roles));
        let Value::Object(args) = args else { unreachable!() };
        let correlation = CorrelationId::parse("test").unwrap();
        let submission = Submission::new("triggers.apply", Args::new(args), Arc::new(principal), correlation);
        match world.kernel.submit(submission).await.result {
            Ok(_) => None,
            Err(Halt::Fault(cause)) => Some(cause.code),
            Err(Halt::Asks(_)) => panic!("it asks nothing"),
        }
    };
    let message = json!({"types": ["message.received"], "agent": "desk"});
    assert_eq!(apply(["editor", "agent"], message.clone()).await, Some(Code::Unauthorized));
    assert_eq!(apply(["editor", "viewer"], message).await, Some(Code::Unauthorized));
    assert_eq!(apply(["editor", "viewer"], json!({"types": ["document.created"]})).await, None);
    let unknown =
        json!({"id": "x", "workflowId": "react", "event": {"types": ["message.received"], "agent": "ghost"}});
    assert_eq!(world.refused("triggers.apply", unknown).await.code, Code::NotFound);
}

#[tokio::test]
async fn types_of_several_feeds_and_members_without_meaning_are_refused_with_their_place() {
    let world = World::with_neighbours(Place::Memory, Arc::default()).await;
    prepared(&world, json!({"types": ["workflow.failed"]}), json!({})).await;
    for (path, event) in [
        ("/event/types", json!({"types": ["workflow.failed", "document.created"]})),
        ("/event/types", json!({"types": ["message.received", "document.created"], "agent": "a"})),
        ("/event/agent", json!({"types": ["message.received"]})),
        ("/event/agent", json!({"types": ["document.created"], "agent": "a"})),
        ("/event/acknowledge", json!({"types": ["document.created"], "acknowledge": true})),
    ] {
        let refused =
            world.refused("triggers.apply", json!({"id": "t", "workflowId": "react", "event": event})).await;
        assert!(refused.message.starts_with(path), "{event}: {refused:?}");
    }
}
