//! Outputs as the model writes them: without times, comments and the texts of errors.

use orchestr8_workflows::definition::model::{Child, Kind, Step, Wait, Which};
use serde_json::{Value, json};

/// An output as the model writes it.
pub fn comparable(step: &Step, mut output: Value) -> Value {
    if step.each.is_some() && output.get("results").is_some() {
        let failed = output["failed"].as_array().cloned().unwrap_or_default();
        output["failed"] = failed.iter().map(|one| one["index"].clone()).collect();
        let results = output["results"].as_array().cloned().unwrap_or_default();
        output["results"] = results.into_iter().map(|one| comparable_unit(&step.kind, one)).collect();
        return output;
    }
    if step.repeat.is_some() && output.get("iterations").is_some() {
        output["last"] = comparable_unit(&step.kind, output["last"].take());
        return output;
    }
    comparable_unit(&step.kind, output)
}

fn comparable_unit(kind: &Kind, mut output: Value) -> Value {
    match kind {
        Kind::Approval(_) => json!({"decision": output["decision"], "by": output["by"]}),
        Kind::Wait(Wait::Event { .. }) => json!("event"),
        Kind::Wait(Wait::For(_) | Wait::Until(_)) => json!("timer"),
        Kind::Switch(_) => Value::Null,
        Kind::Workflow(Child { which: Which::Inline(inner), .. }) => {
            for step in &inner.steps {
                if let Some(own) = output.get_mut(&*step.id) {
                    *own = comparable(step, own.take());
                }
            }
            output
        }
        Kind::Workflow(_) | Kind::Agent(_) => output,
    }
}
