//! Steps that wait: for a time, for an event, for a person.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::clock::iso;
use serde_json::{Value, json};

use super::backoff;
use super::evaluation::resolve;
use super::event::{Decision, Note, Task};
use super::graph::{complete, fail};
use super::parts;
use super::state::{Phase, State, Work};
use crate::definition::model::{Kind, OnTimeout, Wait};
use crate::definition::moment;
use crate::expression::Template;
use crate::limits;

/// The longest a step may wait: ten years. Beyond it a mistake is more likely than a wish.
const LONGEST_MS: i64 = 10 * 366 * 86_400_000;

/// What a person decided.
pub struct Verdict {
    pub approved: bool,
    pub by: String,
    pub on_behalf_of: Option<String>,
    pub comment: Option<String>,
    pub data: Value,
}

/// The expression of a wait.
pub fn template(wait: &Wait) -> &Template {
    match wait {
        Wait::For(template) | Wait::Until(template) | Wait::Event { name: template, .. } => template,
    }
}

pub fn due_in(timeout_ms: Option<u64>, at_ms: i64) -> Option<i64> {
    timeout_ms.map(|ms| at_ms.saturating_add(i64::try_from(ms).unwrap_or(LONGEST_MS)))
}

pub fn begin(
    state: &mut State,
    task: Task,
    wait: &Wait,
    at_ms: i64,
    out: &mut Vec<Decision>,
) -> Result<(), Fault> {
    let value = resolve(state, template(wait))?;
    let key = match wait {
        Wait::Event { key: Some(key), .. } => Some(event_key(&resolve(state, key)?)?),
        Wait::For(_) | Wait::Until(_) | Wait::Event { key: None, .. } => None,
    };
    let (due_ms, event) = match wait {
        Wait::For(_) => (due_in(Some(moment::duration_ms(&value)?), at_ms), None),
        Wait::Until(_) => (Some(moment::moment_ms(&value)?), None),
        Wait::Event { timeout_ms, .. } => {
            (due_in(*timeout_ms, at_ms), Some(address(&event_name(&value)?, key.as_deref())))
        }
    };
    state.steps[task.step].started_ms = Some(at_ms);
    if let Some(name) = &event
        && let Some(at) = state.signals.iter().position(|(given, _)| given == name)
        && let Some((name, payload)) = state.signals.remove(at)
    {
        complete(state, task.step, received(&name, payload, at_ms), at_ms, out);
        return Ok(());
    }
    if due_ms.is_some_and(|due_ms| due_ms - at_ms > LONGEST_MS) {
        return Err(Fault::invalid("a step may wait for ten years at most"));
    }
    if event.is_none() && due_ms.is_none_or(|due_ms| due_ms <= at_ms) {
        complete(state, task.step, json!({"at": iso(at_ms)}), at_ms, out);
        return Ok(());
    }
    if let (Some(key), Some(name)) = (key, &event) {
        let name = split(name).0.to_owned();
        out.push(Decision::Expect { name, key });
    }
    state.work.insert(task, Work::new(Phase::Waiting { due_ms, event }, 1));
    out.extend(due_ms.map(|due_ms| Decision::Wake { task: Some(task), due_ms }));
    out.push(Decision::Note(Note::Waiting { step: task.step }));
    Ok(())
}

/// The time has come.
pub fn due(state: &mut State, task: Task, at_ms: i64, out: &mut Vec<Decision>) {
    let Some(work) = state.work.get(&task) else { return };
    match &work.phase {
        Phase::Waiting { event: None, .. } => {
            state.work.remove(&task);
            complete(state, task.step, json!({"at": iso(at_ms)}), at_ms, out);
        }
        Phase::Waiting { event: Some(name), .. } => {
            let (name, key) = split(name);
            let mut fault = Fault::new(Code::Timeout, format!("the event '{name}' did not come in time"))
                .with("event", name);
            if let Some(key) = key {
                fault = fault.with("key", key);
            }
            state.work.remove(&task);
            fail(state, task.step, &fault, at_ms, out);
        }
        Phase::Asking { .. } => undecided(state, task, at_ms, out),
        Phase::Resting { .. } => parts::rested(state, task),
        Phase::Retrying { .. } => backoff::over(state, task, out),
        Phase::Ready | Phase::Running | Phase::Beginning | Phase::Child { .. } | Phase::Unknown => {}
    }
}

