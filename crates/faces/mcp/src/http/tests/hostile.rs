//! Input nobody should send: always an answer, and the server goes on.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::{ACCEPT, JSON, call, initialize, request, text};
use super::world::{Plan, World};
use crate::http;

async fn raw(world: &World, session: Option<&str>, body: &[u8]) -> super::client::Answer {
    let mut headers = vec![JSON, ACCEPT];
    headers.extend(session.map(|id| ("Mcp-Session-Id", id)));
    world.client().await.ask("POST", &headers, body).await
}

#[tokio::test]
async fn what_is_no_message_is_answered_with_what_is_wrong() {
    let world = World::new().await;
    let session = world.session().await;
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let deep_call = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"a":{deep}}}}}}}"#
    );
    let cases: [(&[u8], i64, Value); 14] = [
        (b"", -32700, Value::Null),
        (b"{", -32700, Value::Null),
        (b"nonsense", -32700, Value::Null),
        (b"\xff\xfe{}", -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} trailing", -32700, Value::Null),
        (deep.as_bytes(), -32700, Value::Null),
        (deep_call.as_bytes(), -32700, json!(7)),
        (b"null", -32600, Value::Null),
        (b"\"ping\"", -32600, Value::Null),
        (b"{}", -32600, Value::Null),
        (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600, json!(1)),
        (br#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#, -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, json!(1)),
    ];
    for (body, code, id) in cases {
        for session in [None, Some(session.id.as_str())] {
            let answer = raw(&world, session, body).await;
            let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
            assert_eq!((answer.refusal(), &answer.json()["id"]), ((400, code), &id), "{shown}");
            assert!(answer.json()["error"]["data"]["correlationId"].is_string(), "{shown}");
        }
    }
    for params in
        [json!(7), json!([1]), json!("x"), json!({"name": 7}), json!({"name": "echo", "arguments": []})]
    {
        let answer = session.post(&request(3, "tools/call", params.clone())).await;
        assert_eq!(
            (answer.json()["error"]["code"].as_i64(), &answer.json()["id"]),
            (Some(-32602), &json!(3)),
            "{params}"
        );
    }
    assert_eq!(session.post(&request(1, "ping", json!({}))).await.head.status, 200);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_without_being_read() {
    let http = http::Settings { body_limit_bytes: 10_000, ..http::Settings::default() };
    let world = World::with(Plan { http, ..Plan::default() }).await;
    let session = world.session().await;
    let fits = call(1, "echo", json!({"message": "x".repeat(9000)}));
    assert_eq!(text(&session.post(&fits).await.json()).len(), 9000);
    let mut client = world.client().await;
    let announced = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: {}\r\n",
        session.id
    );
    let answer =
        client.post(&[session.header()], &call(2, "echo", json!({"message": "x".repeat(11_000)}))).await;
    assert_eq!(answer.refusal(), (413, -32600));
    assert_eq!(answer.json()["error"]["data"]["code"], "RESOURCE_EXHAUSTED");
    // One that does not say how long it is gets as far as the limit.
    let mut stream = tokio::net::TcpStream::connect(world.address).await.unwrap();
    stream.write_all(format!("{announced}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
    for _ in 0..3 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let http = http::Settings { body_timeout_ms: 20, ..http::Settings::default() };
    let world = World::with(Plan { http, ..Plan::default() }).await;
    let mut stream = tokio::net::TcpStream::connect(world.address).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 408");
}

#[tokio::test]
async fn an_id_in_flight_is_taken_and_free_again_afterwards() {
    let world = World::new().await;
    let session = world.session().await;
    let mut first = world.client().await;
    first.open(&[session.header()], &call(1, "talk", json!({}))).await;
    first.event().await.unwrap();
    let second = session.post(&call(1, "echo", json!({"message": "x"}))).await;
    assert_eq!(second.json()["error"]["code"], -32600);
    world.gate.add_permits(1);
    first.event().await.unwrap();
    assert_eq!(text(&first.event().await.unwrap().json()), "let go");
    assert_eq!(text(&session.post(&call(1, "echo", json!({"message": "x"}))).await.json()), "x");
}

#[tokio::test]
async fn damaged_messages_always_get_an_answer_and_leave_nothing_behind() {
    let world = World::new().await;
    let session = world.session().await;
    let sound = [
        initialize("2025-11-25"),
        call(1, "echo", json!({"message": "h\u{e9}llo"})),
        request(2, "tools/list", json!({})),
    ];
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    let mut client = world.client().await;
    let mut begun = 0;
    for round in 0..600 {
        let mut body = sound[round % 3].to_string().into_bytes();
        for _ in 0..=random(3) {
            let at = random(body.len());
            match random(3) {
                0 => body[at] = u8::try_from(random(256)).unwrap(),
                1 if body.len() > 1 => drop(body.remove(at)),
                _ => body.truncate(at.max(1)),
            }
        }
        let mut headers = vec![JSON, ACCEPT];
        if round % 2 == 0 {
            headers.push(session.header());
        }
        let answer = client.ask("POST", &headers, &body).await;
        assert!(
            [200, 202, 400].contains(&answer.head.status),
            "{} {answer:?}",
            String::from_utf8_lossy(&body)
        );
        begun += usize::from(answer.head.get("mcp-session-id").is_some());
    }
    assert_eq!(world.sessions(), 1 + begun);
    assert_eq!(world.endpoint.budget.taken(), 0);
    assert_eq!(text(&session.post(&call(1, "echo", json!({"message": "alive"}))).await.json()), "alive");
}

#[tokio::test]
async fn a_client_that_reads_nothing_does_not_fill_the_memory() {
    let world = World::new().await;
    let session = world.session().await;
    let mut client = world.client().await;
    client
        .send(
            "POST",
            &[JSON, session.header()],
            call(1, "say", json!({"times": 200_000})).to_string().as_bytes(),
        )
        .await;
    let head = client.head().await;
    assert!(head.is_stream());
    let kept = world.endpoint.budget.taken();
    assert!(kept <= 2 * 1024 * 1024, "{kept}");
    let mut last = None;
    while let Some(event) = client.event().await {
        last = Some(event);
    }
    assert_eq!(text(&last.unwrap().json()), "said", "the reply is never dropped");
}

#[tokio::test]
async fn clients_that_leave_while_they_begin_leave_nothing_behind() {
    let http = http::Settings { max_sessions: 4, ..http::Settings::default() };
    let world = World::with(Plan { http, ..Plan::default() }).await;
    let body = initialize("2025-11-25").to_string();
    for _ in 0..50 {
        let mut client = world.client().await;
        client.send("POST", &[JSON, ACCEPT], body.as_bytes()).await;
    }
    let settled = async {
        // The last one to begin is the last one to make room; until then there is none.
        loop {
            let status = world.client().await.post(&[], &initialize("2025-11-25")).await.head.status;
            assert!(matches!(status, 200 | 503), "{status}");
            if status == 200 && world.sessions() <= 4 {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), settled).await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_of_sessions_that_have_ended() {
    let world = World::new().await;
    for _ in 0..20 {
        let session = world.session().await;
        let (mut listening, _) = session.get(&[]).await;
        listening.event().await.unwrap();
        let mut client = world.client().await;
        client.open(&[session.header()], &call(1, "say", json!({}))).await;
        let mut calling = world.client().await;
        calling.open(&[session.header()], &call(2, "talk", json!({}))).await;
        assert_eq!(session.delete().await.head.status, 204);
        while listening.event().await.is_some() {}
        while calling.event().await.is_some() {}
        while client.event().await.is_some() {}
    }
    assert_eq!((world.sessions(), world.listeners()), (0, 0));
    let settled = async {
        while world.endpoint.budget.taken() > 0 || world.kernel.running() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), settled).await.unwrap();
}
