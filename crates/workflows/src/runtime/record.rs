//! What is written of an event: its place in the journal for people, and the record for the engine.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::redact::REDACTED;
use orchestr8_kernel::resilience::breaker::Change;
use serde_json::{Value, json};

use crate::engine::event::{Event, Note, Status, Task};
use crate::engine::state::{Problem, State};
use crate::engine::{undo, waits};
use crate::{journal, limits};

/// An entry before it is made fit for the journal.
pub struct Entry {
    pub kind: &'static str,
    pub step: Option<usize>,
    pub level: &'static str,
    pub data: Value,
}

fn entry(kind: &'static str, step: Option<usize>, level: &'static str, data: Value) -> Entry {
    Entry { kind, step, level, data }
}

/// The record of an event, as it is stored.
pub fn record(event: &Event) -> Result<String, Fault> {
    serde_json::to_string(event).map_err(|error| Fault::internal("an event cannot be stored").because(error))
}

/// What the journal says of an event. Told before the event is applied to the state.
pub fn of_event(state: &State, event: &Event, at_ms: i64, grace_ms: u64) -> Entry {
    match event {
        Event::Begun { .. } => begun(state),
        Event::Started { task, attempt } => {
            let kind = if task.undo { "step-compensating" } else { "step-start" };
            entry(kind, Some(task.step), "info", with_part(json!({"attempt": attempt}), *task))
        }
        Event::ChildBegun { task, execution, undoable: _, detached: _ } => {
            let data = json!({"attempt": 1, "childExecutionId": execution});
            entry("step-start", Some(task.step), "info", with_part(data, *task))
        }
        Event::Retrying { task, attempt, fault, wait_ms } => {
            let data = json!({"attempt": attempt, "retryCount": attempt, "delayMs": wait_ms, "duration": duration(state, *task, at_ms),
                              "code": fault.code, "error": told(state, Some(*task), fault, *attempt)});
            entry("step-retry", Some(task.step), "warn", with_part(data, *task))
        }
        Event::Succeeded { task, attempts, output, .. } => {
            let data = json!({"status": "completed", "attempt": attempts, "duration": duration(state, *task, at_ms), "output": shown(state, "output", output)});
            entry(
                if task.undo { "step-compensated" } else { "step-complete" },
                Some(task.step),
                "info",
                with_part(data, *task),
            )
        }
        Event::Failed { task, attempts, fault } => failed(state, *task, *attempts, fault, at_ms),
        Event::Lost { task } => {
            let data = json!({"reason": "the server stopped while the step ran"});
            entry("step-lost", Some(task.step), "warn", with_part(data, *task))
        }
        Event::Resolved { task, .. } => {
            entry("step-resolved", Some(task.step), "info", with_part(json!({}), *task))
        }
        Event::Due { task } => {
            entry("timer", task.map(|task| task.step), "info", json!({"dueAt": iso(at_ms)}))
        }
        Event::Signal { name, payload, id: _ } => {
            entry("event-received", None, "info", received(name, shown(state, "payload", payload)))
        }
        Event::Decided { task, approved, by, on_behalf_of, comment, data } => {
            let decision = if *approved { "approved" } else { "rejected" };
            let data = json!({"decision": decision, "by": by, "onBehalfOf": on_behalf_of, "comment": comment,
                              "data": shown(state, "data", data)});
            entry("approval-decided", Some(task.step), "info", data)
        }
        Event::CancelAsked { reason, graceful, force } => {
            let data = json!({"requestedAt": at_ms, "reason": reason, "graceful": graceful, "gracePeriodMs": grace_ms});
            entry("cancellation", None, "warn", with_force(data, *force))
        }
        Event::UndoAsked => {
            entry("compensation-requested", None, "warn", json!({"reason": PARENT_ROLLS_BACK}))
        }
        Event::Forced => entry("debug", None, "debug", json!({"reason": "the time for clean-up is over"})),
        Event::Unwritable { fault } => {
            let data = json!({"code": fault.code, "error": told(state, None, fault, 1)});
            entry("execution-unwritable", None, "error", data)
        }
        Event::Paused { reason } => entry("execution-paused", None, "info", json!({"reason": reason})),
        Event::Resumed { budget } => entry("execution-resumed", None, "info", json!({"budget": budget})),
        Event::Again => entry("execution-retried", None, "info", json!({})),
        Event::AgainQueued => entry("execution-retried", None, "info", json!({"status": "queued"})),
    }
}

fn begun(state: &State) -> Entry {
    let workflow = state.workflow();
    let mut data = json!({"status": "running", "workflowId": workflow.id, "version": workflow.version, "hash": workflow.hash,
                          "startedBy": state.identity.started_by});
    if let Some(moment) = &state.identity.schedule {
        data["schedule"] = moment.shown();
    }
    entry("execution-start", None, "info", data)
}

const PARENT_ROLLS_BACK: &str = "the execution it belongs to is rolled back";

