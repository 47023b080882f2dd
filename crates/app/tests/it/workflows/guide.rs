//! The guide's JSON is what it says it is: definitions are valid, tests pass. Its commands are run with those of all pages.

use serde_json::{Value, json};

use super::{alone, root};
use crate::program::Place;

fn guide() -> String {
    std::fs::read_to_string(root().join("docs/guide/workflows.md")).unwrap()
}

/// The blocks of the guide that are marked so.
fn blocks(mark: &str) -> Vec<String> {
    let guide = guide();
    let fence = format!("```{mark}\n");
    guide.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn its_definitions_are_valid() {
    let place = Place::new();
    let workflows = blocks("json workflow");
    let steps = blocks("json step");
    assert!(workflows.len() >= 3 && steps.len() >= 12, "{} {}", workflows.len(), steps.len());
    let mut files = Vec::new();
    for text in workflows {
        files.push(text);
    }
    for text in steps {
        files.push(around(&text).to_string());
    }
    for (index, text) in files.iter().enumerate() {
        let name = format!("{index}.json");
        place.write(&name, text);
        let said = place.run(&["validate", &name]);
        assert_eq!(said.code, Some(0), "{text}\n{}", said.err);
    }
}

/// A workflow around one step: whatever it names is there.
fn around(text: &str) -> Value {
    let step: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let named = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let mut others = named(&step["dependencies"]);
    others.extend(named(&step["switch"]["default"]));
    for case in named(&step["switch"]["cases"]) {
        others.extend(named(&case["steps"]));
    }
    let mut steps: Vec<Value> =
        others.iter().map(|id| json!({"id": id, "agentId": "@orchestr8/echo", "input": {}})).collect();
    steps.push(step);
    json!({"id": "around", "version": "1.0.0", "name": "Around", "steps": steps,
        "variables": {"orders": [], "quiet": false, "kind": "", "title": "", "name": ""}})
}

#[test]
fn its_test_is_one() {
    let place = alone();
    for (index, text) in blocks("json test").iter().enumerate() {
        let name = format!("{index}.test.json");
        place.write(&name, text);
        let said = place.run(&["test", &name]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}
