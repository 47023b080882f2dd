//! Sessions that outlive a restart, and those that must not live too long.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_edge::{Auth, Token};
use orchestr8_kernel::ports::clock::Simulated;
use orchestr8_stores::sqlite::Place;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::client::{EVENTS, call, initialize, initialized, request, text};
use super::world::{Plan, World};
use crate::http;

fn lasting(folder: &tempfile::TempDir) -> Plan {
    Plan { place: Place::File(folder.path().join("data.db")), ..Plan::default() }
}

#[tokio::test]
async fn a_session_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(lasting(&folder)).await;
    let session = world.session().await;
    let before = session.post(&request(1, "logging/setLevel", json!({"level": "error"}))).await;
    let connection = before.head.get("x-correlation-id").unwrap().to_owned();
    let mut client = world.client().await;
    client.open(&[session.header()], &call(1, "say", json!({}))).await;
    let event = client.event().await.unwrap().id.unwrap();
    let ended = world.session().await;
    ended.delete().await;
    let begun = client_session(&world).await;
    world.end().await;

    let world = World::with(lasting(&folder)).await;
    assert_eq!(world.sessions(), 0, "sessions are read back when they are used");
    let mut client = world.client().await;
    let answer = client.post(&[session.header()], &call(2, "echo", json!({"message": "still here"}))).await;
    assert_eq!(text(&answer.json()), "still here");
    let answer = client.post(&[session.header()], &request(6, "ping", json!({}))).await;
    assert_eq!(answer.head.get("x-correlation-id"), Some(connection.as_str()));
    let saved = world.endpoint.sessions.known(&session.id, &orchestr8_kernel::Principal::local()).unwrap();
    let saved = saved.connection.saved().unwrap();
    assert_eq!(serde_json::to_value(saved.log_level).unwrap(), "error");
    assert_eq!(client.post(&[ended.header()], &request(3, "ping", json!({}))).await.head.status, 404);

    // One that was only begun is still to be told that its client is ready.
    let header = [("Mcp-Session-Id", begun.as_str())];
    assert_eq!(client.post(&header, &request(4, "ping", json!({}))).await.refusal(), (400, -32002));
    assert_eq!(client.post(&header, &initialized()).await.head.status, 202);
    assert_eq!(client.post(&header, &request(5, "ping", json!({}))).await.json()["result"], json!({}));

    // Streams are not kept: an answer is gone, listening begins anew.
    let gone = client.ask("GET", &[EVENTS, session.header(), ("Last-Event-ID", &event)], b"").await;
    assert_eq!(gone.head.status, 400);
    let listening = event.replace("-c", "-l");
    client.send("GET", &[EVENTS, session.header(), ("Last-Event-ID", &listening)], b"").await;
    assert!(client.head().await.is_stream());
    client.event().await.unwrap();
    world.change("tools");
    assert_eq!(client.event().await.unwrap().json()["method"], "notifications/tools/list_changed");
}

/// A session whose client has not yet said that it is ready.
async fn client_session(world: &World) -> String {
    let answer = world.client().await.post(&[], &initialize("2025-11-25")).await;
    answer.head.get("mcp-session-id").unwrap().to_owned()
}

#[tokio::test]
async fn many_first_requests_after_a_restart_find_one_session() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(lasting(&folder)).await;
    let session = world.session().await;
    world.end().await;
    let world = World::with(lasting(&folder)).await;
    let ask = async |id: u64| {
        let mut client = world.client().await;
        client.post(&[session.header()], &call(id, "echo", json!({"message": "x"}))).await
    };
    let answers = futures::future::join_all((0..32).map(ask)).await;
    assert!(answers.iter().all(|answer| answer.head.status == 200));
    assert_eq!(world.sessions(), 1);
}

#[tokio::test]
async fn a_session_deleted_after_a_restart_is_gone_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(lasting(&folder)).await;
    let session = world.session().await;
    world.end().await;
    let world = World::with(lasting(&folder)).await;
    let mut client = world.client().await;
    assert_eq!(client.ask("DELETE", &[session.header()], b"").await.head.status, 204);
    world.end().await;
    let world = World::with(lasting(&folder)).await;
    let mut client = world.client().await;
    assert_eq!(client.ask("DELETE", &[session.header()], b"").await.head.status, 404);
}

#[tokio::test]
async fn a_session_that_is_being_deleted_is_never_brought_back() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(lasting(&folder)).await;
    for _ in 0..10 {
        let session = world.session().await;
        let asks = futures::future::join_all((0..8).map(|_| session.status(&world)));
        let (deleted, asked) = futures::future::join(session.delete(), asks).await;
        assert_eq!(deleted.head.status, 204);
        assert!(asked.iter().all(|status| [200, 404].contains(status)), "{asked:?}");
        assert_eq!((session.status(&world).await, world.sessions()), (404, 0));
    }
}

#[tokio::test]
async fn what_cannot_be_saved_is_not_acknowledged() {
    let world = World::new().await;
    let session = world.session().await;
    world.store.close().await;
    let refused = world.client().await.post(&[], &initialize("2025-11-25")).await;
    assert_eq!((refused.refusal(), refused.head.get("mcp-session-id")), ((503, -32603), None));
    assert_eq!(refused.json()["error"]["data"]["code"], "STORE_FAILED");
    assert_eq!(world.sessions(), 1);
    assert_eq!(session.status(&world).await, 200, "what needs no store goes on");
    let level = session.post(&request(7, "logging/setLevel", json!({"level": "error"}))).await;
    assert_eq!((level.refusal(), &level.json()["id"]), ((503, -32603), &json!(7)));
    assert_eq!(session.delete().await.refusal(), (503, -32603));
    assert_eq!(world.sessions(), 0);
}

