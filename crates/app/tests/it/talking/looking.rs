//! Sessions listed, shown, exported, deleted and followed without a server.

use serde_json::{Value, json};

use super::{alone, sessions};
use crate::program::Place;
use crate::workflows::json_of;

fn with_session() -> Place {
    let place = alone();
    let prompt = "/think hm\nLet me look.\n/tool echo {\"message\":\"hi\"}";
    let said = place.run(&["chat", "-q", "--session", "s1", prompt]);
    assert_eq!(said.code, Some(0), "{said:?}");
    place
}

#[test]
fn they_are_listed() {
    let place = with_session();
    let said = place.run(&["sessions", "list"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("SESSION  STATE  MODEL         MESSAGES  CREATED"), "{}", said.out);
    assert!(lines[1].starts_with("s1       idle   offline/echo  4         20"), "{}", said.out);
    let json = json_of(&place.run(&["sessions", "list", "--json"]));
    assert_eq!(json["sessions"][0]["sessionId"], "s1");
    let none = alone().run(&["sessions:list"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
    assert!(none.err.contains("there are no sessions"), "{}", none.err);
}

#[test]
fn one_is_shown_with_its_conversation() {
    let place = with_session();
    let said = place.run(&["sessions", "show", "s1"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let (head, conversation) = said.out.split_once("\n\n").unwrap();
    for part in
        ["session  s1", "model    offline/echo, thinking off", "4 messages, 1 tool calls", "% of the window"]
    {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert_eq!(
        conversation,
        "> /think hm\nLet me look.\n/tool echo {\"message\":\"hi\"}\nhm\nLet me look.\n→ echo {\"message\":\"hi\"}\n\
         ← echo {\"message\":\"hi\"}\necho answered: {\"message\":\"hi\"}\n"
    );
    let json = json_of(&place.run(&["sessions", "show", "s1", "--json"]));
    let members: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(members, ["context", "messages", "session", "stats"]);
    assert_eq!(json["messages"].as_array().unwrap().len(), 4);
    assert!(!place.run(&["sessions", "show", "s1", "--brief"]).out.contains("Let me look"));
}

#[test]
fn one_is_exported_to_stdout_and_to_a_file() {
    let place = with_session();
    let lines = place.run(&["sessions", "export", "s1"]).out;
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    assert!(lines.contains("Let me look."));
    let page = place.run(&["sessions", "export", "s1", "--html"]).out;
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"), "{page}");
    let told = place.run(&["sessions", "export", "s1", "-o", "s1.html"]);
    assert_eq!((told.code, told.out.as_str()), (Some(0), ""), "{told:?}");
    assert_eq!(place.read("s1.html").trim_end(), page.trim_end(), "the name says what it is");
    let json = json_of(&place.run(&["sessions", "export", "s1", "-o", "s1.jsonl", "--json"]));
    assert_eq!(json["bytes"].as_u64().unwrap(), u64::try_from(place.read("s1.jsonl").len()).unwrap());
    assert_eq!(json["format"], "jsonl");
    let nowhere = place.run(&["sessions", "export", "s1", "-o", "no/such/folder/x.html"]);
    assert_eq!(nowhere.code, Some(2), "{nowhere:?}");
}

#[test]
fn one_is_deleted_only_on_purpose() {
    let place = with_session();
    let refused = place.run(&["sessions", "delete", "s1"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("delete session s1 with its 4 messages: this needs --yes"),
        "{}",
        refused.err
    );
    assert_eq!(sessions(&place, &[]), ["s1"]);
    let deleted = place.run(&["sessions", "delete", "s1", "--yes", "--json"]);
    assert_eq!(json_of(&deleted), json!({"sessionId": "s1", "deleted": true}));
    assert!(sessions(&place, &[]).is_empty());
}

#[test]
fn the_past_is_told_and_nothing_is_waited_for() {
    let place = with_session();
    let said = place.run(&["sessions", "tail", "s1"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.starts_with("> /think hm\n") && said.out.ends_with("echo answered: {\"message\":\"hi\"}\n"),
        "{}",
        said.out
    );
    assert!(said.err.contains("no server runs"), "{}", said.err);
    let last = place.run(&["sessions", "tail", "s1", "-n", "1", "-q"]).out;
    assert_eq!(last, "echo answered: {\"message\":\"hi\"}\n");
    assert_eq!(place.run(&["sessions", "tail", "s1", "-n", "0"]).out, "");
    let events = place.run(&["sessions", "tail", "s1", "--after", "0", "--json"]).out;
    let kinds: Vec<String> = events
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["event"]["type"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!((kinds[0].as_str(), kinds.last().unwrap().as_str()), ("agent_start", "agent_end"));
    assert_eq!(
        place.run(&["sessions", "tail", "s1", "--after", "0", "--json", "--limit", "2"]).out.lines().count(),
        2
    );
}

#[test]
fn what_is_not_there_is_not_found() {
    let place = alone();
    for args in [&["show", "x"][..], &["delete", "x", "--yes"], &["export", "x"], &["tail", "x"]] {
        let said = place.run(&[&["sessions"], args].concat());
        assert_eq!(said.code, Some(3), "{args:?}: {said:?}");
        assert!(
            said.err.contains("Session x not found") && said.err.contains("sessions list"),
            "{}",
            said.err
        );
    }
    let unreachable = place.run(&["sessions", "list", "--server", "http://127.0.0.1:1"]);
    assert_eq!(unreachable.code, Some(7), "{unreachable:?}");
    assert_eq!(place.run(&["sessions", "--stdio", "list"]).code, Some(2));
}
