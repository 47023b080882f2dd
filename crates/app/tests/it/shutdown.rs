//! The end: at the close of stdin and at a signal, with what is in flight finished or cut off.

use rustix::process::Signal;
use serde_json::json;

use crate::program::{Place, signal};
use crate::server::Server;
use crate::stdio::{Client, call};

#[test]
fn at_the_end_of_stdin_answers_in_flight_still_come() {
    let place = Place::new();
    let mut client = Client::ready(&place, &["--conformance", "--ephemeral"]);
    client.say(&call(1, "test_sleep", json!({"ms": 300})).to_string());
    let (status, rest) = client.end();
    assert_eq!(status.code(), Some(0));
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]["isError"]), (&json!(1), &json!(false)));
}

#[test]
fn what_takes_longer_than_the_drain_is_cut_off() {
    let place = Place::new().with("ORCHESTR8_SERVER_SHUTDOWN_TIMEOUT_MS", "100");
    let mut client = Client::ready(&place, &["--conformance", "--ephemeral"]);
    client.say(&call(1, "test_sleep", json!({"ms": 600_000, "stubborn": true})).to_string());
    let (status, _) = client.end();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_signal_ends_stdio_gracefully() {
    for kind in [Signal::TERM, Signal::INT] {
        let place = Place::new();
        let mut client = Client::ready(&place, &["--conformance", "--ephemeral"]);
        client.say(&call(1, "test_sleep", json!({"ms": 200})).to_string());
        client.say(&call(2, "echo", json!({"message": "x"})).to_string());
        assert_eq!(client.hear()["id"], 2, "the sleeper is under way");
        signal(client.child(), kind);
        client.logged("stopping");
        let (status, rest) = client.end();
        assert_eq!(status.code(), Some(0));
        assert_eq!(rest[0]["result"]["isError"], false, "{rest:?}");
    }
}

#[test]
fn the_second_interrupt_ends_at_once() {
    let place = Place::new();
    let mut client = Client::ready(&place, &["--conformance", "--ephemeral"]);
    client.say(&call(1, "test_sleep", json!({"ms": 600_000})).to_string());
    client.say(&call(2, "echo", json!({"message": "x"})).to_string());
    client.hear();
    signal(client.child(), Signal::INT);
    client.logged("stopping");
    signal(client.child(), Signal::INT);
    assert_eq!(client.end().0.code(), Some(130));
}

#[test]
fn a_signal_ends_serve_with_requests_finished() {
    let place = Place::new();
    let server = Server::start(&place, &["--conformance", "--ephemeral"]);
    let (mut http, mut probe) = (server.connect(), server.connect());
    let slow = std::thread::spawn(move || {
        http.modern(1, "tools/call", json!({"name": "test_sleep", "arguments": {"ms": 500}}), "").unwrap()
    });
    loop {
        let health = probe.modern(2, "tools/call", json!({"name": "health", "arguments": {}}), "").unwrap();
        if health.body.contains(r#"\"concurrentExecutions\":1"#) {
            break;
        }
    }
    assert_eq!(server.terminate().code(), Some(0));
    let answer = slow.join().unwrap();
    assert_eq!((answer.status, &answer.json()["result"]["isError"]), (200, &json!(false)));
}
