//! The definition of a workflow: JSON in one of two forms becomes the checked model, or a list of everything wrong with it.
//!
//! `text` reads JSON strictly, `workflow` and `step` read the members through `fields`, `graph` connects the steps, and
//! `references` checks every expression before anything runs (ADR-002, WF-19.5).

mod cache;
mod call;
mod fields;
mod form;
mod graph;
mod kinds;
pub mod limits;
pub mod lint;
pub mod model;
pub mod moment;
mod policies;
pub mod problems;
mod references;
mod resilience;
mod step;
mod text;
mod words;
mod workflow;

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::sync::Arc;

use orchestr8_contract::{Code, canonical};
use serde_json::Value;

pub use cache::Cache;
pub use model::Workflow;
pub use orchestr8_contract::place::Place;
pub use problems::{Problem, Problems};
pub use words::nearest;

/// The member that holds the hash of everything else.
pub const HASH: &str = "schemaHash";

/// Reads a definition from its text.
pub fn read(text: &str) -> Result<Arc<Workflow>, Problems> {
    let (value, mut problems) = text::parse(text)?;
    match read_value(&value) {
        Ok(workflow) if problems.is_empty() => Ok(workflow),
        Ok(_) => Err(Problems(problems)),
        Err(Problems(others)) => {
            problems.extend(others);
            Err(Problems(problems))
        }
    }
}

/// Reads a definition that is JSON already.
pub fn read_value(value: &Value) -> Result<Arc<Workflow>, Problems> {
    read_measured(value, measure(value)?)
}

/// SHA-256, in hex, of the canonical JSON without `schemaHash` (ADR-002).
pub fn hash(value: &Value) -> String {
    match value.as_object() {
        Some(members) if members.contains_key(HASH) => {
            let mut members = members.clone();
            members.remove(HASH);
            canonical::sha256_hex(&Value::Object(members))
        }
        Some(_) | None => canonical::sha256_hex(value),
    }
}

/// The published JSON Schema of definitions (draft 2020-12), for both forms. What it accepts may still be refused: a schema
/// knows nothing of the graph and of expressions.
pub fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../schemas/workflow.schema.json")).unwrap_or_default()
}

/// The hash and the size of a definition that is not too large and not too deep.
fn measure(value: &Value) -> Result<(String, usize), Problems> {
    if text::is_deeper_than(value, orchestr8_contract::limits::JSON_DEPTH) {
        return Err(text::too_deep());
    }
    let bytes = text::weight(value);
    if bytes > limits::DEFINITION_BYTES { Err(text::too_large()) } else { Ok((hash(value), bytes)) }
}

fn read_measured(value: &Value, (hash, bytes): (String, usize)) -> Result<Arc<Workflow>, Problems> {
    let sink = RefCell::new(Vec::new());
    let workflow = workflow::read(value, Place::ROOT, hash, 0, &sink);
    let problems = sink.into_inner();
    match workflow {
        Some(workflow) if problems.is_empty() => Ok(Arc::new(Workflow { bytes, ..workflow })),
        Some(_) => Err(Problems(problems)),
        None if !problems.is_empty() => Err(Problems(problems)),
        // Whoever gives no workflow says why; this is the last resort that keeps the promise of never being silent.
        None => Err(Problems(vec![Problem::new(
            Place::ROOT,
            Code::InvalidWorkflow,
            "the workflow cannot be read",
            "Compare it with schemas/workflow.schema.json.",
        )])),
    }
}
