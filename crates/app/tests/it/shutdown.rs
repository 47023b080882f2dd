//! The end: at the close of stdin and at a signal, with what is in flight finished or cut off.

use rustix::process::Signal;
use serde_json::json;

use crate::program::{Place, signal, wait};
use crate::server::Server;
use crate::stdio::{Client, call, error_of};

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
    let server = Server::start(&place, &["--conformance"]);
    let mut http = server.connect();
    let asked = std::thread::spawn(move || {
        let params = json!({"name": "test_append", "arguments": {"list": "l", "value": "v"}});
        let first = http.modern(1, "tools/call", params, "").unwrap().json();
        let slow = http.modern(2, "tools/call", json!({"name": "test_sleep", "arguments": {"ms": 300}}), "");
        (first, slow)
    });
    // The first answer shows that the connection is open; the second request is on its way or answered.
    let mut probe = server.connect();
    assert_eq!(probe.get("/readyz").status, 200);
    let status = server.terminate();
    assert_eq!(status.code(), Some(0));
    let (first, slow) = asked.join().unwrap();
    assert_eq!(first["result"]["isError"], false);
    if let Ok(answer) = slow {
        assert!(answer.status == 200 || answer.status == 503, "{answer:?}");
    }
}

#[test]
fn calls_after_the_signal_are_refused_as_such() {
    let place = Place::new();
    let mut client = Client::ready(&place, &["--conformance", "--ephemeral"]);
    client.say(&call(1, "test_sleep", json!({"ms": 400})).to_string());
    client.say(&call(2, "echo", json!({"message": "x"})).to_string());
    client.hear();
    signal(client.child(), Signal::TERM);
    client.logged("stopping");
    client.hang_up();
    let answers = client.hear_all();
    let late: Vec<_> = answers.iter().filter(|answer| answer["id"] == 3).collect();
    for answer in late {
        assert_eq!(error_of(answer)["code"], "SHUTTING_DOWN");
    }
    let _ = wait;
}
