//! Messages between agents: the commands, and steps of workflows that send them.

use serde_json::{Value, json};

use crate::program::Place;
use crate::server::Server;
use crate::workflows::{alone, json_of, write};

#[test]
fn agents_are_listed_asked_and_told_without_a_server() {
    let place = alone();
    let listed = place.run(&["agents", "list"]);
    assert!(listed.out.contains("echo") && listed.out.contains("local"), "{listed:?}");
    let send = |payload: &str| {
        let id = "00000000-0000-4000-8000-000000007231";
        place.run(&["agents", "send", "echo", payload, "--request-id", id])
    };
    let asked = send(r#"{"type":"greet","payload":"hi"}"#);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert_eq!(json_of(&asked), json!({"type": "greet", "payload": "hi", "count": 1}));
    let other = send(r#"{"type":"greet","payload":"pay 99999"}"#);
    assert_eq!((other.code, other.out.as_str()), (Some(5), ""), "{other:?}");
    let purged = place.run(&["agents", "purge"]);
    assert_eq!(purged.out, "deleted 0 expired records\n", "{purged:?}");
    let again = send(r#"{"type":"greet","payload":"hi"}"#);
    assert_eq!(json_of(&again)["count"], 1, "the same request is answered from the ledger: {again:?}");
    let told = place.run(&["--json", "agents", "requests", "00000000-0000-4000-8000-000000007231"]);
    assert_eq!(json_of(&told)["status"], "COMPLETED");
    let all = place.run(&["agents", "requests", "--status", "completed"]);
    assert!(all.out.contains("00000000-0000-4000-8000-000000007231") && all.out.contains("cli"), "{all:?}");
}

#[test]
fn commands_say_how_it_ended_with_their_exit_code() {
    let place = alone();
    assert_eq!(place.run(&["agents", "send", "nobody", "1"]).code, Some(3));
    assert_eq!(place.run(&["agents", "inbox", "nobody"]).code, Some(3));
    assert_eq!(place.run(&["agents", "requests", "nothing"]).code, Some(3));
    assert_eq!(place.run(&["agents", "send", "echo", "{not json"]).code, Some(2));
    assert_eq!(place.run(&["agents", "send"]).code, Some(2));
}

#[test]
fn an_inbox_is_read_and_acknowledged_through_a_server() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let url = format!("http://{}", server.address);
    let registered = server
        .connect()
        .request("PUT", "/aacp/agents/planner", "", Some(r#"{"topics":["builds"]}"#))
        .unwrap();
    assert_eq!(registered.status, 200, "{registered:?}");
    let run = |args: &[&str]| place.run(&[args, &["--server", &url]].concat());
    let sent = run(&["agents", "send", "topic:builds", r#""green""#]);
    assert_eq!((sent.code, sent.out.contains("kept for 1 agents")), (Some(0), true), "{sent:?}");
    let unanswered = run(&["agents", "send", "planner", "1", "--wait", "0"]);
    assert_eq!(unanswered.code, Some(6), "nobody has answered: {unanswered:?}");
    let pairs = json_of(&run(&["--json", "agents", "pairs", "--agent", "planner"]));
    assert_eq!(pairs["pairs"][0]["unacknowledged"], 2, "{pairs}");
    let table = run(&["agents", "pairs"]);
    assert!(table.out.contains("WAITING") && table.out.contains("planner"), "{table:?}");
    let read = run(&["agents", "inbox", "planner", "--ack"]);
    assert!(read.out.contains("EVENT cli \"green\"") && read.out.contains("REQUEST cli 1"), "{read:?}");
    let empty = run(&["--json", "agents", "inbox", "planner"]);
    assert_eq!(json_of(&empty)["messages"], json!([]));
    let replayed = run(&["--json", "agents", "inbox", "planner", "--after", "1"]);
    assert_eq!(json_of(&replayed)["messages"].as_array().map(Vec::len), Some(1));
    server.terminate();
}

#[test]
fn steps_tell_agents_and_wait_for_their_answers() {
    let place = alone();
    let steps = json!([
        {"id": "tell", "agentId": "@orchestr8/send", "input": {"to": "echo", "payload": {"type": "note", "payload": 1}}},
        {"id": "ask", "agentId": "@orchestr8/request", "dependencies": ["tell"],
         "input": {"to": "echo", "payload": {"type": "sum", "payload": [1, 2]}}}
    ]);
    let said = place.run(&["run", &write(&place, "asks", &steps), "--quiet"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let outputs: Value = json_of(&said);
    assert_eq!(
        (&outputs["ask"]["type"], &outputs["ask"]["payload"]),
        (&json!("sum"), &json!([1, 2])),
        "{outputs}"
    );
    assert_eq!(outputs["tell"]["seq"], 1);
    let nobody =
        json!([{"id": "ask", "agentId": "@orchestr8/request", "input": {"to": "nobody", "payload": 1}}]);
    let failed = place.run(&["run", &write(&place, "fails", &nobody), "--quiet"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.err.contains("no agent named 'nobody'"), "{failed:?}");
}
