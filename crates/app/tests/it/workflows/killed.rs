//! A run that is killed or left goes on later, and repeats nothing that was finished.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Going, alone, json_of, newest, tool, write};
use crate::program::{Place, signal};

/// Three rows in a list, with a wait in the middle in which it can be killed.
fn rows(place: &Place, wait_ms: u64) -> String {
    let row = |id: &str, after: &[&str]| tool(id, after, "test_append", json!({"list": "rows", "value": id}));
    let wait = json!({"id": "pause", "dependencies": ["two"], "wait": {"durationMs": wait_ms}});
    write(place, "rows", &json!([row("one", &[]), row("two", &["one"]), wait, row("three", &["pause"])]))
}

fn noted(place: &Place) -> Value {
    let args = ["tools", "call", "test_list", "--conformance", "--args", r#"{"list":"rows"}"#];
    json_of(&place.run(&args))["values"].clone()
}

#[test]
fn after_kill_nine_the_same_command_finishes_it() {
    let place = alone();
    let file = rows(&place, 2000);
    let args = ["run", &file, "--key", "k", "--conformance"];
    let mut first = Going::start(&place, &args);
    first.heard("pause waiting");
    first.child.kill().unwrap();
    let killed = first.end();
    assert_eq!(killed.code, None, "{killed:?}");
    assert_eq!(noted(&place), json!(["one", "two"]));
    let again = place.run(&args);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(noted(&place), json!(["one", "two", "three"]));
    let executions = json_of(&place.run(&["list", "--json"]))["executions"].as_array().unwrap().len();
    assert_eq!(executions, 1, "it is the same execution");
}

#[test]
fn looking_at_an_unfinished_execution_does_not_run_it() {
    let place = alone();
    let file = rows(&place, 1500);
    let mut first = Going::start(&place, &["run", &file, "--conformance"]);
    first.heard("pause waiting");
    first.child.kill().unwrap();
    first.end();
    let before = noted(&place);
    let id = newest(&place, &[]);
    let other = ["run", "examples/data-pipeline.json", "--quiet"];
    for args in [&["list"][..], &["inspect", &id], &["logs", &id, "-f"], &["workflows", "list"], &other] {
        assert_eq!(place.run(args).code, Some(0), "{args:?}");
    }
    assert_eq!(noted(&place), before, "nobody asked for it to go on");
    let resumed = place.run(&["resume", &id, "--conformance"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(noted(&place), json!(["one", "two", "three"]));
}

/// What an execution has begun itself goes on with it.
#[test]
fn children_go_on_with_their_parent() {
    let place = alone();
    let row = |id: &str, after: &[&str]| tool(id, after, "test_append", json!({"list": "rows", "value": id}));
    let wait = json!({"id": "pause", "dependencies": ["inner"], "wait": {"durationMs": 2000}});
    let inner = json!({"id": "inside", "version": "1.0.0", "name": "Inside",
        "steps": [row("inner", &[]), wait, row("later", &["pause"])]});
    let child = json!({"id": "child", "dependencies": ["outer"], "workflow": inner});
    let file = write(&place, "family", &json!([row("outer", &[]), child, row("last", &["child"])]));
    let mut first = Going::start(&place, &["run", &file, "--conformance"]);
    first.heard("child running");
    let args = ["list", "--json", "--workflow", "inside", "--embedded"];
    first.child.kill().unwrap();
    first.end();
    assert_eq!(json_of(&place.run(&args))["executions"].as_array().unwrap().len(), 1);
    let id = newest(&place, &["--workflow", "family"]);
    let resumed = place.run(&["resume", &id, "--conformance"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(noted(&place), json!(["outer", "inner", "later", "last"]));
}

#[test]
fn ctrl_c_without_a_server_leaves_it_to_be_resumed() {
    let place = alone();
    let file = rows(&place, 3000);
    let run = Going::start(&place, &["run", &file, "--conformance"]);
    run.heard("pause waiting");
    signal(&run.child, Signal::INT);
    run.heard("nothing of it is lost");
    let hint = run.heard("orchestr8 resume ");
    let said = run.end();
    assert_eq!(said.code, Some(130), "{said:?}");
    let id = hint.rsplit(' ').next().unwrap().to_owned();
    let resumed = place.run(&["resume", &id, "--conformance"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(noted(&place), json!(["one", "two", "three"]));
}

#[test]
fn a_left_execution_can_be_ended_for_good() {
    let place = alone();
    let file = rows(&place, 600_000);
    let said = place.run(&["run", &file, "--conformance", "--detach"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let id = said.out.trim().to_owned();
    let cancelled = place.run(&["cancel", &id, "--reason", "not wanted", "--conformance"]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let shown = json_of(&place.run(&["inspect", &id, "--json"]));
    assert_eq!(shown["status"], "cancelled", "{shown:#}");
    let again = place.run(&["cancel", &id]);
    assert_eq!(again.code, Some(0), "a second time changes nothing: {again:?}");
}
