//! Hostile and broken input: there is always an answer, with the id where it can be read, and the server lives.

use std::process::Command;

use serde_json::{Value, json};

use crate::program::Place;
use crate::server::Server;
use crate::stdio::Client;

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn broken_lines_are_answered_one_by_one() {
    let place = Place::new();
    let mut client = Client::ready(&place, &["--ephemeral"]);
    let deep = "[".repeat(100_000);
    let deep_arguments = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":{}1{}}}}}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let cases: Vec<(&[u8], i64)> = vec![
        (b"{", -32700),
        (b"not json", -32700),
        (b"\"\\ud800\"", -32600),
        (b"\xff\xfe{}", -32700),
        (b"[]", -32600),
        (b"42", -32600),
        (b"null", -32600),
        (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, -32601),
        (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#, -32602),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}"#,
            -32602,
        ),
    ];
    for (line, expected) in cases {
        client.say_bytes(line);
        let answer = client.hear();
        assert_eq!(code(&answer), expected, "{} -> {answer}", String::from_utf8_lossy(line));
        assert!(answer["error"]["data"]["correlationId"].is_string(), "{answer}");
    }
    client.say(&deep);
    assert!(matches!(code(&client.hear()), -32700 | -32600));
    client.say(&deep_arguments);
    let answer = client.hear();
    assert!(answer["id"] == 7 || answer["id"].is_null(), "{answer}");
    let answer = client.call(8, "echo", json!({"message": "still here"}));
    assert_eq!(answer["result"]["isError"], false);
    client.end();
}

#[test]
fn a_huge_line_is_answered_and_the_next_one_too() {
    let place = Place::new();
    let mut client = Client::ready(&place, &["--ephemeral"]);
    let huge = "x".repeat(3 * 1024 * 1024);
    let answer = client.call(1, "echo", json!({"message": huge}));
    let text = answer.to_string();
    assert!(
        text.contains("RESOURCE_EXHAUSTED") && text.contains("payload_too_large"),
        "{}",
        &text[..200.min(text.len())]
    );
    let mut endless = b"{\"jsonrpc\":\"2.0\",\"id\":2,".to_vec();
    endless.resize(64 * 1024 * 1024, b' ');
    client.say_bytes(&endless);
    assert!(client.hear()["error"].is_object());
    assert_eq!(client.call(3, "echo", json!({"message": "still here"}))["result"]["isError"], false);
    client.end();
}

#[test]
fn a_response_nobody_asked_for_is_not_answered() {
    let place = Place::new();
    let mut client = Client::ready(&place, &["--ephemeral"]);
    client.say(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/whatever"}"#);
    assert_eq!(
        client.call(1, "echo", json!({"message": "x"}))["id"],
        1,
        "the next answer belongs to the next question"
    );
    client.end();
}

#[test]
fn an_id_in_flight_is_not_taken_twice() {
    let place = Place::new();
    let mut client = Client::ready(&place, &["--conformance", "--ephemeral"]);
    client.say(&crate::stdio::call(5, "test_sleep", json!({"ms": 300})).to_string());
    let second = client.call(5, "echo", json!({"message": "x"}));
    assert_eq!(code(&second), -32600);
    assert_eq!(client.hear()["result"]["isError"], false, "the first is unaffected");
    client.end();
}

#[test]
fn broken_requests_over_http_are_answered() {
    let place = Place::new();
    let server = Server::start(&place, &["--ephemeral"]);
    for (more, body, status) in [
        ("", "{", 400),
        ("", "[]", 400),
        ("", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, 400),
        ("Mcp-Session-Id: never-seen\r\n", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, 404),
    ] {
        let answer = server.connect().post(more, body).unwrap();
        assert_eq!(answer.status, status, "{body} -> {answer:?}");
        assert!(answer.json()["error"]["code"].is_number(), "{answer:?}");
    }
    let huge = "x".repeat(5 * 1024 * 1024);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        server.address,
        huge.len()
    );
    let answer = server.connect().send(&head, "").unwrap();
    assert_eq!(answer.status, 413);
    assert_eq!(server.connect().get("/healthz").status, 200);
}

/// `http.client` of Python sends all of a body before it reads, as many clients do.
#[test]
fn a_body_over_the_limit_is_refused_so_that_python_can_read_it() {
    let place = Place::new();
    let server = Server::start(&place, &["--ephemeral"]);
    let script = "import http.client, sys\n\
                  c = http.client.HTTPConnection(sys.argv[1], timeout=30)\n\
                  c.request('POST', sys.argv[2], body=b'x' * int(sys.argv[3]), headers={'Content-Type': 'application/json'})\n\
                  r = c.getresponse()\n\
                  print(r.status, r.getheader('X-Error-Code'), r.read().decode())";
    for (path, mib) in [("/v1/workflows/execute", 5), ("/v1/workflows/execute", 32), ("/mcp", 5)] {
        let mut command = Command::new("python3");
        let bytes = (mib * 1024 * 1024).to_string();
        let output = command.args(["-c", script, &server.address.to_string(), path, &bytes]).output();
        let output = output.expect("python3 is needed");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with("413 "), "{path}, {mib} MiB: {said} {output:?}");
        assert!(path == "/mcp" || said.contains("PAYLOAD_TOO_LARGE"), "{said}");
    }
}
