//! The same through a running server: found or named, followed while it works, and still there after it was away.

use rustix::process::Signal;
use serde_json::json;

use super::{Live, alone, sessions};
use crate::program::{Place, signal};
use crate::server::Server;
use crate::workflows::json_of;

/// Works until it is stopped, and says so first.
const ENDLESS: &str = "/tool echo {\"message\":\"working\"}\n/then\n/slow 60000\nnever said";

fn served() -> (Place, Server) {
    let place = alone();
    let server = Server::start(&place, &[]);
    let url = format!("http://{}", server.address);
    (place.with("ORCHESTR8_SERVER", &url), server)
}

#[test]
fn everything_works_through_a_server() {
    let (place, server) = served();
    let said = place.run(&["chat", "-q", "--session", "s1", "/tool echo {\"message\":\"hi\"}"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(0), "echo answered: {\"message\":\"hi\"}\n"),
        "{said:?}"
    );
    assert_eq!(place.run(&["chat", "-q", "forget me"]).out, "forget me\n");
    assert_eq!(sessions(&place, &[]), ["s1"]);
    assert!(place.run(&["sessions", "show", "s1"]).out.contains("→ echo"));
    assert!(place.run(&["sessions", "export", "s1", "--html"]).out.contains("echo answered"));
    assert_eq!(place.run(&["sessions", "delete", "nope", "--yes"]).code, Some(3));
    let embedded = place.run(&["sessions", "list", "--embedded"]);
    assert_eq!(embedded.code, Some(7), "the server has the data: {embedded:?}");
    server.terminate();
    assert_eq!(sessions(&place, &["--embedded"]), ["s1"], "what it kept is there without it");
}

#[test]
fn a_session_is_followed_while_it_works() {
    let (place, _server) = served();
    assert_eq!(place.run(&["chat", "-q", "--session", "s1", "hello"]).code, Some(0));
    let mut tail = Live::start(&place, &["sessions", "tail", "s1"]);
    tail.hear("> hello");
    let chat = Live::start(&place, &["chat", "-q", "--session", "s1", ENDLESS]);
    tail.hear("→ echo {\"message\":\"working\"}");
    tail.hear("← echo");
    // One that comes while the agent works sees what is under way too.
    let mut late = Live::start(&place, &["sessions", "tail", "s1", "-n", "1"]);
    late.hear("← echo");
    assert!(place.run(&["sessions", "list"]).out.contains("working"));
    signal(&chat.child, Signal::INT);
    tail.hear("stopped");
    late.hear("stopped");
    assert_eq!(chat.end().0, Some(130));
    for tail in [tail, late] {
        signal(&tail.child, Signal::INT);
        assert_eq!(tail.end().0, Some(130));
    }
}

#[test]
fn a_session_that_works_is_stopped_and_deleted() {
    let (place, _server) = served();
    let mut chat = Live::start(&place, &["chat", "--session", "s1", ENDLESS]);
    chat.hear("← echo");
    let mut tail = Live::start(&place, &["sessions", "tail", "s1"]);
    tail.hear("← echo");
    let deleted = place.run(&["sessions", "delete", "s1", "--yes"]);
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    assert_eq!(chat.end().0, Some(130));
    let (code, said) = tail.end();
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("session s1 was deleted"), "{said}");
}

/// The machine goes down in the middle of an answer.
#[test]
fn whoever_follows_outlives_the_server() {
    let (place, server) = served();
    let port = server.address.port();
    assert_eq!(place.run(&["chat", "-q", "--session", "s1", "before"]).code, Some(0));
    let mut tail = Live::start(&place, &["sessions", "tail", "s1"]);
    tail.hear("> before");
    let mut chat = Live::start(&place, &["chat", "--session", "s1", ENDLESS]);
    chat.hear("← echo");
    tail.hear("← echo");
    server.kill();
    tail.hear("waiting for it to come back");
    let again = Server::start_at(&place, port, &[]);
    let (code, said) = chat.end();
    assert_eq!(code, Some(6), "nobody knows what became of it: {said}");
    assert!(said.contains("OUTCOME_UNKNOWN"), "{said}");
    assert_eq!(place.run(&["chat", "-q", "--session", "s1", "after"]).out, "after\n");
    tail.hear("> after");
    assert_eq!(tail.heard.iter().filter(|line| line.contains("← echo")).count(), 1, "{:#?}", tail.heard);
    signal(&tail.child, Signal::INT);
    assert_eq!(tail.end().0, Some(130));
    again.terminate();
}

#[test]
fn a_token_is_asked_for_and_taken_from_the_environment() {
    let place = alone();
    let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    place.write(
        "orchestr8.json",
        &json!({"auth": {"tokens": [{"name": "ci", "sha256": hash, "roles": ["owner"]}]}}).to_string(),
    );
    let server = Server::start(&place, &[]);
    let place = place.with("ORCHESTR8_SERVER", &format!("http://{}", server.address));
    let refused = place.run(&["chat", "hello"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains("ORCHESTR8_TOKEN"), "{}", refused.err);
    let place = place.with("ORCHESTR8_TOKEN", "secret");
    assert_eq!(json_of(&place.run(&["chat", "--json", "hello"]))["text"], "hello");
}
