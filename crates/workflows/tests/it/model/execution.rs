//! One execution of the driver in memory, and the events that its world gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, Fault};
use orchestr8_workflows::agents::Usage;
use orchestr8_workflows::definition::model::{Kind, Which, Workflow};
use orchestr8_workflows::engine::event::{Event, Task};
use orchestr8_workflows::engine::state::{Identity, State};
use orchestr8_workflows::limits;
use serde_json::{Value, json};

use super::reference::script::How;

/// One execution.
pub struct Execution {
    pub state: State,
    /// Its stored events.
    pub records: Vec<(String, i64)>,
    /// What waits for a slot.
    pub ready: BTreeSet<Task>,
    pub beginning: Vec<Task>,
    pub running: BTreeSet<Task>,
    pub timers: BTreeSet<Task>,
    pub questions: BTreeSet<Task>,
    pub children: BTreeMap<Task, u32>,
    pub parent: Option<(String, Task)>,
}

impl Execution {
    pub fn new(state: State, parent: Option<(String, Task)>) -> Self {
        Self {
            state,
            records: Vec::new(),
            ready: BTreeSet::new(),
            beginning: Vec::new(),
            running: BTreeSet::new(),
            timers: BTreeSet::new(),
            questions: BTreeSet::new(),
            children: BTreeMap::new(),
            parent,
        }
    }
}

pub fn new_state(workflow: Arc<Workflow>) -> State {
    State::new(Arc::new(Identity {
        execution: "execution".into(),
        started_by: "local".into(),
        correlation: CorrelationId::parse("test").unwrap(),
        variables: workflow.variables.clone(),
        workflow,
        timeout_ms: None,
        schedule: None,
    }))
}

pub fn child_path(execution: &Execution, path: &str, task: Task) -> String {
    let instance = execution.children.get(&task.undone()).copied().unwrap_or(0);
    let part = task.part.map_or_else(String::new, |part| format!(":{part}"));
    format!("{path}s{}{part}#{instance}/", task.step)
}

pub fn inner(state: &State, task: Task) -> Arc<Workflow> {
    match &state.workflow().steps[task.step].kind {
        Kind::Workflow(child) => match &child.which {
            Which::Inline(workflow) => workflow.clone(),
            Which::Stored { .. } => panic!("no child of the model is stored"),
        },
        _ => panic!("the step is no child"),
    }
}

pub fn ending(task: Task, attempts: u32, how: How, again: bool) -> Event {
    let code = match how {
        How::Output(n) => return succeeded(task, attempts, json!({"n": n})),
        How::TooLarge => return succeeded(task, attempts, json!("x".repeat(limits::OUTPUT_BYTES - 1))),
        How::Fails => Code::AgentFailed,
        How::Unavailable => Code::Unavailable,
        How::TimesOut => Code::Timeout,
        How::Stops => Code::Cancelled,
    };
    if again {
        let fault = StoredFault::from(&Fault::new(code, "not yet"));
        return Event::Retrying { task, attempt: attempts, fault, wait_ms: 10 };
    }
    Event::Failed { task, attempts, fault: StoredFault::from(&Fault::new(code, "no")) }
}

fn succeeded(task: Task, attempts: u32, output: Value) -> Event {
    Event::Succeeded { task, attempts, output, usage: Usage::default() }
}
