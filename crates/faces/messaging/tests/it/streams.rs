//! The inbox as a stream: live, resumed, and begun with what was not acknowledged.

use futures::StreamExt;
use http::Method;
use orchestr8_testing::within;
use serde_json::{Value, json};

use crate::world::World;

struct Stream(axum::body::BodyDataStream, String);

impl Stream {
    async fn open(world: &World, target: &str, headers: &[(&str, &str)]) -> Self {
        let headers: Vec<(&str, &str)> =
            [("accept", "text/event-stream")].iter().chain(headers).copied().collect();
        let response = world.open(Method::GET, target, &headers, None, None).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self(response.into_body().into_data_stream(), String::new())
    }

    /// The id and the payload of the next message.
    async fn next(&mut self) -> (u64, Value) {
        loop {
            if let Some((event, rest)) =
                self.1.split_once("\n\n").map(|(event, rest)| (event.to_owned(), rest.to_owned()))
            {
                self.1 = rest;
                let line =
                    |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let (Some(id), Some(data)) = (line("id: "), line("data: ")) {
                    let envelope: Value = serde_json::from_str(&data).unwrap();
                    return (id.parse().unwrap(), envelope["payload"].clone());
                }
                continue;
            }
            let piece = within(self.0.next()).await.expect("the stream goes on").unwrap();
            self.1.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

async fn send(world: &World, n: u64) {
    let body =
        json!({"sourceAgentId": "me", "targetAgentId": "planner", "messageType": "EVENT", "payload": n});
    assert_eq!(world.post("/aacp/messages", body).await.status, 201);
}

#[tokio::test]
async fn a_stream_goes_on_and_is_resumed_where_it_was() {
    let world = World::new();
    world.post("/aacp/agents", json!({"agentId": "planner"})).await;
    send(&world, 10).await;
    let mut stream = Stream::open(&world, "/aacp/agents/planner/inbox", &[]).await;
    assert_eq!(stream.next().await, (1, json!(10)));
    send(&world, 20).await;
    assert_eq!(stream.next().await, (2, json!(20)), "what comes while it is open is told at once");
    drop(stream);
    send(&world, 30).await;
    let mut resumed = Stream::open(&world, "/aacp/agents/planner/inbox", &[("last-event-id", "2")]).await;
    assert_eq!(resumed.next().await, (3, json!(30)));
    let mut replayed = Stream::open(&world, "/aacp/agents/planner/inbox?afterSeq=0", &[]).await;
    assert_eq!(replayed.next().await, (1, json!(10)));
    world.post("/aacp/agents/planner/acks", json!({"inboxSeq": 2})).await;
    let mut fresh = Stream::open(&world, "/aacp/agents/planner/inbox", &[]).await;
    assert_eq!(
        fresh.next().await,
        (3, json!(30)),
        "without a place it begins with what was not acknowledged"
    );
}

#[tokio::test]
async fn what_is_wrong_is_told_before_the_stream_begins() {
    let world = World::new();
    let headers = [("accept", "text/event-stream")];
    let nobody = world.ask(Method::GET, "/aacp/agents/nobody/inbox", &headers, None).await;
    assert_eq!((nobody.status.as_u16(), nobody.code().as_str()), (404, "NOT_FOUND"));
    let odd = world.ask(Method::GET, "/aacp/agents/nobody/inbox?afterSeq=x", &headers, None).await;
    assert_eq!(odd.code(), "INVALID_ARGUMENT");
}
