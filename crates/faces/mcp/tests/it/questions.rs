//! Questions of the modern era over several rounds, and what becomes of a state that is not the one given.

use orchestr8_mcp::{Face, Settings};
use serde_json::{Value, json};

use crate::world::{Client, face, modern, settings};

fn caps() -> Value {
    json!({"elicitation": {}})
}

fn answer(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

async fn call(client: &Client, id: u64, name: &str, more: Value) -> Value {
    let mut params = json!({"name": name, "arguments": {"b": 1, "a": [2]}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.ask(json!(id), "tools/call", modern(params, &caps())).await
}

#[tokio::test(start_paused = true)]
async fn answers_of_earlier_rounds_travel_in_the_state() {
    let client = Client::of(&face());
    let first = call(&client, 1, "asks_twice", json!({})).await;
    assert_eq!(first["result"]["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["name"]);
    let state = &first["result"]["requestState"];
    let second = call(
        &client,
        2,
        "asks_twice",
        json!({"requestState": state, "inputResponses": {"name": answer("Anna")}}),
    )
    .await;
    assert_eq!(second["result"]["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["color"]);
    let next = &second["result"]["requestState"];
    assert_ne!(next, state);
    let third = call(
        &client,
        3,
        "asks_twice",
        json!({"requestState": next, "inputResponses": {"color": answer("red")}}),
    )
    .await;
    assert_eq!(third["result"]["content"][0]["text"], "\"Anna\" likes \"red\"");
}

#[tokio::test(start_paused = true)]
async fn a_state_counts_only_for_its_own_request() {
    let face = face();
    let client = Client::of(&face);
    let first = call(&client, 1, "asks", json!({})).await;
    let state = first["result"]["requestState"].as_str().unwrap();
    let refused = |answer: &Value| assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // Damaged, of another tool, with other arguments, of another server.
    refused(&call(&client, 2, "asks", json!({"requestState": format!("{state}-TAMPERED")})).await);
    refused(&call(&client, 3, "asks_twice", json!({"requestState": state})).await);
    refused(&call(&client, 4, "asks", json!({"requestState": state, "arguments": {}})).await);
    let elsewhere = Face::new(face.kernel().clone(), Settings { secret: [8; 32], ..settings() });
    refused(&call(&Client::of(&elsewhere), 5, "asks", json!({"requestState": state})).await);
    // Too late. Only waiting moves the clock.
    face.kernel().ports().clock.sleep(std::time::Duration::from_secs(3601)).await;
    refused(&call(&client, 6, "asks", json!({"requestState": state})).await);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_not_asked_for_what_it_has_not_declared() {
    let client = Client::of(&face());
    let params = modern(json!({"name": "asks"}), &json!({"sampling": {}}));
    let refused = client.ask(json!(1), "tools/call", params).await;
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({"elicitation": {}}));
}
