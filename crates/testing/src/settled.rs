//! What became of a submission: the part a test looks at, or a panic that says what came instead.

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::peer::Ask;
use orchestr8_kernel::{Halt, Settled};
use serde_json::{Value, json};

/// The JSON it gave.
pub fn value(settled: Settled) -> Value {
    match settled.result {
        Ok(Output::Json { value }) => value,
        other => panic!("expected JSON, found {other:?}"),
    }
}

/// Anything else it gave, as a client of MCP would see it.
pub fn wire(settled: Settled) -> Value {
    match settled.result {
        Ok(Output::Blocks { blocks, failed, .. }) => json!({"content": blocks, "isError": failed}),
        Ok(Output::Resource { contents }) => json!({"contents": contents}),
        Ok(Output::Prompt { messages, .. }) => json!({"messages": messages}),
        other => panic!("expected content, found {other:?}"),
    }
}

/// The first text it gave.
pub fn text(settled: Settled) -> String {
    let wire = wire(settled);
    let found = wire.pointer("/content/0/text").or_else(|| wire.pointer("/messages/0/content/text"));
    found.and_then(Value::as_str).unwrap_or_else(|| panic!("no text in {wire}")).to_owned()
}

/// The questions it ended with.
pub fn asks(settled: Settled) -> Vec<Ask> {
    match settled.result {
        Err(Halt::Asks(asks)) => asks,
        other => panic!("expected questions, found {other:?}"),
    }
}

/// The fault it ended with.
pub fn fault(settled: Settled) -> Fault {
    match settled.result {
        Err(Halt::Fault(fault)) => fault,
        other => panic!("expected a fault, found {other:?}"),
    }
}
