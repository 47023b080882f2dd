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

    let text = place.read("workspace/audit-log.jsonl");
    let cut: String = text.split_inclusive('\n').take(3).collect();
    place.write("workspace/audit-log.jsonl", &cut);
    let found = place.run(&["audit", "verify", "--workspace", "workspace"]);
    assert_eq!((found.code, found.err.contains("TAMPERED: entry 4")), (Some(1), true), "{}", found.err);

    let changed = text.replacen("FILE_NOT_FOUND", "FILE_NOT_FOUNT", 1);
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

/// What the kernel refuses before a tool runs is told and recorded as every failure is (ERR-5, ERR-6).
#[test]
fn err_6_calls_that_are_refused_before_their_tool_runs_are_in_the_trail() {
    let place = Place::new();
    // Long enough lines for arguments that are too large for the tool.
    let bytes = 2 * orchestr8_workspace::limits::PAYLOAD_BYTES;
    place.write("orchestr8.json", &json!({"tools": {"maxPayloadBytes": bytes}}).to_string());
    let mut governed = Governed::start(place, "executor", &[]);
    governed.begin();
    let newest = |governed: &Governed| -> Value {
        let text = std::fs::read_to_string(governed.root().join("audit-log.jsonl")).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    };
    let long = "x".repeat(orchestr8_workspace::limits::PAYLOAD_BYTES);
    let refused = governed.call("write_file", json!({"path": "a.md", "content": long})).unwrap_err();
    assert_eq!(refused["details"]["reason"], "payload_too_large", "{refused}");
    assert_eq!(refused["tool_name"], "write_file");
    assert!(refused["session_id"].is_string(), "{refused}");
    let entry = newest(&governed);
    assert_eq!((&entry["tool_name"], &entry["result"]), (&json!("write_file"), &json!("failure")), "{entry}");
    assert_eq!(entry["error_code"], refused["error_code"]);

    for (tool, args, code) in [
        ("read_file", json!("a text"), "INVALID_INPUT_TYPE"),
        ("read_file", json!([1]), "INVALID_INPUT_TYPE"),
        ("no_such_tool", json!({}), "UNKNOWN_TOOL_FAILURE"),
        ("save_plan", json!({"content": "x"}), "UNAUTHORIZED_ACTION"),
    ] {
        let refused = governed.call(tool, args).unwrap_err();
        assert_eq!(refused["error_code"], code, "{refused}");
        let entry = newest(&governed);
        assert_eq!((&entry["tool_name"], &entry["error_code"]), (&json!(tool), &json!(code)), "{entry}");
    }
    let (_, place) = governed.end();
    let verified = place.run(&["--json", "audit", "verify", "--workspace", "workspace"]);
    let shown: Value = serde_json::from_str(&verified.out).unwrap();
    assert_eq!((&shown["ok"], &shown["entries"]), (&json!(true), &json!(6)), "{verified:?}");
}
