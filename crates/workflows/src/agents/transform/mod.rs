//! `@orchestr8/transform`: reshapes JSON with a short list of named operations, and touches nothing else.

mod apply;
mod compare;
mod meter;
mod operation;
mod test;

#[cfg(test)]
mod tests;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use serde_json::Value;

use super::members::Members;
use super::{Agent, Answer, Call};
use crate::limits::OPERATION_DEPTH;
use meter::Meter;

pub struct Transform;

impl Agent for Transform {
    fn id(&self) -> &str {
        "@orchestr8/transform"
    }

    fn about(&self) -> &str {
        "Reshapes JSON: input {value, operations} with pick, omit, merge, map, filter, sort, group, join and others."
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn passes(&self, input: &Value, config: &Value) -> usize {
        let written = input.get("operations").or_else(|| config.get("operations"));
        written.map_or(1, |written| operation::count(written, OPERATION_DEPTH)).max(1)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let Call { input, config, .. } = call;
        std::future::ready(transform(input, &config).map(Answer::from)).boxed()
    }
}

/// Applies the operations to the value, in their order.
pub fn transform(input: Value, config: &Value) -> Result<Value, Fault> {
    const KNOWN: [&str; 2] = ["value", "operations"];
    let operations = match Members::read(&input, config, &KNOWN)?.get("operations") {
        Some(written) => operation::read(written)?,
        None => Vec::new(),
    };
    let value = match input {
        Value::Object(mut map) => map.remove("value"),
        _ => None,
    };
    let value = value.or_else(|| config.get("value").cloned()).unwrap_or_default();
    apply::all(&operations, value, &mut Meter::new())
}
