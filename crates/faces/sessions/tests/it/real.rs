//! The face over the real sessions: the agent loop, the offline model, a store on disk or in memory.

use std::path::PathBuf;
use std::sync::Arc;

use orchestr8_models::{Catalog, Ports};
use orchestr8_sessions::{Hub, commands, tables};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Parts, memory, within};
use serde_json::{Value, json};

use crate::world::{Over, World, settings};

async fn world(store: &Sqlite) -> World {
    let kernel = Parts::on(Arc::new(store.clone())).kernel();
    let catalog = Catalog::new(Default::default(), Ports::of(&kernel)).unwrap();
    let settings_of_sessions =
        orchestr8_sessions::Settings::new(PathBuf::from("/"), PathBuf::from("/nowhere"));
    let hub = Hub::new(kernel.clone(), catalog, settings_of_sessions);
    for action in commands::all(&hub).unwrap() {
        kernel.registry().register(action).unwrap();
    }
    hub.start().await.unwrap();
    World::of(kernel, settings())
}

fn kinds(heard: &[Value]) -> Vec<&str> {
    heard.iter().map(|heard| heard["event"]["type"].as_str().or(heard["type"].as_str()).unwrap()).collect()
}

#[tokio::test]
async fn a_prompt_goes_from_the_wire_to_the_model_and_back() {
    within(async {
        let store = memory(&[tables::MIGRATIONS]);
        let world = world(&store).await;
        let mut client = world.client(Over::WebSocket).await;
        assert_eq!(client.hear().await["type"], "startup_recovery_summary");
        let created = client.ask(json!({"type": "create_session", "id": "c"})).await;
        assert_eq!((&created["success"], &created["sessionVersion"]), (&json!(true), &json!(0)), "{created}");
        let session = created["data"]["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(client.hear().await["type"], "session_created");
        let switched =
            client.ask(json!({"type": "switch_session", "sessionId": session, "afterSeq": 0})).await;
        assert_eq!(switched["data"]["sessionInfo"]["sessionId"], session.as_str());
        client.tell(json!({"type": "prompt", "id": "p", "sessionId": session, "message": "hello"})).await;
        let mut heard = Vec::new();
        while heard.last().is_none_or(|heard: &Value| heard["type"] != "response") {
            heard.push(client.hear().await);
        }
        let kinds = kinds(&heard);
        let place = |kind: &str| {
            kinds.iter().position(|found| *found == kind).unwrap_or_else(|| panic!("no {kind} in {kinds:?}"))
        };
        assert!(place("command_accepted") < place("command_started"));
        assert!(place("command_started") < place("agent_start"));
        assert!(place("agent_start") < place("message_update"));
        assert!(place("message_update") < place("agent_end"));
        assert!(place("agent_end") < place("command_finished"), "{kinds:?}");
        assert_eq!(heard.last().unwrap()["sessionVersion"], 1, "{heard:?}");
        let state = client.ask(json!({"type": "get_state", "sessionId": session})).await;
        assert_eq!(state["data"]["messageCount"], 2);
        let missing = client
            .ask(json!({"type": "set_model", "sessionId": session, "provider": "p", "modelId": "m"}))
            .await;
        assert_eq!(missing["error"], "Model not found: p/m");
        let metrics = client.ask(json!({"type": "get_metrics"})).await;
        assert_eq!(
            (&metrics["data"]["sessionCount"], &metrics["data"]["connectionCount"]),
            (&json!(1), &json!(1))
        );
        let deleted =
            client.ask(json!({"type": "delete_session", "sessionId": session, "ifSessionVersion": 1})).await;
        assert_eq!(deleted["data"]["deleted"], true, "{deleted}");
        assert_eq!(client.hear().await["type"], "session_deleted");
        assert!(client.rest().await.is_empty(), "it is told once");
    })
    .await;
}

#[tokio::test]
async fn answers_versions_and_events_outlive_the_process() {
    within(async {
        let store = memory(&[tables::MIGRATIONS]);
        let before = world(&store).await;
        let mut client = before.client(Over::Stdio).await;
        client.ask(json!({"type": "create_session", "id": "c", "sessionId": "s1"})).await;
        let prompt = json!({"type": "prompt", "id": "p", "sessionId": "s1", "message": "hello"});
        let first = client.ask(prompt.clone()).await;
        assert_eq!(first["sessionVersion"], 1, "{first}");
        drop((client, before));
        let after = world(&store).await;
        let mut client = after.client(Over::Stdio).await;
        let again = client.ask(prompt).await;
        assert_eq!((&again["replayed"], &again["sessionVersion"]), (&json!(true), &json!(1)), "{again}");
        let switched = client.ask(json!({"type": "switch_session", "sessionId": "s1", "afterSeq": 0})).await;
        assert_eq!(switched["sessionVersion"], 1);
        let mut last = 0;
        loop {
            let event = client.hear_of("event").await;
            let seq = event["seq"].as_u64().unwrap();
            assert!(seq > last, "{seq} after {last}");
            last = seq;
            if event["event"]["type"] == "agent_end" {
                break;
            }
        }
    })
    .await;
}