fn failed(state: &State, task: Task, attempts: u32, fault: &StoredFault, at_ms: i64) -> Entry {
    let data = json!({"status": "failed", "attempt": attempts, "duration": duration(state, task, at_ms), "code": fault.code, "error": told(state, Some(task), fault, attempts)});
    let kind = match (task.undo, fault.code) {
        (true, _) => "step-compensation-failed",
        (false, Code::Timeout) => "timeout",
        (false, _) => "step-failed",
    };
    entry(kind, Some(task.step), "error", with_part(data, task))
}

/// Said only where it is so.
fn with_force(mut data: Value, force: bool) -> Value {
    if force {
        data["force"] = true.into();
    }
    data
}

/// What the journal says of what followed from an event. Told after the event was applied.
pub fn of_note(state: &State, note: &Note, at_ms: i64) -> Entry {
    match note {
        Note::Completed { step } => {
            let own = &state.steps[*step];
            let data = json!({"status": "completed", "attempt": own.attempts, "duration": duration(state, Task::of(*step), at_ms), "output": own.output.as_ref().map(|output| shown(state, "output", output))});
            entry("step-complete", Some(*step), "info", data)
        }
        Note::Failed { step } => {
            let own = &state.steps[*step];
            let data = json!({"status": "failed", "attempt": own.attempts, "duration": duration(state, Task::of(*step), at_ms),
                              "code": own.fault.as_ref().map(|fault| fault.code), "error": own.fault.as_ref().map(|fault| told(state, Some(Task::of(*step)), fault, own.attempts))});
            entry("step-failed", Some(*step), "error", data)
        }
        Note::Skipped { step } => {
            let reason = state.steps[*step].skip.as_ref().map(|skip| skip.reason.clone());
            entry("step-skipped", Some(*step), "info", json!({"status": "skipped", "skipReason": reason}))
        }
        Note::Lost { step } => {
            let reason = state.steps[*step].skip.as_ref().map(|skip| skip.reason.clone());
            entry("step-cancelled", Some(*step), "info", json!({"skipReason": reason}))
        }
        Note::Paused => {
            let reason = state.pause.as_ref().map(|pause| pause.reason.clone());
            entry("execution-paused", None, "warn", json!({"reason": reason, "budget": true}))
        }
        Note::Waiting { step } => {
            let due = state.work.get(&Task::of(*step)).and_then(|work| work.phase.due_ms());
            entry("step-waiting", Some(*step), "info", json!({"dueAt": due.map(iso)}))
        }
        Note::Compensating { units } => {
            let data = json!({"status": "compensating", "cause": undo::cause(state), "steps": units,
                              "code": state.errors.first().map(|problem| problem.fault.code), "errors": errors(state)});
            entry("compensation", None, "warn", data)
        }
        Note::Closing { section } => {
            let outcome = state.closing.as_ref().map(|closing| closing.outcome);
            let data = json!({"handlers": section.member(), "status": outcome});
            entry("handlers-start", None, "info", data)
        }
        Note::UndoingChild { task } => {
            let child = state.children.get(&task.undone()).map(|child| &child.execution);
            let data = json!({"attempt": 1, "childExecutionId": child});
            entry("step-compensating", Some(task.step), "info", with_part(data, *task))
        }
        Note::Finished { forced } => finished(state, *forced, at_ms),
    }
}

/// A step opened or closed the circuit of what it calls.
pub fn of_circuit(task: Task, key: &str, change: Change) -> Entry {
    let (kind, level, word) = match change {
        Change::Opened => ("circuit-open", "warn", "open"),
        Change::Closed => ("circuit-close", "info", "closed"),
    };
    let data = json!({"circuitKey": key, "circuitState": word});
    entry(kind, Some(task.step), level, with_part(data, task))
}

/// Events about the execution were dropped, as the bus tells it (WF-19.6).
pub fn of_dropped(drop: &Value) -> Entry {
    let data = json!({"eventType": drop["event"], "priority": drop["priority"], "dropPolicy": drop["type"],
                      "queueSize": drop["queueSize"], "dropRate": drop["dropRate"], "dropped": drop["count"]});
    entry("event-dropped", None, "warn", data)
}

fn received(address: &str, payload: Value) -> Value {
    match waits::split(address) {
        (name, None) => json!({"name": name, "payload": payload}),
        (name, Some(key)) => json!({"name": name, "key": key, "payload": payload}),
    }
}

