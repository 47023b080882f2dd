//! Clients that come back to a stream.

use serde_json::json;

use super::client::{EVENTS, Event, call, text};
use super::world::{Session, World};

/// Everything on a stream, from the event after this one to its end.
async fn rest(session: &Session, after: &str) -> Vec<Event> {
    let (mut client, head) = session.get(&[("Last-Event-ID", after)]).await;
    assert!(head.is_stream(), "{head:?}");
    let mut events = Vec::new();
    while let Some(event) = client.event().await {
        events.push(event);
    }
    events
}

#[tokio::test]
async fn a_client_that_was_sent_away_polls_for_its_answer() {
    let world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    // Revision and header need not agree: the negotiated one decides.
    let headers = [session.header(), ("MCP-Protocol-Version", "2025-03-26")];
    let head = client.open(&headers, &call(1, "park", json!({}))).await;
    assert!(head.is_stream());
    let priming = client.event().await.unwrap();
    assert_eq!((priming.data.as_str(), priming.retry.is_some()), ("", true));
    assert_eq!(client.event().await, None, "the server ends the stream before the answer");
    let id = priming.id.unwrap();
    let (mut polling, head) = session.get(&[("Last-Event-ID", &id)]).await;
    assert!(head.is_stream());
    assert_eq!(polling.event().await.unwrap().id.as_ref(), Some(&id));
    world.gate.add_permits(1);
    let reply = polling.event().await.unwrap().json();
    assert_eq!((reply["id"].as_u64(), text(&reply)), (Some(1), "let go"));
    assert_eq!(polling.event().await, None);
}

#[tokio::test]
async fn leaving_does_not_cancel_and_the_answer_waits() {
    let mut world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    client.open(&[session.header()], &call(1, "talk", json!({}))).await;
    client.event().await.unwrap();
    let seen = client.event().await.unwrap().id.unwrap();
    drop(client);
    world.gate.add_permits(1);
    let events = rest(&session, &seen).await;
    assert_eq!(text(&events.last().unwrap().json()), "let go");
    assert!(world.stopped.try_recv().is_err(), "the tool never heard of it");
    // Whoever missed even that can ask again.
    assert_eq!(text(&rest(&session, &seen).await.last().unwrap().json()), "let go");
}

#[tokio::test]
async fn a_stream_goes_on_exactly_where_the_client_says_it_was() {
    let world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    client.open(&[session.header()], &call(1, "say", json!({"times": 5}))).await;
    let mut all = Vec::new();
    while let Some(event) = client.event().await {
        all.push(event);
    }
    assert_eq!(all.len(), 7, "priming, five messages, the reply");
    for seen in 0..all.len() {
        let again = rest(&session, all[seen].id.as_ref().unwrap()).await;
        assert_eq!(again[0].id, all[seen].id, "it begins with where the client was");
        assert_eq!(again[1..], all[seen + 1..], "after {seen}");
    }
}

#[tokio::test]
async fn a_stream_of_one_call_never_shows_another() {
    let world = World::new().await;
    let session = world.session().await;
    let mut first = world.client().await;
    first.open(&[session.header()], &call(1, "say", json!({"times": 1}))).await;
    let id = first.event().await.unwrap().id.unwrap();
    let mut second = world.client().await;
    second.open(&[session.header()], &call(2, "say", json!({"times": 1}))).await;
    while second.event().await.is_some() {}
    let events = rest(&session, &id).await;
    assert_eq!(events.len(), 3);
    assert_eq!(events[1].json()["params"]["progressToken"], 1);
    assert_eq!(events[2].json()["id"], 1);
}

#[tokio::test]
async fn an_unknown_place_is_refused_and_so_is_one_of_another_session() {
    let world = World::new().await;
    let (session, other) = (world.session().await, world.session().await);
    let mut client = world.client().await;
    client.open(&[session.header()], &call(1, "say", json!({}))).await;
    let id = client.event().await.unwrap().id.unwrap();
    let (life, place) = id.split_once('-').unwrap();
    let long = "1".repeat(5000);
    for unknown in ["", "1", "é", &long, &format!("{life}-c99-0"), &format!("00000000-{place}")] {
        let headers = [EVENTS, session.header(), ("Last-Event-ID", unknown)];
        let answer = world.client().await.ask("GET", &headers, b"").await;
        assert_eq!(answer.head.status, 400, "{unknown}");
        assert!(answer.json()["error"]["message"].is_string());
    }
    let theirs =
        world.client().await.ask("GET", &[EVENTS, other.header(), ("Last-Event-ID", &id)], b"").await;
    assert_eq!(theirs.head.status, 400);
}

#[tokio::test]
async fn the_newer_of_two_readers_takes_over() {
    let world = World::new().await;
    let session = world.session().await;
    let mut first = world.client().await;
    first.open(&[session.header()], &call(1, "talk", json!({}))).await;
    let id = first.event().await.unwrap().id.unwrap();
    first.event().await.unwrap();
    let (mut second, _) = session.get(&[("Last-Event-ID", &id)]).await;
    second.event().await.unwrap();
    assert_eq!(first.event().await, None);
    world.gate.add_permits(1);
    assert_eq!(second.event().await.unwrap().json()["method"], "notifications/progress");
    assert_eq!(text(&second.event().await.unwrap().json()), "let go");
}

#[tokio::test]
async fn news_missed_on_the_stand_alone_stream_are_told_later() {
    let world = World::new().await;
    let session = world.session().await;
    let (mut client, _) = session.get(&[]).await;
    client.event().await.unwrap();
    world.change("tools");
    let seen = client.event().await.unwrap().id.unwrap();
    drop(client);
    world.change("prompts");
    let (mut client, _) = session.get(&[("Last-Event-ID", &seen)]).await;
    client.event().await.unwrap();
    assert_eq!(client.event().await.unwrap().json()["method"], "notifications/prompts/list_changed");
    world.change("resources");
    assert_eq!(client.event().await.unwrap().json()["method"], "notifications/resources/list_changed");
}
