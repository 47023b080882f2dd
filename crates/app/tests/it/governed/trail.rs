//! The audit trail from the command line.

use serde_json::{Value, json};

use super::Governed;
use crate::program::Place;
use crate::stdio::Client;

#[test]
fn a_trail_is_shown_proven_and_exported_and_a_changed_byte_is_found() {
    let mut governed = Governed::start(Place::new(), "executor", &[]);
    governed.begin();
    for _ in 0..5 {
        governed.call("read_file", json!({"path": "none"})).unwrap_err();
    }
    let (_, place) = governed.end();
    let verified = place.run(&["--json", "audit", "verify", "--workspace", "workspace"]);
    let shown: Value = serde_json::from_str(&verified.out).unwrap();
    assert_eq!((&shown["ok"], &shown["entries"]), (&json!(true), &json!(6)), "{verified:?}");
    let head = shown["head"].as_str().unwrap();
    let tail = place.run(&["audit", "tail", "--workspace", "workspace", "-n", "2"]);
    assert_eq!(tail.out.lines().count(), 2);
    assert!(
        tail.out.lines().all(|line| line.contains("read_file") && line.contains("FILE_NOT_FOUND")),
        "{}",
        tail.out
    );

    assert_eq!(place.run(&["audit", "export", "--workspace", "workspace", "-o", "out.jsonl"]).code, Some(0));
    assert_eq!(place.read("out.jsonl"), place.read("workspace/audit-log.jsonl"));
    assert_eq!(place.run(&["audit", "export", "--workspace", "workspace", "-o", "out.jsonl"]).code, Some(5));
    assert_eq!(place.run(&["audit", "verify", "--file", "out.jsonl", "--head", head]).code, Some(0));
    assert_eq!(place.run(&["audit", "verify", "--file", "out.jsonl", "--head", "none"]).code, Some(1));

    let changed = place.read("workspace/audit-log.jsonl").replacen("FILE_NOT_FOUND", "FILE_NOT_FOUNT", 1);
    place.write("workspace/audit-log.jsonl", &changed);
    let found = place.run(&["audit", "verify", "--workspace", "workspace"]);
    assert_eq!(found.code, Some(1));
    assert!(found.err.contains("entry 2"), "{}", found.err);
    assert_eq!(place.run(&["audit", "verify", "--workspace", "nowhere"]).code, Some(3));
}

/// What the server itself did is kept in its store, and comes out in the same form.
#[test]
fn the_trail_of_the_server_has_the_same_form() {
    let place = Place::new();
    let mut client = Client::ready(&place, &[]);
    let message = json!({"type": "hello", "payload": {}});
    client.call(1, "agent.sendMessage", json!({"targetAgentId": "echo", "message": message}));
    client.end();
    let exported = place.run(&["audit", "export"]);
    let first: Value =
        serde_json::from_str(exported.out.lines().next().unwrap_or_else(|| panic!("{exported:?}"))).unwrap();
    for name in [
        "tool_name",
        "error_code",
        "invariant_id",
        "plan_hash",
        "phase_id",
        "timestamp",
        "cause",
        "seq",
        "prev_hash",
        "session_id",
        "role",
        "args_hash",
        "result",
        "result_hash",
        "entry_hash",
    ] {
        assert!(first.get(name).is_some(), "{name} is missing in {first}");
    }
    assert_eq!((&first["seq"], &first["prev_hash"]), (&json!(1), &json!("GENESIS")));
    place.write("out.jsonl", &exported.out);
    assert_eq!(place.run(&["audit", "verify", "--file", "out.jsonl"]).code, Some(0));
    assert_eq!(place.run(&["audit", "verify"]).code, Some(0));
    let tail = place.run(&["audit", "tail"]);
    assert!(tail.out.contains("agent.sendMessage") && tail.out.contains("success"), "{tail:?}");
}
