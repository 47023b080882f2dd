//! A server reached over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_tools::remote::{Link, Phase, Server};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{World, text};

/// The smallest server there is: one request a connection, answers in JSON.
async fn serve(listener: TcpListener, heard: Arc<Mutex<Vec<String>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let heard = heard.clone();
        tokio::spawn(async move { answer(stream, &heard).await });
    }
}

async fn answer(stream: TcpStream, heard: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if let Some(given) = line.to_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    heard.lock().push(head.clone());
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, body) = match (head.starts_with("POST"), reply(&message)) {
        (false, _) => ("405 Method Not Allowed", String::new()),
        (true, None) => ("202 Accepted", String::new()),
        (true, Some(result)) => {
            ("200 OK", json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}

fn reply(message: &Value) -> Option<Value> {
    Some(match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}
        }),
        "tools/list" => {
            json!({"tools": [{"name": "greet", "inputSchema": {}, "annotations": {"readOnlyHint": true}}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "hello"}]}),
        _ => return None,
    })
}

#[tokio::test]
async fn its_tools_are_called_with_the_headers_it_wants() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let serving = tokio::spawn(serve(listener, heard.clone()));
    let headers = BTreeMap::from([("X-Team".to_owned(), "blue".to_owned())]);
    let mut server = Server::new("other", Link::Http { url, headers });
    server.prefix = Some("web".into());
    server.timeout_ms = Some(2_000);
    let world = World::with(server).await;
    let seen = world.seen();
    assert_eq!(
        (seen.phase, seen.tools, seen.pid),
        (Phase::Running, vec!["web.greet".to_owned()], None),
        "{:?}",
        seen.problem
    );
    let table = world.kernel.registry().table();
    assert_eq!(table.find("web.greet").unwrap().about.description, "greet of other");
    assert_eq!(text(world.call("web.greet", json!({})).await), "hello");
    assert!(heard.lock().iter().all(|head| head.to_lowercase().contains("x-team: blue")));
    serving.abort();
    let _ = serving.await;
    assert_eq!(world.call("web.greet", json!({})).await.code(), Some(Code::Unavailable));
    world.remote.stop().await;
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_a_problem_and_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let world = World::with(Server::new("other", Link::Http { url, headers: BTreeMap::new() })).await;
    assert!(world.seen().problem.is_some());
    world.remote.stop().await;
}
