//! Any lines as the records of an execution: read, or not; folded twice to the same, and never a crash.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use orchestr8_contract::id::CorrelationId;
use orchestr8_workflows::definition::{self, Workflow};
use orchestr8_workflows::engine::event::Event;
use orchestr8_workflows::engine::next;
use orchestr8_workflows::engine::state::{Identity, State};

static WORKFLOW: LazyLock<Arc<Workflow>> = LazyLock::new(|| {
    let text = include_str!("../../conformance/workflows/definitions/both/everything.engine.json");
    definition::read(text).expect("a valid definition")
});

fn fold(records: &str) -> String {
    let mut state = State::new(Arc::new(Identity {
        execution: "exec-1".into(),
        correlation: CorrelationId::parse("fuzz").expect("an id"),
        workflow: WORKFLOW.clone(),
        variables: WORKFLOW.variables.clone(),
        timeout_ms: Some(60_000),
    }));
    for (at_ms, line) in (1000..).step_by(100).zip(records.lines()) {
        if let Ok(event) = serde_json::from_str::<Event>(line) {
            // What is written again says the same.
            let written = serde_json::to_string(&event).expect("an event can be written");
            let again: Event = serde_json::from_str(&written).expect("what was written can be read");
            assert_eq!(serde_json::to_string(&again).ok(), Some(written));
            next(&mut state, event, at_ms);
            assert!(!state.status.is_final() || state.work.is_empty());
        }
    }
    format!("{:?} {:?} {:?}", state.status, state.steps, state.work)
}

fuzz_target!(|records: &str| assert_eq!(fold(records), fold(records)));
