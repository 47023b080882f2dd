//! `orchestr8 test`: what passes, what fails, and what is not a test.

use serde_json::json;

use super::{alone, json_of};

#[test]
fn the_examples_pass_their_tests() {
    let place = alone();
    let said = place.run(&["test", "examples/tests"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.ends_with(" passed, 0 failed\n"), "{}", said.out);
    assert!(!place.data_file().exists(), "nothing of it is kept");
    let json = json_of(&place.run(&["test", "examples/tests", "--filter", "hello", "--json"]));
    assert_eq!((&json["passed"], &json["failed"]), (&json!(2), &json!(0)));
    assert_eq!(json["tests"][0]["id"], "hello-world");
}

#[test]
fn a_failed_assertion_says_what_was_found() {
    let place = alone();
    let test = json!({"id": "t", "name": "wrong", "steps": [{"id": "a", "agentId": "@orchestr8/echo", "input": {"x": 1}}],
        "assertions": [{"type": "output", "path": "a.x", "expected": 2}, {"type": "status", "expected": "completed"}]});
    place.write("tests/wrong.test.json", &test.to_string());
    let said = place.run(&["test"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(
        said.out,
        "FAIL  wrong (tests/wrong.test.json)\n      output a.x: equals 2 does not hold for 1\n0 passed, 1 failed\n"
    );
}

#[test]
fn a_workflow_that_never_ends_fails_its_test() {
    let place = alone();
    let test = json!({"id": "t", "steps": [{"id": "a", "wait": {"durationMs": 600_000}}], "timeoutMs": 100,
        "assertions": [{"type": "status", "expected": "completed"}]});
    place.write("tests/slow.test.json", &test.to_string());
    let said = place.run(&["test"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("it is still running after 100 ms"), "{}", said.out);
}

#[test]
fn what_is_not_a_test_is_refused_and_nothing_runs() {
    let place = alone();
    place.write("tests/bad.test.json", r#"{"id": "t", "steps": [], "assertion": []}"#);
    let said = place.run(&["test"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("/assertion: is unknown"), "{}", said.err);
    assert_eq!(place.run(&["test", "nowhere"]).code, Some(3));
    assert_eq!(place.run(&["test", "examples"]).code, Some(0), "folders in folders are looked into");
    assert_eq!(place.run(&["test", "examples", "--filter", "nothing like it"]).code, Some(3));
}
