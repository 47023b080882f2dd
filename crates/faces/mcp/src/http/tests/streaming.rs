//! Answers that are streams, and the stand-alone stream.

use serde_json::{Value, json};

use super::client::{Client, Event, Head, call, request, text};
use super::world::{Plan, World};
use crate::http;

/// Opens a call whose answer is a stream, and takes its priming event.
async fn open(world: &World, session: &super::world::Session, body: &Value) -> (Client, Head, Event) {
    let mut client = world.client().await;
    let head = client.open(&[session.header()], body).await;
    assert!(head.is_stream(), "{head:?}");
    let priming = client.event().await.unwrap();
    (client, head, priming)
}

#[tokio::test]
async fn what_is_said_before_the_reply_makes_the_answer_a_stream() {
    let world = World::new().await;
    let session = world.session().await;
    let (mut client, head, priming) = open(&world, &session, &call(1, "say", json!({"times": 2}))).await;
    assert_eq!((head.status, head.get("x-accel-buffering")), (200, Some("no")));
    assert!(head.get("cache-control").unwrap().contains("no-cache"));
    assert!(head.get("x-correlation-id").is_some());
    assert_eq!((priming.retry.as_deref(), priming.data.as_str()), (Some("1000"), ""));
    let mut ids = vec![priming.id.unwrap()];
    for done in [1, 2] {
        let event = client.event().await.unwrap();
        assert_eq!(event.json()["params"], json!({"progressToken": 1, "progress": done}));
        ids.push(event.id.unwrap());
    }
    let reply = client.event().await.unwrap();
    assert_eq!((reply.json()["id"].as_u64(), text(&reply.json())), (Some(1), "said"));
    ids.push(reply.id.unwrap());
    assert_eq!(client.event().await, None, "the reply ends the stream");
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    // The connection is as good as new.
    assert_eq!(client.post(&[session.header()], &request(2, "ping", json!({}))).await.head.status, 200);
}

#[tokio::test]
async fn the_head_and_the_first_event_come_in_one_piece() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let world = World::new().await;
    let session = world.session().await;
    let body = call(1, "talk", json!({})).to_string();
    let mut stream = tokio::net::TcpStream::connect(world.address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: {}\r\nContent-Length: {}\r\n\r\n{body}",
        session.id,
        body.len(),
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut piece = vec![0; 65536];
    let length = stream.read(&mut piece).await.unwrap();
    let piece = String::from_utf8_lossy(&piece[..length]).into_owned();
    assert!(piece.starts_with("HTTP/1.1 200") && piece.contains("progressToken"), "{piece}");
}

#[tokio::test]
async fn clients_of_older_revisions_are_not_primed_but_get_ids() {
    let world = World::new().await;
    let session = world.session_of("2025-06-18", &[]).await;
    let mut client = world.client().await;
    assert!(client.open(&[session.header()], &call(1, "say", json!({"times": 1}))).await.is_stream());
    let first = client.event().await.unwrap();
    assert_eq!(first.json()["method"], "notifications/progress");
    assert!(first.id.is_some());
    // It cannot be sent away without an id, so it waits.
    world.gate.add_permits(1);
    assert_eq!(text(&session.post(&call(2, "park", json!({}))).await.json()), "let go");
}

