//! The transport of revision 2024-11-05.

use serde_json::{Value, json};

use super::client::{ACCEPT, Client, EVENTS, JSON, initialize, request, text};
use super::world::{Plan, World};
use crate::face::Eras;

/// A client with its stream, and where it sends messages.
struct Session {
    stream: Client,
    address: String,
}

impl Session {
    async fn open(world: &World) -> Self {
        let mut stream = world.client().await;
        stream.send_to("/sse", "GET", &[EVENTS], b"").await;
        let head = stream.head().await;
        assert!(head.is_stream() && head.status == 200, "{head:?}");
        let first = stream.block().await.unwrap();
        let address =
            first.strip_prefix("event: endpoint\ndata: ").unwrap_or_else(|| panic!("{first}")).to_owned();
        assert!(address.starts_with("/sse/messages?sessionId="), "{address}");
        Self { stream, address }
    }

    /// Sends a message and gives its status.
    async fn tell(&self, world: &World, message: &Value) -> u16 {
        tell(world, &self.address, message).await
    }

    async fn hear(&mut self) -> Value {
        self.stream.event().await.unwrap().json()
    }
}

async fn tell(world: &World, address: &str, message: &Value) -> u16 {
    let mut client = world.client().await;
    client.send_to(address, "POST", &[JSON], message.to_string().as_bytes()).await;
    let head = client.head().await;
    head.status
}

#[tokio::test]
async fn a_client_of_the_first_revision_is_served_on_its_stream() {
    let world = World::new().await;
    let mut session = Session::open(&world).await;
    assert_eq!(session.tell(&world, &request(1, "tools/list", json!({}))).await, 202);
    assert_eq!(session.hear().await["error"]["code"], -32002, "the gate is the same");
    assert_eq!(session.tell(&world, &initialize("2024-11-05")).await, 202);
    assert_eq!(session.hear().await["result"]["protocolVersion"], "2024-11-05");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(session.tell(&world, &initialized).await, 202);
    let call = request(2, "tools/call", json!({"name": "echo", "arguments": {"message": "hi"}}));
    assert_eq!(session.tell(&world, &call).await, 202);
    assert_eq!(text(&session.hear().await), "hi");
    let long = "x".repeat(900_000);
    for id in 3..6 {
        let call = request(id, "tools/call", json!({"name": "echo", "arguments": {"message": long}}));
        assert_eq!(session.tell(&world, &call).await, 202);
        assert_eq!(session.hear().await["id"], id);
    }
    world.change("tools");
    assert_eq!(session.hear().await["method"], "notifications/tools/list_changed");
    drop(session);
    while world.endpoint.sse.open() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_not_taken_is_refused_as_on_the_other_transport() {
    let world = World::new().await;
    let session = Session::open(&world).await;
    let ping = request(1, "ping", json!({}));
    for address in
        ["/sse/messages", "/sse/messages?sessionId=none", &session.address.replace("sessionId", "session")]
    {
        assert_eq!(tell(&world, address, &ping).await, 404, "{address}");
    }
    for (path, method, headers, status) in [
        ("/sse", "GET", vec![("Accept", "application/json")], 406),
        ("/sse", "POST", vec![JSON, ACCEPT], 405),
        (&session.address, "POST", vec![("Content-Type", "text/plain")], 415),
    ] {
        let mut client = world.client().await;
        client.send_to(path, method, &headers, b"{}").await;
        assert_eq!(client.head().await.status, status, "{method} {path}");
    }
    let modern = World::with(Plan { eras: Eras { legacy: false, modern: true }, ..Plan::default() }).await;
    let mut client = modern.client().await;
    client.send_to("/sse", "GET", &[EVENTS], b"").await;
    assert_eq!(client.head().await.status, 405);
}
