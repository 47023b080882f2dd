//! How conversations end: the client goes, the server stops.

use std::time::Duration;

use orchestr8_sessions_face::Ended;
use serde_json::json;

use crate::world::{Client, Over, World};

const LIMIT: Duration = Duration::from_secs(30);

fn wait(ms: u64) -> serde_json::Value {
    json!({"type": "prompt", "id": "p", "sessionId": "s1", "message": format!("wait {ms}")})
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_is_told_drained_and_closed() {
    let world = World::new();
    let mut client = world.client(Over::WebSocket).await;
    client.create("s1").await;
    client.tell(wait(100)).await;
    client.hear_of("command_started").await;
    let face = world.face.clone();
    let stopping = tokio::spawn(async move { face.shutdown("graceful_shutdown", LIMIT).await });
    let told =
        json!({"type": "server_shutdown", "data": {"reason": "graceful_shutdown", "timeoutMs": 30_000}});
    assert_eq!(client.hear().await, told);
    // What comes now is refused, and nothing is told of it.
    client.tell(json!({"type": "list_sessions", "id": "l"})).await;
    let refused = json!({"id": "l", "type": "response", "command": "list_sessions", "success": false,
                         "error": "Server is shutting down", "errorCode": "SHUTTING_DOWN"});
    assert_eq!(client.hear().await, refused);
    // What was under way is answered.
    assert_eq!(client.hear().await["type"], "command_finished");
    assert_eq!(client.hear().await["id"], "p");
    assert_eq!(client.hear_text().await, "closed 1001 Server shutting down");
    assert!(stopping.await.unwrap());
    let mut late = world.stranger(Over::WebSocket, 4096).await;
    assert_eq!(late.hear_text().await, "closed 1001 Server shutting down");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_ever() {
    let world = World::new();
    let mut client = world.client(Over::WebSocket).await;
    client.create("s1").await;
    client.tell(wait(100_000)).await;
    client.hear_of("command_started").await;
    let face = world.face.clone();
    let stopping = tokio::spawn(async move { face.shutdown("graceful_shutdown", LIMIT).await });
    client.hear_of("server_shutdown").await;
    assert_eq!(client.hear_text().await, "closed 1001 Server shutting down");
    drop(client);
    assert!(!stopping.await.unwrap(), "something was left");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_waits_for_the_answers() {
    let world = World::new();
    let mut client = world.client(Over::Stdio).await;
    client.create("s1").await;
    client.tell(wait(100)).await;
    // A last line without an end is a line.
    client.end_input().await;
    assert_eq!(client.response().await["id"], "p");
    assert_eq!(client.next_text().await, None);
    let Client::Pipes(pipes) = client else { panic!("no pipes") };
    assert_eq!(pipes.served.await.unwrap(), Ended::Input);
    assert_eq!(world.face.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_pipes_as_a_shutdown_does() {
    let world = World::new();
    let mut client = world.client(Over::Stdio).await;
    client.create("s1").await;
    client.tell(wait(100)).await;
    client.hear_of("command_started").await;
    let Client::Pipes(pipes) = &client else { panic!("no pipes") };
    pipes.stop.cancel();
    assert_eq!(client.hear().await["type"], "server_shutdown");
    client.tell(json!({"type": "list_sessions", "id": "l"})).await;
    assert_eq!(client.hear().await["error"], "Server is shutting down");
    assert_eq!(client.response().await["id"], "p");
    assert_eq!(client.next_text().await, None);
    let Client::Pipes(pipes) = client else { panic!("no pipes") };
    assert_eq!(pipes.served.await.unwrap(), Ended::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_takes_nothing_with_it() {
    let world = World::new();
    let mut gone = world.client(Over::WebSocket).await;
    let mut here = world.client(Over::WebSocket).await;
    gone.create("s1").await;
    here.hear_of("session_created").await;
    gone.ask(json!({"type": "switch_session", "sessionId": "s1"})).await;
    gone.tell(wait(100)).await;
    gone.hear_of("command_started").await;
    drop(gone);
    loop {
        let heard = here.hear_of("command_finished").await;
        if heard["data"]["commandId"] == "p" {
            assert_eq!(heard["data"]["success"], true);
            break;
        }
    }
    assert_eq!(world.face.connections(), 1);
    let again = here.ask(wait(100)).await;
    assert_eq!((&again["replayed"], &again["sessionVersion"]), (&json!(true), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn the_root_and_a_path_of_its_own_speak_websocket_and_nothing_else() {
    use axum::body::Body;
    use futures::StreamExt;
    let world = World::new();
    let mut socket = world.socket("/ws/session", 1 << 16).await;
    assert!(socket.next().await.unwrap().unwrap().to_text().unwrap().contains("server_ready"));
    for path in ["/", "/ws/session"] {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        let service = hyper_util::service::TowerToHyperService::new(world.face.router());
        let response = hyper::service::Service::call(&service, request).await.unwrap();
        assert_eq!(response.status(), http::StatusCode::UPGRADE_REQUIRED);
    }
}