#[tokio::test]
async fn a_question_goes_out_on_the_stream_and_its_answer_comes_by_post() {
    let world = World::new().await;
    let session = world.session().await;
    let (mut client, _, _) = open(&world, &session, &call(1, "ask", json!({}))).await;
    let question = client.event().await.unwrap().json();
    assert_eq!(
        (&question["method"], &question["params"]["message"]),
        (&json!("elicitation/create"), &json!("Your name?"))
    );
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}});
    assert_eq!(session.post(&answer).await.head.status, 202);
    assert_eq!(text(&client.event().await.unwrap().json()), "Ada");
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn nothing_is_answered_after_a_cancel() {
    let mut world = World::new().await;
    let session = world.session().await;
    let (mut client, _, _) = open(&world, &session, &call(1, "talk", json!({}))).await;
    client.event().await.unwrap();
    let cancel =
        |id: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    assert_eq!(session.post(&cancel(1)).await.head.status, 202);
    assert_eq!(client.event().await, None, "the stream ends without a reply");
    assert_eq!(world.stopped.recv().await, Some(Some(orchestr8_kernel::Why::Client)));
    // The same for an answer that is no stream yet.
    let mut client = world.client().await;
    client
        .send(
            "POST",
            &[super::client::JSON, session.header()],
            call(2, "hold", json!({})).to_string().as_bytes(),
        )
        .await;
    while session.post(&cancel(2)).await.head.status == 202 && world.stopped.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    assert!(client.head().await.is_stream());
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn a_long_silence_is_filled_with_comments() {
    let http = http::Settings { keep_alive_ms: 5, ..http::Settings::default() };
    let world = World::with(Plan { http, ..Plan::default() }).await;
    let session = world.session().await;
    let (mut client, _, priming) = open(&world, &session, &call(1, "hold", json!({}))).await;
    assert_eq!(priming.data, "", "the call has said nothing, but its client can come back");
    assert_eq!(client.block().await.as_deref(), Some(":"));
    assert_eq!(client.block().await.as_deref(), Some(":"));
    world.gate.add_permits(1);
    assert_eq!(text(&client.event().await.unwrap().json()), "let go");
    let (mut listening, _) = session.get(&[]).await;
    assert_eq!(listening.event().await.unwrap().data, "");
    assert_eq!(listening.block().await.as_deref(), Some(":"));
}

#[tokio::test]
async fn unasked_news_go_to_exactly_one_stand_alone_stream() {
    let world = World::new().await;
    let session = world.session().await;
    let (mut one, head) = session.get(&[]).await;
    assert!(head.is_stream() && head.get("x-correlation-id").is_some());
    let priming = one.event().await.unwrap();
    assert!(priming.id.is_some() && priming.retry.is_some());
    let (mut two, _) = session.get(&[]).await;
    two.event().await.unwrap();
    let other = world.session().await;
    let (mut theirs, _) = other.get(&[]).await;
    theirs.event().await.unwrap();
    world.change("tools");
    for client in [&mut two, &mut theirs] {
        assert_eq!(client.event().await.unwrap().json()["method"], "notifications/tools/list_changed");
    }
    drop(two);
    // Once the server has noticed that the second is gone, the first one hears what comes.
    let heard = async {
        loop {
            let event = one.event().await.unwrap();
            if event.json()["method"] == "notifications/prompts/list_changed" {
                break;
            }
        }
    };
    let changing = async {
        loop {
            world.change("prompts");
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { () = heard => {}, () = changing => {} }
}

#[tokio::test]
async fn many_streams_of_one_session_do_not_mix() {
    let world = World::new().await;
    let session = world.session().await;
    let talk = async |id: u64| {
        let (mut client, _, priming) = open(&world, &session, &call(id, "talk", json!({}))).await;
        let progress = client.event().await.unwrap().json();
        assert_eq!(progress["params"]["progressToken"], id);
        world.gate.add_permits(1);
        let reply = client.event().await.unwrap().json();
        assert_eq!((reply["id"].as_u64(), client.event().await), (Some(id), None));
        priming.id.unwrap()
    };
    let ids = futures::future::join_all((1..=30).map(talk)).await;
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), 30);
}

#[tokio::test]
async fn a_server_that_stops_ends_stand_alone_streams_and_waits_for_calls() {
    let world = World::new().await;
    let session = world.session().await;
    let (mut listening, _) = session.get(&[]).await;
    listening.event().await.unwrap();
    let (mut calling, _, _) = open(&world, &session, &call(1, "talk", json!({}))).await;
    calling.event().await.unwrap();
    let gate = world.gate.clone();
    let ended = tokio::spawn(world.end());
    assert_eq!(listening.event().await, None);
    gate.add_permits(1);
    assert_eq!(text(&calling.event().await.unwrap().json()), "let go");
    assert_eq!(ended.await.unwrap().cut, 0);
}
