//! Backup, restore, audit and doctor, beside a server that runs and without one.

use serde_json::{Value, json};

use crate::program::Place;
use crate::server::Server;

fn append(server: &Server, value: &str) {
    let params = json!({"name": "test_append", "arguments": {"list": "l", "value": value}});
    let answer =
        server.connect().modern(1, "tools/call", params, &format!("Idempotency-Key: {value}\r\n")).unwrap();
    assert_eq!(answer.json()["result"]["isError"], false);
}

fn values(server: &Server) -> Value {
    let params = json!({"name": "test_list", "arguments": {"list": "l"}});
    let answer = server.connect().modern(1, "tools/call", params, "").unwrap().json();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    serde_json::from_str::<Value>(&text).unwrap()["values"].clone()
}

#[test]
fn a_backup_of_a_running_server_restores() {
    let place = Place::new();
    let server = Server::start(&place, &["--conformance"]);
    append(&server, "before");
    let said = place.run(&["--json", "backup", "copy.sqlite3"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(serde_json::from_str::<Value>(&said.out).unwrap()["bytes"].as_u64().unwrap() > 0);
    append(&server, "after");
    assert_eq!(server.terminate().code(), Some(0));
    let again = place.run(&["backup", "copy.sqlite3"]);
    assert_eq!(again.code, Some(5), "a backup overwrites nothing: {again:?}");
    place.write("restored/.keep", "");
    std::fs::copy(place.path().join("copy.sqlite3"), place.path().join("restored/orchestr8.sqlite3"))
        .unwrap();
    let server = Server::start(&place, &["--conformance", "--data-dir", "restored"]);
    assert_eq!(values(&server), json!(["before"]));
    append(&server, "before");
    assert_eq!(values(&server), json!(["before"]), "keys are part of the backup");
    server.terminate();
}

#[test]
fn the_audit_trail_is_proven_and_a_cut_one_is_not() {
    let place = Place::new();
    let server = Server::start(&place, &["--conformance"]);
    append(&server, "one");
    let early = place.run(&["backup", "early.sqlite3"]);
    assert_eq!(early.code, Some(0), "{early:?}");
    append(&server, "two");
    let said = place.run(&["--json", "audit", "verify"]);
    let verified: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(verified["entries"], 2);
    let head = verified["head"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["audit", "verify", "--head", &head]).code, Some(0));
    server.terminate();
    place.write("cut/.keep", "");
    std::fs::copy(place.path().join("early.sqlite3"), place.path().join("cut/orchestr8.sqlite3")).unwrap();
    let cut = place.run(&["audit", "verify", "--data-dir", "cut", "--head", &head]);
    assert_eq!(cut.code, Some(1), "{cut:?}");
    assert!(cut.err.contains("no entry has the hash"), "{}", cut.err);
}

#[test]
fn without_data_there_is_nothing_to_copy() {
    let place = Place::new();
    let said = place.run(&["backup", "copy.sqlite3"]);
    assert_eq!(said.code, Some(3));
    assert_eq!(
        said.err,
        "error: there is no data file at $PLACE/home/.local/share/orchestr8/orchestr8.sqlite3\n\
         hint: it is made when orchestr8 first runs; name its folder with --data-dir\n\
         code: NOT_FOUND (trying the same again does not help; more: orchestr8 errors NOT_FOUND)\n"
    );
}

#[test]
fn data_of_another_program_is_left_alone() {
    let place = Place::new();
    place.write("data/orchestr8.sqlite3", "this is not a database, and it is longer than a header of one hundred bytes, so that it cannot be mistaken for one");
    let said = place.run(&["mcp", "--data-dir", "data"]);
    assert_ne!(said.code, Some(0));
    assert!(said.err.starts_with("error: the store cannot be opened"), "{}", said.err);
    assert!(place.read("data/orchestr8.sqlite3").starts_with("this is not"));
}
