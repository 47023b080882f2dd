//! Keys, signatures, the bus and its dead letters, as people and agents use them: through the binary.

mod keys;
mod killed;

use serde_json::{Value, json};

use crate::program::{Place, Said};
use crate::server::{Http, Server};

/// An envelope of now.
fn envelope(request: u64, action: &str, args: Value) -> Value {
    json!({
        "envelope_version": "2.2", "request_id": uuid(request), "tenant_id": "acme", "principal": {"sub": "svc:a"},
        "timestamp": jiff::Timestamp::now().to_string(), "reply_to": "a2a.acme.reply.me", "action": action,
        "action_version": "1.0.0", "payload": {"args": args},
    })
}

pub fn create(number: u64) -> Value {
    let args = json!({
        "document_id": uuid(number), "parent_id": "root", "metadata": {"title": format!("Number {number}")},
        "content": {"mime_type": "text/plain", "body": "x"},
    });
    envelope(number, "knowledge.create_document", args)
}

fn uuid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

pub fn publish(http: &mut Http, envelope: &Value) -> std::io::Result<u16> {
    http.request("POST", "/a2a/publish", "", Some(&envelope.to_string())).map(|answer| answer.status)
}

/// The replies after one of them; some, or the test has waited too long.
fn replies(http: &mut Http, after: i64) -> Vec<Value> {
    let target = format!("/a2a/replies/me?tenant_id=acme&wait_ms=30000&after={after}");
    let replies = http.get(&target).json()["data"]["replies"].as_array().unwrap().clone();
    assert!(!replies.is_empty(), "no reply came");
    replies
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// A document that is not there, asked for without an address for the answer.
pub fn lost(number: u64) -> Value {
    let mut wish = envelope(number, "knowledge.get_document", json!({"document_id": uuid(9999)}));
    wish.as_object_mut().unwrap().remove("reply_to");
    wish
}

/// Waits until so many letters are there.
pub fn letters(place: &Place, server: &[&str], count: usize) -> Vec<Value> {
    let mut tries = 0;
    loop {
        let said = place.run(&[&["dlq", "list", "--json"], server].concat());
        let letters = json(&said)["dead_letters"].as_array().unwrap().clone();
        if letters.len() >= count {
            return letters;
        }
        tries += 1;
        assert!(tries < 200, "{said:?}");
    }
}

#[test]
fn dead_letters_are_listed_shown_redriven_and_dropped() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let url = format!("http://{}", server.address);
    let at = ["--server", url.as_str()];
    let mut http = server.connect();
    let empty = place.run(&[&["dlq", "list"][..], &at].concat());
    assert_eq!((empty.code, empty.err.trim()), (Some(0), "there are no dead letters"));
    for number in 1..=2 {
        assert_eq!(publish(&mut http, &lost(number)).unwrap(), 202);
    }
    let found = letters(&place, &at, 2);
    let first = found[0]["seq"].to_string();
    let listed = place.run(&[&["dlq", "list", "--tenant", "acme"][..], &at].concat());
    assert!(
        listed.out.contains("a2a.acme.knowledge.get_document") && listed.out.contains("NOT_FOUND"),
        "{listed:?}"
    );
    let shown = json(&place.run(&[&["dlq", "show", &first][..], &at].concat()));
    assert_eq!(shown["envelope"]["payload"]["args"]["document_id"], uuid(9999));
    let unsure = place.run(&[&["dlq", "drop", &first][..], &at].concat());
    assert_eq!(unsure.code, Some(2), "it asks first: {unsure:?}");
    let again = place.run(&[&["dlq", "redrive", &first, "--json"][..], &at].concat());
    assert_eq!(json(&again)["redriven"].as_array().unwrap().len(), 1, "{again:?}");
    let second = letters(&place, &at, 2);
    assert!(second.iter().any(|letter| letter["redrives"] == 1), "it failed once more: {second:?}");
    let gone = place.run(&[&["dlq", "redrive", &first][..], &at].concat());
    assert_eq!(gone.code, Some(3));
    assert!(gone.err.starts_with(&format!("error: there is no dead letter {first}\n")), "{gone:?}");
    assert_eq!(server.terminate().code(), Some(0));
    // The same without a server.
    let dropped = place.run(&["dlq", "drop", "--all", "--yes", "--json"]);
    assert_eq!(json(&dropped)["dropped"].as_array().unwrap().len(), 2, "{dropped:?}");
    assert_eq!(json(&place.run(&["dlq", "list", "--json"])), json!({"dead_letters": []}));
}

#[test]
fn promises_are_counted_over_restarts() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    assert_eq!(publish(&mut http, &create(1)).unwrap(), 202);
    assert_eq!(replies(&mut http, 0)[0]["envelope"]["payload"]["status"], 200);
    assert_eq!(server.terminate().code(), Some(0));
    let report = json(&place.run(&["slo", "--json"]));
    assert_eq!((&report["error_budget"]["requests"], &report["dlq"]["met"]), (&json!(1), &json!(true)));
    assert_eq!(place.run(&["slo", "--check"]).code, Some(0));
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let wrong = http.request("POST", "/mcp/actions", "", Some("{}")).unwrap();
    assert_eq!(wrong.status, 400);
    assert_eq!(server.terminate().code(), Some(0));
    let said = place.run(&["slo", "--check"]);
    assert_eq!(said.code, Some(1), "half of them failed: {said:?}");
    assert!(said.out.contains("NOT KEPT") && said.out.contains("knowledge.create_document"), "{}", said.out);
}