#[tokio::test]
async fn the_least_recently_used_idle_session_makes_room() {
    let http = http::Settings { max_sessions: 3, ..http::Settings::default() };
    let world = World::with(Plan { http, ..Plan::default() }).await;
    let (one, two, three) = (world.session().await, world.session().await, world.session().await);
    let ping = request(1, "ping", json!({}));
    // The oldest is in use by a listener, the second was used just now.
    let (mut listening, _) = one.get(&[]).await;
    listening.event().await.unwrap();
    two.post(&ping).await;
    let four = world.session().await;
    assert_eq!(world.sessions(), 3);
    let mut statuses = Vec::new();
    for session in [&one, &two, &three, &four] {
        statuses.push(session.post(&ping).await.head.status);
    }
    assert_eq!(statuses, [200, 200, 404, 200]);
}

#[tokio::test]
async fn when_all_sessions_are_in_use_one_more_is_refused() {
    let http = http::Settings { max_sessions: 2, ..http::Settings::default() };
    let world = World::with(Plan { http, ..Plan::default() }).await;
    let (one, two) = (world.session().await, world.session().await);
    let (mut first, _) = one.get(&[]).await;
    let (mut second, _) = two.get(&[]).await;
    first.event().await.unwrap();
    second.event().await.unwrap();
    let refused = world.client().await.post(&[], &initialize("2025-11-25")).await;
    assert_eq!(refused.refusal(), (503, -32603));
    assert_eq!(refused.json()["error"]["data"]["code"], "RESOURCE_EXHAUSTED");
    assert_eq!(two.delete().await.head.status, 204);
    world.session().await;
    assert_eq!(world.sessions(), 2);
}

#[tokio::test]
async fn a_session_nobody_uses_ends() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(Simulated::new());
    let plan = |clock: &Arc<Simulated>| Plan {
        http: http::Settings { session_idle_ms: 1_000_000, ..http::Settings::default() },
        clock: clock.clone(),
        ..lasting(&folder)
    };
    let world = World::with(plan(&clock)).await;
    let (idle, used, read) = (world.session().await, world.session().await, world.session().await);
    let (mut listening, _) = read.get(&[]).await;
    listening.event().await.unwrap();
    clock.advance(Duration::from_secs(999));
    world.endpoint.sessions.sweep().await.unwrap();
    assert_eq!(world.sessions(), 3);
    used.post(&request(1, "ping", json!({}))).await;
    clock.advance(Duration::from_secs(999));
    world.endpoint.sessions.sweep().await.unwrap();
    assert_eq!(world.sessions(), 2, "one was used, one is listened to");
    assert_eq!(idle.post(&request(1, "ping", json!({}))).await.head.status, 404);
    drop(listening);
    world.end().await;

    // What the store knows to be in use is there after a restart; what has been idle since is not.
    let world = World::with(plan(&clock)).await;
    assert_eq!(used.status(&world).await, 200);
    clock.advance(Duration::from_secs(2000));
    assert_eq!(read.status(&world).await, 404);
}

impl super::world::Session {
    async fn status(&self, world: &World) -> u16 {
        world.client().await.post(&[self.header()], &request(1, "ping", json!({}))).await.head.status
    }
}

#[tokio::test]
async fn a_session_belongs_to_whoever_made_it() {
    let token = |name: &str, tenant: &str| {
        let sha256_hex = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
        Token { name: name.into(), sha256_hex, roles: vec![], tenant: tenant.into(), reuse_name: false }
    };
    let tokens = vec![token("ada", "acme"), token("bob", "acme"), token("eve", "other")];
    let folder = tempfile::tempdir().unwrap();
    let plan = || Plan { auth: Auth { tokens: tokens.clone(), stored: None }, ..lasting(&folder) };
    let world = World::with(plan()).await;
    let ada = ("Authorization", "Bearer ada");
    let session = world.session_of("2025-11-25", &[ada]).await;
    assert_eq!(session.post(&request(1, "ping", json!({}))).await.head.status, 401);
    let who = world.client().await.post(&[ada, session.header()], &call(1, "who", json!({}))).await.json();
    assert!(text(&who).contains("ada"));
    world.end().await;
    let world = World::with(plan()).await;
    let mut client = world.client().await;
    // First it has to be read back, then it is in memory.
    for _ in 0..2 {
        for other in ["Bearer bob", "Bearer eve"] {
            let headers = [("Authorization", other), session.header()];
            assert_eq!(client.post(&headers, &request(1, "ping", json!({}))).await.head.status, 404);
            assert_eq!(client.ask("DELETE", &headers, b"").await.head.status, 404);
            let get = client.ask("GET", &[&[EVENTS], &headers[..]].concat(), b"").await;
            assert_eq!(get.head.status, 404);
        }
        assert_eq!(
            client.post(&[ada, session.header()], &request(1, "ping", json!({}))).await.head.status,
            200
        );
    }
}
