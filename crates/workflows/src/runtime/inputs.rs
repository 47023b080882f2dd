//! The inputs of an execution: declared by its definition, and as its schema says.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::schema::Schema;
use serde_json::{Map, Value};

use crate::definition::model::Workflow;
use crate::definition::nearest;
use crate::engine::identity::ScheduledMoment;

/// Refuses inputs that the definition does not declare, and those that break the schema its author gave.
pub fn check(workflow: &Workflow, inputs: &Map<String, Value>) -> Result<(), Fault> {
    if let Some(name) = inputs.keys().find(|name| !is_declared(workflow, name)) {
        return Err(undeclared(workflow, name));
    }
    let Some(schema) = &workflow.inputs else { return Ok(()) };
    let compiled = Schema::compile(schema.clone()).map_err(|error| {
        Fault::internal("the inputs schema of a checked workflow is wrong").because(error)
    })?;
    compiled.check(&Value::Object(inputs.clone())).map_err(|fault| {
        let mut told = Fault::new(Code::InvalidArgument, format!("/inputs: {}", fault.message));
        told.details = fault.details.clone();
        told
    })
}

/// Refuses an execution that no schedule starts if it cannot do without one.
pub fn check_schedule(workflow: &Workflow, schedule: Option<&ScheduledMoment>) -> Result<(), Fault> {
    let Some(expression) = workflow.needs_schedule.as_ref().filter(|_| schedule.is_none()) else {
        return Ok(());
    };
    let id = &workflow.id;
    let text = format!("the workflow \"{id}\" uses {expression}, which only a scheduled execution has");
    Err(Fault::invalid(text)
        .with("expression", &**expression)
        .with("hint", "trigger its schedule, or give the expression a default: ${schedule.time ?? \"…\"}"))
}

/// Whether a definition declares an input of this name.
pub fn is_declared(workflow: &Workflow, name: &str) -> bool {
    workflow.variables.contains_key(name)
        || properties(workflow).is_some_and(|properties| properties.contains_key(name))
        || workflow.inputs.as_ref().is_some_and(allows_others)
}

/// A schema that names what else may come leaves the decision to the schema.
fn allows_others(schema: &Value) -> bool {
    schema.get("patternProperties").is_some()
        || schema.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false))
}

fn properties(workflow: &Workflow) -> Option<&Map<String, Value>> {
    workflow.inputs.as_ref()?.get("properties")?.as_object()
}

fn undeclared(workflow: &Workflow, name: &str) -> Fault {
    let mut declared: Vec<&str> = workflow.variables.keys().map(String::as_str).collect();
    declared.extend(properties(workflow).into_iter().flat_map(Map::keys).map(String::as_str));
    declared.sort_unstable();
    declared.dedup();
    let meant = nearest(name, declared.iter().copied())
        .map_or_else(String::new, |meant| format!(" (did you mean \"{meant}\"?)"));
    let shown: String = name.chars().take(128).collect();
    Fault::new(
        Code::InvalidArgument,
        format!("/inputs: the workflow \"{}\" declares no input \"{shown}\"{meant}", workflow.id),
    )
    .with("path", format!("/inputs/{shown}"))
    .with("declared", declared)
}
