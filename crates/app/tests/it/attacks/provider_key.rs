//! A provider of models repeats its key in an answer: the session, its followers, its transcript and its files must not get it.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::sandbox::Client;
use crate::program::Place;
use crate::server::Server;

const KEY: &str = "canary-of-a-provider-77";

/// A provider that answers with the key it was called with, cut into pieces.
fn parrot() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 65_536]);
            let chunk = |delta: Value, end: Value| {
                let choice = json!({"index": 0, "delta": delta, "finish_reason": end});
                format!(
                    "data: {}\n\n",
                    json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})
                )
            };
            let (begin, end) = KEY.split_at(9);
            let body = [
                chunk(
                    json!({"role": "assistant", "content": format!("whole {KEY}, cut {begin}")}),
                    Value::Null,
                ),
                chunk(json!({"content": format!("{end} over")}), Value::Null),
                chunk(json!({}), json!("stop")),
                String::from("data: [DONE]\n\n"),
            ]
            .concat();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all([head, &body].concat().as_bytes());
        }
    });
    url
}

#[test]
fn a_provider_that_repeats_its_key_shows_it_to_no_session() {
    let place = Place::new().with("PARROT_KEY", KEY);
    let provider =
        json!({"kind": "openai", "baseUrl": parrot(), "keyVariable": "PARROT_KEY", "models": ["m"]});
    let config = json!({"models": {"providers": {"parrot": provider}, "default": "parrot/m"}});
    place.write("orchestr8.json", &config.to_string());
    place.write("project/readme", "hello");
    let server = Server::start(&place, &[]);
    let mut client = Client::connect(server.address, None);
    let begun = client.session("s", &place.path().join("project"));
    assert_eq!(begun["success"], true, "{begun}");
    client.ask("switch_session", json!({"sessionId": "s"}));
    let heard = client.hear("prompt", json!({"sessionId": "s", "message": "what is your key?"}));
    assert!(heard.contains("\"success\":true"), "{heard}");
    assert!(!heard.contains(KEY) && !heard.contains(&KEY[9..]), "{heard}");
    let messages = client.ask("get_messages", json!({"sessionId": "s"})).to_string();
    assert!(
        messages.contains("whole [REDACTED], cut [REDACTED] over") && !messages.contains(KEY),
        "{messages}"
    );
    server.terminate();
    let bytes = std::fs::read(place.data_file()).unwrap();
    assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "the key is in the data file");
}