/// Nobody decided in time.
fn undecided(state: &mut State, task: Task, at_ms: i64, out: &mut Vec<Decision>) {
    let Kind::Approval(approval) = &state.identity.workflow.steps[task.step].kind else { return };
    let on_timeout = approval.on_timeout;
    state.work.remove(&task);
    out.push(Decision::Unask { task });
    let output = |decision: &str, approved: bool| {
        json!({"decision": decision, "approved": approved, "by": "timeout", "comment": null,
               "data": null, "at": iso(at_ms)})
    };
    match on_timeout {
        OnTimeout::Approve => complete(state, task.step, output("approved", true), at_ms, out),
        OnTimeout::Reject => complete(state, task.step, output("rejected", false), at_ms, out),
        OnTimeout::Fail => {
            let fault = Fault::new(Code::Timeout, "nobody decided in time");
            fail(state, task.step, &fault, at_ms, out);
        }
    }
}

pub fn decided(state: &mut State, task: Task, verdict: Verdict, at_ms: i64, out: &mut Vec<Decision>) {
    let Some(Work { phase: Phase::Asking { due_ms }, .. }) = state.work.get(&task) else { return };
    if due_ms.is_some() {
        out.push(Decision::Forget { task: Some(task) });
    }
    out.push(Decision::Unask { task });
    state.work.remove(&task);
    let Verdict { approved, by, on_behalf_of, comment, data } = verdict;
    let decision = if approved { "approved" } else { "rejected" };
    let mut output = json!({"decision": decision, "approved": approved, "by": by, "comment": comment,
                            "data": data, "at": iso(at_ms)});
    if let Some(person) = on_behalf_of {
        output["onBehalfOf"] = person.into();
    }
    complete(state, task.step, output, at_ms, out);
}

/// Goes to the first step that waits for it, or is kept for one that will.
pub fn signal(state: &mut State, name: String, payload: Value, at_ms: i64, out: &mut Vec<Decision>) {
    let Some((task, work)) = state.work.iter().find(|(_, work)| work.waits_for(&name)) else {
        state.signals.push_back((name, payload));
        return;
    };
    let task = *task;
    if work.phase.due_ms().is_some() {
        out.push(Decision::Forget { task: Some(task) });
    }
    state.work.remove(&task);
    complete(state, task.step, received(&name, payload, at_ms), at_ms, out);
}

fn received(address: &str, payload: Value, at_ms: i64) -> Value {
    match split(address) {
        (name, None) => json!({"event": name, "payload": payload, "at": iso(at_ms)}),
        (name, Some(key)) => json!({"event": name, "key": key, "payload": payload, "at": iso(at_ms)}),
    }
}

/// Between the name of an event and its key. A name with it cannot be meant for anything else.
const SEPARATOR: char = '\u{1f}';

/// What a step waits for: an event of this name, and of this key if it has one.
pub fn address(name: &str, key: Option<&str>) -> String {
    key.map_or_else(|| name.to_owned(), |key| format!("{name}{SEPARATOR}{key}"))
}

/// The name and the key of what a step waits for.
pub fn split(address: &str) -> (&str, Option<&str>) {
    match address.split_once(SEPARATOR) {
        Some((name, key)) => (name, Some(key)),
        None => (address, None),
    }
}

fn event_key(value: &Value) -> Result<String, Fault> {
    let key = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    };
    match (1..=limits::EVENT_KEY_BYTES).contains(&key.len()) && !key.contains(SEPARATOR) {
        true => Ok(key),
        false => Err(Fault::invalid(format!(
            "wait.key needs a text or a number of 1 to {} bytes, and gets {value}",
            limits::EVENT_KEY_BYTES
        ))),
    }
}

fn event_name(value: &Value) -> Result<String, Fault> {
    match value {
        Value::String(name) if !name.is_empty() => Ok(name.clone()),
        other => Err(Fault::invalid(format!("wait.event needs a name, and gets {other}"))),
    }
}
