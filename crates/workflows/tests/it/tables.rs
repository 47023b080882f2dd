//! The tables of `conformance/workflows` that definitions hold to.

use orchestr8_testing::Table;
use orchestr8_workflows::definition;
use serde_json::{Value, json};

use crate::world::with;

#[test]
fn adr_018_what_a_step_says_goes_before_what_the_workflow_says() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/workflows/tables/precedence.md");
    Table::read(file, "Resilience").holds(&["holds"], |row| {
        let read = |column: &str| serde_json::from_str::<Value>(row.get(column)).unwrap();
        let step = json!({"id": "a", "type": "agent", "agentId": "@orchestr8/echo"});
        let source = json!({"id": "flow", "version": "1.0.0", "name": "Flow", "policies": read("policies of the workflow"),
                            "steps": [with(step, read("members of the step"))]});
        let workflow = definition::read_value(&source).unwrap();
        let held = serde_json::to_value(&workflow.steps[0].resilience).unwrap();
        let found = row.get("setting").split('.').fold(&held, |value, name| &value[name]);
        vec![found.as_str().map_or_else(|| found.to_string(), str::to_owned)]
    });
}