fn finished(state: &State, forced: bool, at_ms: i64) -> Entry {
    let duration = state.started_ms.map_or(0, |started| at_ms - started);
    let left = undo::left(state).len();
    match (state.status, &state.cancel) {
        (Status::Cancelled, Some(cancel)) => {
            let elapsed = at_ms - cancel.asked_ms;
            let (kind, moment) = match forced {
                true => ("cancellation-forced", "forcedAt"),
                false => ("cancellation-complete", "completedAt"),
            };
            let mut data = json!({moment: at_ms, "elapsedMs": elapsed, "graceful": !forced, "finalState": "cancelled", "duration": duration});
            if state.undoing.is_some() {
                data["undone"] = undo::count_done(state).into();
                data["notUndone"] = left.into();
            }
            entry(kind, None, "warn", data)
        }
        (Status::Completed, _) => {
            entry("execution-complete", None, "info", json!({"status": "completed", "duration": duration}))
        }
        (Status::Compensated, _) => {
            let data = json!({"status": "compensated", "duration": duration, "undone": undo::count_done(state), "notUndone": left,
                              "code": state.errors.first().map(|problem| problem.fault.code), "errors": errors(state)});
            entry("execution-compensated", None, if left > 0 { "error" } else { "warn" }, data)
        }
        (status, _) => {
            let data = json!({"status": status, "duration": duration, "code": state.errors.first().map(|problem| problem.fault.code), "errors": errors(state)});
            entry("execution-failed", None, "error", data)
        }
    }
}

fn errors(state: &State) -> Vec<Value> {
    let told = |problem: &Problem| {
        let attempts = problem.step.map_or(1, |step| state.steps[step].attempts);
        told(state, problem.step.map(Task::of), &problem.fault, attempts)
    };
    state.errors.iter().take(10).map(told).collect()
}

/// How long an attempt took; of what was no attempt, how long the step did.
fn duration(state: &State, task: Task, at_ms: i64) -> i64 {
    let began = state.work.get(&task).map(|work| work.began_ms).filter(|began_ms| *began_ms > 0);
    let started = if task.undo { state.undo_started_ms } else { state.steps[task.step].started_ms };
    began.or(started).map_or(0, |began| at_ms - began)
}

/// Why something failed, without the values that the message may quote: inputs, what came before, the item.
pub fn told(state: &State, task: Option<Task>, fault: &StoredFault, attempts: u32) -> Value {
    let (workflow, given) = (state.workflow(), &state.identity.variables);
    let inputs = given.iter().filter(|(name, value)| workflow.variables.get(*name) != Some(value));
    let mut values: Vec<&Value> = inputs.map(|(_, value)| value).collect();
    if let Some(task) = task {
        let before = &workflow.steps[task.step].dependencies;
        values.extend(before.iter().filter_map(|step| state.output(*step)));
        let parts = state.steps[task.step].parts.as_ref();
        let item = |part: u32| parts?.items.get(usize::try_from(part).ok()?);
        values.extend(task.part.and_then(item));
    }
    // One field of an entry has a limit; beyond it the whole error would be left out.
    let mut message = journal::without_values(&fault.message, values).into_owned();
    if message.len() > limits::JOURNAL_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(limits::JOURNAL_MESSAGE_BYTES));
        message.push('…');
    }
    json!({"code": fault.code, "message": message, "category": fault.category(), "attempts": attempts})
}

fn with_part(mut data: Value, task: Task) -> Value {
    if let (Some(part), Some(map)) = (task.part, data.as_object_mut()) {
        map.insert("index".to_owned(), part.into());
    }
    if let (true, Some(map)) = (task.undo, data.as_object_mut()) {
        map.insert("compensation".to_owned(), true.into());
    }
    data
}

/// A value that only a rule of the workflow lets into the journal: copied only then.
fn shown(state: &State, name: &str, value: &Value) -> Value {
    match journal::shows(&state.workflow().policies.journal, name) {
        true => value.clone(),
        false => REDACTED.into(),
    }
}

/// A step that was cancelled by force has ended after all.
pub fn late(task: Task, at_ms: i64) -> Entry {
    entry("debug", Some(task.step), "debug", with_part(json!({"status": "late", "at": iso(at_ms)}), task))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use orchestr8_contract::id::CorrelationId;
    use orchestr8_testing::Table;

    use super::*;
    use crate::engine::state::Identity;

    #[test]
    fn wf_19_7_the_table_of_entries() {
        let source = json!({"id": "flow", "version": "1.0.0", "name": "Flow",
                            "steps": [{"id": "a", "type": "agent", "agentId": "@orchestr8/echo"}]});
        let workflow = crate::definition::read_value(&source).unwrap();
        let state = State::new(Arc::new(Identity {
            execution: "exec-1".into(),
            started_by: "local".into(),
            correlation: CorrelationId::parse("test").unwrap(),
            variables: workflow.variables.clone(),
            workflow,
            timeout_ms: None,
            schedule: None,
        }));
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/workflows/tables/journal.md");
        Table::read(file, "Entries").holds(&["type", "level"], |row| {
            let event: Event = serde_json::from_str(row.get("event")).unwrap();
            let entry = of_event(&state, &event, 1, 5000);
            vec![entry.kind.to_owned(), entry.level.to_owned()]
        });
    }
}
