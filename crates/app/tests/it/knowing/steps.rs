//! Knowledge in the steps of workflows: the example, and a step that runs again.

use serde_json::json;

use super::{done, know};
use crate::workflows::{alone, json_of, write};

#[test]
fn the_example_writes_a_note_and_asks_about_it() {
    let place = alone();
    let said = place.run(&["run", "examples/knowledge.json", "--quiet"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let output = json_of(&said);
    assert!(output["ask"]["response"].as_str().unwrap().contains("every month"), "{output}");
    assert_eq!(output["ask"]["context"][0]["document_id"], output["note"]["id"]);
    assert!(done(&place, &["tree"]).out.contains("Backups"));
    let history = json_of(&know(&place, &["history", "/Backups", "--json"]));
    let ops: Vec<&str> =
        history["revisions"].as_array().unwrap().iter().map(|one| one["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["update", "create"]);
}

#[test]
fn what_a_step_does_wrong_is_said() {
    let place = alone();
    let step =
        |input: serde_json::Value| json!([{"id": "a", "agentId": "@orchestr8/knowledge", "input": input}]);
    for (name, input, part) in [
        ("unknown", json!({"operation": "burn"}), "there is no operation `burn`"),
        (
            "missing",
            json!({"operation": "get", "document_id": "8c5f3c1e-6a0e-4a7e-9d52-0d8a3f6f1b11"}),
            "there is no document",
        ),
        ("typo", json!({"operation": "query", "qurey": "x"}), "no member `qurey`"),
    ] {
        let said = place.run(&["run", &write(&place, name, &step(input)), "--quiet"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.err.contains(part), "{}", said.err);
    }
}
