//! Workflow files: checked, hashed, made.

use serde_json::json;

use super::{alone, echo, json_of, root, write};
use crate::program::Place;

#[test]
fn every_example_is_valid() {
    let place = alone();
    let names =
        ["hello-world", "data-pipeline", "multi-agent", "approval", "order-saga", "nightly", "workers/shout"];
    let files: Vec<String> = names.iter().map(|name| format!("examples/{name}.json")).collect();
    let args: Vec<&str> = std::iter::once("validate").chain(files.iter().map(String::as_str)).collect();
    let said = place.run(&args);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert_eq!(
        said.out.lines().filter(|line| line.contains(": valid (")).count(),
        names.len(),
        "{}",
        said.out
    );
}

#[test]
fn everything_wrong_is_told_at_once_with_its_place() {
    let place = Place::new();
    place.write(
        "broken.json",
        r#"{"id": "bad id", "version": "1.0.0", "name": "x", "steps": [
            {"id": "a", "agentId": "@orchestr8/echo", "dependencies": ["nobody"], "input": "${steps.b.output.x}"},
            {"id": "b", "agnetId": "@orchestr8/echo"}]}"#,
    );
    let said = place.run(&["validate", "broken.json"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.starts_with("error: broken.json is not a valid workflow: "), "{}", said.err);
    for part in [
        "     - $.id: ",
        "     - $.steps[0].dependencies[0]: ",
        "     - $.steps[1].agnetId: ",
        "Did you mean agentId?",
    ] {
        assert!(said.err.contains(part), "{part} is not in\n{}", said.err);
    }
    let json = json_of(&place.run(&["validate", "broken.json", "--json"]));
    assert_eq!((&json["valid"], &json["files"][0]["valid"]), (&json!(false), &json!(false)));
    assert!(json["files"][0]["problems"].as_array().unwrap().len() >= 3, "{json:#}");
    let run = place.run(&["run", "broken.json"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(!place.data_file().exists(), "a broken file opens no store");
}

#[test]
fn other_formats_and_missing_files_are_told_apart() {
    let place = Place::new();
    place.write("flow.yaml", "id: x\nsteps: []\n");
    let said = place.run(&["validate", "flow.yaml"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("Workflows must use JSON format (ADR-002)"), "{}", said.err);
    assert_eq!(place.run(&["validate", "nowhere.json"]).code, Some(3));
}

#[test]
fn a_hash_is_written_into_the_text_as_it_is_and_notices_changes() {
    let place = Place::new();
    let text = "{\n    \"version\": \"1.0.0\",\n    \"id\": \"h\", \"name\": \"H\",\n    \"steps\": [{\"id\": \"a\", \"agentId\": \"@orchestr8/echo\"}]\n}\n";
    place.write("h.json", text);
    assert_eq!(place.run(&["validate", "--write-hash", "h.json"]).code, Some(0));
    let hashed = place.read("h.json");
    assert!(hashed.starts_with(text.trim_end_matches("\n}\n")), "{hashed}");
    assert_eq!(place.run(&["validate", "h.json"]).code, Some(0));
    place.write("h.json", &hashed.replace("\"name\": \"H\"", "\"name\": \"I\""));
    let said = place.run(&["validate", "h.json"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("Schema hash mismatch: content has been modified"), "{}", said.err);
    assert_eq!(place.run(&["validate", "--write-hash", "h.json"]).code, Some(0));
    assert_eq!(place.run(&["validate", "h.json"]).code, Some(0));
}

#[test]
fn a_new_project_runs_and_passes_its_tests() {
    let place = alone();
    let planned = place.run(&["init", "mine", "--dry-run"]);
    assert!(planned.out.contains("planned  mine/workflows/hello.json"), "{planned:?}");
    assert!(!place.path().join("mine").exists());
    let made = place.run(&["init", "mine"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let schema: serde_json::Value =
        serde_json::from_str(&place.read("mine/workflows/workflow.schema.json")).unwrap();
    let published = std::fs::read_to_string(root().join("schemas/workflow.schema.json")).unwrap();
    assert_eq!(schema, serde_json::from_str::<serde_json::Value>(&published).unwrap());
    place.write("mine/README.md", "my own words");
    let again = place.run(&["init", "mine"]);
    assert!(again.out.contains("kept     mine/README.md"), "{again:?}");
    assert_eq!(place.read("mine/README.md"), "my own words");
    let run = place.run(&["run", "mine/workflows/hello.json", "--quiet"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    assert_eq!(json_of(&run)["greet"]["text"], "Hello, world!");
    let tested = place.run(&["--config", "mine/orchestr8.json", "test", "mine/tests"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert!(tested.out.ends_with("2 passed, 0 failed\n"), "{}", tested.out);
}

#[test]
fn new_files_are_made_once_and_only_where_they_belong() {
    let place = alone();
    let made = place.run(&["create:workflow", "report"]);
    assert!(made.out.contains("created  workflows/report.json"), "{made:?}");
    assert_eq!(place.run(&["run", "workflows/report.json", "--quiet"]).code, Some(0));
    place.write("workflows/report.json", "mine");
    assert!(place.run(&["create", "workflow", "report"]).out.contains("kept     workflows/report.json"));
    assert_eq!(place.read("workflows/report.json"), "mine");
    for bad in ["../outside", "a b", ""] {
        assert_eq!(place.run(&["create", "workflow", bad]).code, Some(2), "{bad}");
    }
    let json = json_of(&place.run(&["create", "agent", "shout", "--lang", "typescript", "--json"]));
    assert_eq!(json, json!({"files": [{"file": "agents/shout/agent.ts", "result": "created"}]}));
}

#[test]
fn a_workflow_comes_on_stdin_too() {
    let place = alone();
    let file = write(&place, "piped", &json!([echo("a", &[], json!({"x": 1}))]));
    let text = place.read(&file);
    let said = place.run_with(&["run", "-", "--quiet"], &text);
    assert_eq!(json_of(&said), json!({"a": {"x": 1}}), "{said:?}");
}
