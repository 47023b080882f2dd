//! Results too long for one answer: a beginning, a link, and pages.

use orchestr8_kernel::{Limits, Principal, Transport};
use orchestr8_mcp::Settings;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

use crate::world::{Client, Heard, face_on, modern, settings, store};

fn face() -> orchestr8_mcp::Face {
    face_on(store(), Limits::default(), Settings { max_result_bytes: 1000, ..settings() })
}

async fn read(client: &Client, uri: &str) -> Value {
    client.ask(json!("read"), "resources/read", json!({"uri": uri})).await
}

#[tokio::test(start_paused = true)]
async fn a_long_result_is_read_in_pages() {
    let face = face();
    let client = Client::running(&face, "2025-11-25", &json!({}));
    let short = client.call(1, "long", json!({"count": 500})).await;
    assert_eq!(short["result"]["content"].as_array().unwrap().len(), 1);
    // Two bytes each, so that pages could be cut within a character.
    let answer = client.call(2, "long", json!({"count": 100_000})).await;
    let content = answer["result"]["content"].as_array().unwrap();
    assert!(content[0]["text"].as_str().unwrap().len() < 3000);
    assert_eq!((&content[1]["type"], &content[1]["size"]), (&json!("resource_link"), &json!(200_000)));
    let first = content[1]["uri"].as_str().unwrap().to_owned();
    let (mut whole, mut next) = (String::new(), Some(first.clone()));
    while let Some(uri) = next {
        let page = read(&client, &uri).await;
        let contents = &page["result"]["contents"][0];
        assert_eq!(contents["uri"], uri);
        whole.push_str(contents["text"].as_str().unwrap());
        next = contents["_meta"].get("orchestr8/next").map(|next| next.as_str().unwrap().to_owned());
    }
    assert_eq!(whole, "ä".repeat(100_000));
    for wrong in [format!("{first}?offset=1"), format!("{first}?offset=999999"), format!("{first}?page=1")] {
        assert_eq!(read(&client, &wrong).await["error"]["code"], -32602, "{wrong}");
    }
    assert_eq!(read(&client, "result://none").await["error"]["code"], -32002);
    face.kernel().ports().clock.sleep(Duration::from_secs(3601)).await;
    assert_eq!(read(&client, &first).await["error"]["code"], -32002, "it has expired");
}

#[tokio::test(start_paused = true)]
async fn a_long_result_belongs_to_who_asked_for_it() {
    let face = face();
    let client = Client::of(&face);
    let params = modern(json!({"name": "echo", "arguments": {"message": "x".repeat(2000)}}), &json!({}));
    let answer = client.ask(json!(1), "tools/call", params).await;
    let link = &answer["result"]["content"][1];
    assert_eq!(link["mimeType"], "application/json");
    let params = modern(json!({"uri": link["uri"]}), &json!({}));
    let own = client.ask(json!(2), "resources/read", params.clone()).await;
    assert!(own["result"]["contents"][0]["text"].as_str().unwrap().starts_with("{\"message\":"));
    let heard = Arc::new(Heard::default());
    let other = Principal { name: "other".into(), ..Principal::local() };
    let other = Client { connection: face.connect(Arc::new(other), Transport::Http, heard.clone()), heard };
    assert_eq!(other.ask(json!(1), "resources/read", params).await["error"]["code"], -32602);
}
