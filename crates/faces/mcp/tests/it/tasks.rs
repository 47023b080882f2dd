//! Tasks beyond what the transcripts show: a restart, another owner, a list in pages, a stream that follows one.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::{Limits, Principal, Transport};
use orchestr8_mcp::Settings;
use orchestr8_testing::Holding;
use serde_json::{Value, json};

use crate::world::{Client, Heard, face, face_on, modern, settings, store};

fn caps() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}})
}

async fn begin(client: &Client, id: u64, name: &str, arguments: Value) -> String {
    let params = modern(json!({"name": name, "arguments": arguments}), &caps());
    let answer = client.ask(json!(id), "tools/call", params).await;
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    answer["result"]["taskId"].as_str().unwrap().to_owned()
}

async fn look(client: &Client, task: &str) -> Value {
    client.ask(json!("look"), "tasks/get", modern(json!({"taskId": task}), &caps())).await
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_the_process_that_ran_it() {
    let store = store();
    let client = Client::of(&face_on(store.clone(), Limits::default(), settings()));
    let done = begin(&client, 1, "job", json!({"ms": 1})).await;
    let cut = begin(&client, 2, "job", json!({"ms": 1_000_000})).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let client = Client::of(&face_on(Arc::new(store.restart()), Limits::default(), settings()));
    let done = look(&client, &done).await;
    assert_eq!(done["result"]["result"]["content"][0]["text"], "worked", "{done}");
    let cut = look(&client, &cut).await;
    assert_eq!(
        (&cut["result"]["status"], &cut["result"]["error"]["data"]["code"]),
        (&json!("failed"), &json!("OUTCOME_UNKNOWN"))
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_sees_the_tasks_of_others() {
    let face = face();
    let client = Client::of(&face);
    let task = begin(&client, 1, "job", json!({"ms": 100})).await;
    let heard = Arc::new(Heard::default());
    let other = Principal { name: "other".into(), ..Principal::local() };
    let other = Client { connection: face.connect(Arc::new(other), Transport::Http, heard.clone()), heard };
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let params = modern(json!({"taskId": task, "inputResponses": {}}), &caps());
        assert_eq!(other.ask(json!(1), method, params).await["error"]["code"], -32602, "{method}");
    }
    assert_eq!(look(&client, &task).await["result"]["status"], "working");
}

/// A record without an end tells of a server that stopped, unless the task runs here.
#[tokio::test(start_paused = true)]
async fn a_task_that_ends_while_tasks_are_listed_has_not_failed() {
    let asked = Holding::on(store());
    let client =
        Client::running(&face_on(asked.clone(), Limits::default(), settings()), "2025-11-25", &json!({}));
    let params = json!({"name": "job", "arguments": {"ms": 100}, "task": {"ttl": 60_000}});
    client.ask(json!(1), "tools/call", params).await;
    let held = asked.after("FROM mcp_task");
    let ends = async {
        held.reached().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        held.release();
    };
    let (listed, ()) = tokio::join!(client.ask(json!("list"), "tasks/list", json!({})), ends);
    assert_eq!(listed["result"]["tasks"][0]["status"], "completed", "{listed}");
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed_in_pages_and_expire() {
    let face = face_on(store(), Limits::default(), Settings { page_size: 2, ..settings() });
    let client = Client::running(&face, "2025-11-25", &json!({}));
    for id in 0..5 {
        let params = json!({"name": "job", "arguments": {"ms": 1}, "task": {"ttl": 60_000}});
        client.ask(json!(id), "tools/call", params).await;
    }
    let (mut found, mut cursor) = (Vec::new(), json!({}));
    loop {
        let answer = client.ask(json!("list"), "tasks/list", cursor).await;
        found.extend(answer["result"]["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].clone()));
        match answer["result"].get("nextCursor") {
            Some(next) => cursor = json!({"cursor": next}),
            None => break,
        }
    }
    assert_eq!(found.len(), 5);
    found.dedup();
    assert_eq!(found.len(), 5);
    face.kernel().ports().clock.sleep(Duration::from_secs(61)).await;
    let answer = client.ask(json!("list"), "tasks/list", json!({})).await;
    assert_eq!(answer["result"]["tasks"], json!([]));
    let wrong = client.ask(json!("list"), "tasks/list", json!({"cursor": "dGFza3M6eA"})).await;
    assert_eq!(wrong["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_stream_follows_a_task_to_its_end() {
    let client = Client::of(&face());
    let task = begin(&client, 1, "asking_job", json!({})).await;
    let params = modern(json!({"notifications": {"taskIds": [task, "unknown"]}}), &caps());
    client.tell(
        &json!({"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params}).to_string(),
    );
    let acknowledged = client.hear().await;
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([task]));
    let answers = json!({"taskId": task, "inputResponses": {"name": {"content": {"name": "Anna"}}}});
    let mut heard = vec![client.ask(json!(2), "tasks/update", modern(answers, &caps())).await];
    tokio::time::sleep(Duration::from_millis(5)).await;
    heard.extend(client.rest().await.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    let last = heard.iter().rfind(|message| message["method"] == "notifications/tasks").unwrap();
    assert_eq!(last["params"]["status"], "completed");
    assert_eq!(last["params"]["result"]["content"][0]["text"], "Hello, Anna!");
    assert_eq!(last["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
}

#[tokio::test(start_paused = true)]
async fn a_task_goes_on_when_its_client_is_gone() {
    let face = face();
    let client = Client::of(&face);
    let task = begin(&client, 1, "job", json!({"ms": 50})).await;
    client.connection.close();
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(look(&Client::of(&face), &task).await["result"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn who_looks_after_a_task_reads_where_it_stands() {
    let face = face();
    let client = Client::of(&face);
    let arguments = json!({"ms": 50, "saying": "half of it".repeat(100)});
    let task = begin(&client, 1, "job", arguments.clone()).await;
    let legacy = Client::running(&face, "2025-11-25", &json!({}));
    let params = json!({"name": "job", "arguments": arguments, "task": {}});
    let begun = legacy.ask(json!(2), "tools/call", params).await;
    let subject = json!({"taskId": begun["result"]["task"]["taskId"]});
    tokio::time::sleep(Duration::from_millis(10)).await;
    let words = json!("half of it".repeat(50));
    assert_eq!(look(&client, &task).await["result"]["statusMessage"], words, "cut to what can be shown");
    let seen = legacy.ask(json!(3), "tasks/get", subject).await;
    assert_eq!((&seen["result"]["statusMessage"], &seen["result"]["status"]), (&words, &json!("working")));
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(look(&client, &task).await["result"].get("statusMessage"), None, "its end says more");
}
