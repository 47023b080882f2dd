//! The same through a server, and what only a server does: telling others of changes, with retries that can be seen.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;

use super::{Place, done, know, put};
use crate::program::PATIENCE;
use crate::server::Server;
use crate::workflows::json_of;

#[test]
fn commands_reach_a_server_that_runs() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let place = place.with("ORCHESTR8_SERVER", &format!("http://{}", server.address));
    let id = put(&place, "/Handbook/Setup", "zebra");
    assert!(done(&place, &["query", "zebra"]).out.contains("/Handbook/Setup"));
    place.write("notes/a.md", "# A\nfalcon");
    assert_eq!(done(&place, &["import", "notes", "--into", "/Handbook"]).out, "1 created\n");
    assert_eq!(done(&place, &["tree"]).out, "/\n└── Handbook\n    ├── Setup\n    └── A\n");
    assert_eq!(done(&place, &["export", "out", "--document", "/Handbook"]).out, "2 written\n");
    assert!(place.path().join("out/A.md").exists());
    assert_eq!(know(&place, &["sync", "out"]).code, Some(5), "the folder belongs to another document");
    let late = place.run_with(&["knowledge", "put", &id, "-", "--revision", "7"], "x");
    assert_eq!(late.code, Some(5), "{late:?}");
    server.terminate();
    assert_eq!(know(&place, &["tree"]).code, Some(7));
}

#[test]
fn webhooks_are_listed_with_what_waits_and_what_failed() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let place = place
        .with("ORCHESTR8_SERVER", &format!("http://{}", server.address))
        .with("SECRET", "0123456789abcdef");
    // The name leads inside, which is noticed when it is called: the delivery waits and says why.
    let hook = done(
        &place,
        &["webhooks", "add", "http://localhost:9/x", "--event", "document.created", "--secret-env", "SECRET"],
    );
    let id = hook.out.trim().to_owned();
    put(&place, "/A", "x");
    let listed = loop {
        let listed = json_of(&know(&place, &["webhooks", "list", "--json"]));
        if listed["webhooks"][0]["last_failure"].is_string() {
            break listed;
        }
    };
    assert_eq!(
        (listed["webhooks"][0]["waiting"].as_u64(), &listed["webhooks"][0]["signed"]),
        (Some(1), &true.into())
    );
    let table = done(&place, &["webhooks", "list"]).out;
    assert!(
        table.starts_with("WEBHOOK") && table.contains(&id) && table.contains("may not be called"),
        "{table}"
    );
    done(&place, &["webhooks", "remove", &id]);
    assert!(done(&place, &["webhooks", "list"]).err.contains("nobody is told"));
    server.terminate();
}

/// A model provider that gives one answer to everything, and tells what it was asked.
pub fn provider(answer: &'static str) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (mut stream, tell) = (stream, tell.clone());
            std::thread::spawn(move || {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut text = Vec::new();
                let mut piece = [0; 4096];
                // Until the body that the head announces is whole.
                while let Ok(count @ 1..) = stream.read(&mut piece) {
                    text.extend_from_slice(&piece[..count]);
                    if is_whole(&text) {
                        break;
                    }
                }
                let _ = tell.send(String::from_utf8_lossy(&text).into_owned());
                if answer.is_empty() {
                    // Never answers; the connection stays as long as the other side wants it.
                    let _ = stream.read(&mut piece);
                    return;
                }
                let delta = serde_json::json!({"choices": [{"index": 0, "delta": {"content": answer}, "finish_reason": "stop"}]});
                let body = format!("data: {delta}\n\ndata: [DONE]\n\n");
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all([head, body].concat().as_bytes());
            });
        }
    });
    (url, heard)
}

fn is_whole(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    length.is_none_or(|length: usize| body.len() >= length)
}
