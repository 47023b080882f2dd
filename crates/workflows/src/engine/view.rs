//! An execution as people and programs see it.

use orchestr8_contract::error::{Retry, StoredFault};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::tool_limit::ToolLimit;
use serde_json::{Map, Value, json};

use super::attempts;
use super::event::Task;
use super::identity::ScheduledMoment;
use super::scope;
use super::state::{Abandoned, Outcome, Phase, Problem, State, Step, Undone};
use super::undo;
use super::waiting;
use crate::authors::{Author, Authors};
use crate::definition::model::StepSection;
use crate::tags::ExecutionTags;

/// The facts of an execution that are not in its state.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub created_ms: i64,
    pub parent: Option<String>,
    /// Its parent does not wait for it.
    pub detached: bool,
    pub forked_from: Option<String>,
    pub authors: Authors,
    pub tools: Option<ToolLimit>,
    pub tags: ExecutionTags,
    pub last_sequence: u64,
}

/// The result of an execution that has ended: the members of the resource that an answer to its start has.
pub fn result(state: &State) -> Value {
    json!({
        "executionId": state.identity.execution,
        "status": waiting::status(state),
        "outputs": outputs(state),
        "errors": errors(state),
        "duration": state.started_ms.zip(state.ended_ms).map(|(started, ended)| ended - started),
        "completedAt": state.ended_ms.map(iso),
        "compensation": compensation(state),
    })
}

fn outputs(state: &State) -> Map<String, Value> {
    let steps = state.workflow().steps.iter().enumerate();
    let output = |place: usize| state.output(place).cloned();
    steps.filter_map(|(place, step)| Some((step.id.to_string(), output(place)?))).collect()
}

fn errors(state: &State) -> Vec<Value> {
    let name = |place: usize| &*state.workflow().steps[place].id;
    let attempts = |problem: &Problem| problem.step.map_or(1, |step| state.steps[step].attempts);
    state.errors.iter().map(|one| error(&one.fault, one.step.map(name), attempts(one))).collect()
}

/// The whole resource.
pub fn resource(state: &State, facts: &Facts, now_ms: i64) -> Value {
    let workflow = state.workflow();
    let mut steps = Map::new();
    for (place, definition) in workflow.steps.iter().enumerate() {
        steps.insert(definition.id.to_string(), step(state, place));
    }
    let duration = state.started_ms.map(|started| state.ended_ms.unwrap_or(now_ms) - started);
    let mut resource = json!({
        "executionId": state.identity.execution,
        "status": waiting::status(state),
        "workflow": {"id": workflow.id, "name": workflow.name, "version": workflow.version, "hash": workflow.hash},
        "steps": steps,
        "stepOrder": workflow.steps.iter().map(|step| &*step.id).collect::<Vec<_>>(),
        "outputs": outputs(state),
        "errors": errors(state),
        "variables": state.identity.variables,
        "createdAt": iso(facts.created_ms),
        "startedBy": state.identity.started_by,
        "startedAt": state.started_ms.map(iso),
        "completedAt": state.ended_ms.map(iso),
        "duration": duration,
        "correlationId": state.identity.correlation,
        "usage": {"tokens": state.usage.tokens, "cost": state.usage.cost, "steps": state.attempts},
        "lastSequence": facts.last_sequence,
    });
    let mut add = |name: &str, value: Option<Value>| {
        if let (Some(value), Some(map)) = (value, resource.as_object_mut()) {
            map.insert(name.to_owned(), value);
        }
    };
    add("parentExecutionId", facts.parent.clone().map(Value::from));
    add("detached", facts.detached.then(|| true.into()));
    let name = |author: &Option<Author>| author.as_ref().map(|author| Value::from(&*author.name));
    add("definedBy", name(&facts.authors.defined_by));
    add("editedBy", name(&facts.authors.edited_by));
    add("scheduledBy", name(&facts.authors.scheduled_by));
    add("schedule", state.identity.schedule.as_ref().map(ScheduledMoment::shown));
    add("triggeredBy", name(&facts.authors.triggered_by));
    add("toolLimit", facts.tools.as_ref().map(|tools| json!(tools)));
    add("tags", (!facts.tags.is_empty()).then(|| json!(facts.tags)));
    add("forkedFrom", facts.forked_from.clone().map(Value::from));
    add("pauseReason", state.pause.as_ref().map(|pause| pause.reason.clone().into()));
    add("cancelReason", state.cancel.as_ref().map(|cancel| cancel.reason.clone().into()));
    add("compensation", compensation(state));
    add("notUndone", abandoned(state));
    add("handlers", closing(state));
    let budget = &state.budget;
    if *budget != crate::definition::model::Budget::default() {
        let limits = json!({"wallClockMs": budget.wall_clock_ms, "steps": budget.steps,
                            "tokens": budget.tokens, "cost": budget.cost});
        add("budget", Some(limits));
    }
    resource
}

/// How the body ended and which handlers run, from then on.
fn closing(state: &State) -> Option<Value> {
    let closing = state.closing.as_ref()?;
    let handlers = state.workflow().section(StepSection::Body).end..state.steps.len();
    let failed = handlers.filter(|place| state.steps[*place].outcome == Some(Outcome::Failed));
    let failed: Vec<&str> = failed.map(|place| &*state.workflow().steps[place].id).collect();
    Some(
        json!({"outcome": closing.outcome, "running": closing.section.map(StepSection::member), "failed": failed}),
    )
}

/// How far a rollback has come, and what could not be undone.
fn compensation(state: &State) -> Option<Value> {
    state.undoing.as_ref()?;
    let left = undo::left(state);
    let failed: Vec<Value> =
        left.iter().filter(|one| one.fault.is_some()).map(|one| unit(state, one)).collect();
    Some(json!({
        "cause": undo::cause(state),
        "undone": undo::count_done(state), "remaining": left.len() - failed.len(), "notUndone": failed,
    }))
}

/// Effects of earlier runs that could not be undone, of steps that were done again.
fn abandoned(state: &State) -> Option<Value> {
    let one = |one: &Abandoned| {
        let mut shown = effect(state, one.task, one.is_unknown, Some(&one.fault));
        shown["generation"] = one.generation.saturating_add(1).into();
        shown
    };
    (!state.abandoned.is_empty()).then(|| state.abandoned.iter().map(one).collect())
}

/// What is not undone: step, item and reason.
pub fn unit(state: &State, left: &undo::Left<'_>) -> Value {
    let is_unknown = state.steps[left.task.step].unknown.contains(&left.task.part);
    effect(state, left.task, is_unknown, left.fault)
}

fn effect(state: &State, task: Task, is_unknown: bool, fault: Option<&StoredFault>) -> Value {
    let mut unit = json!({"stepId": state.workflow().steps[task.step].id});
    if let Some(part) = task.part {
        unit["index"] = part.into();
    }
    if is_unknown {
        unit["outcome"] = "unknown".into();
    }
    if let Some(fault) = fault {
        unit["error"] = error(fault, None, attempts_of(fault));
    }
    unit
}

/// The attempts that a fault names, which it does if it was not one.
pub fn attempts_of(fault: &StoredFault) -> u32 {
    let named = fault.details.as_ref().and_then(|details| details.get("attempts")).and_then(Value::as_u64);
    named.and_then(|attempts| u32::try_from(attempts).ok()).unwrap_or(1)
}

/// A fault as part of a resource. The face gives the code its own word.
pub fn error(fault: &StoredFault, step: Option<&str>, attempts: u32) -> Value {
    let mut error = json!({"code": fault.code, "message": fault.message, "category": fault.category(),
                           "isRetryable": fault.code.retry() == Retry::Later, "attempts": attempts});
    if let Some(map) = error.as_object_mut() {
        if let Some(step) = step {
            map.insert("stepId".to_owned(), step.into());
        }
        if let Some(details) = &fault.details {
            map.insert("details".to_owned(), Value::Object(details.clone()));
        }
    }
    error
}

/// The word for where a step stands.
pub fn step_status(state: &State, place: usize) -> &'static str {
    match state.steps[place].outcome {
        Some(Outcome::Completed) => "completed",
        Some(Outcome::Failed) => "failed",
        Some(Outcome::Skipped) => "skipped",
        Some(Outcome::Cancelled) => "cancelled",
        None => {
            let words = state.work.iter().filter(|(task, _)| task.step == place && !task.undo);
            // Of several items, the busiest tells.
            words.map(|(_, work)| word(&work.phase)).max_by_key(|(rank, _)| *rank).map_or_else(
                || if state.steps[place].begun { "running" } else { "pending" },
                |(_, word)| word,
            )
        }
    }
}

fn word(phase: &Phase) -> (u8, &'static str) {
    match phase {
        Phase::Running | Phase::Child { .. } => (5, "running"),
        Phase::Retrying { .. } => (4, "retrying"),
        Phase::Unknown => (3, "unknown"),
        Phase::Ready | Phase::Beginning => (2, "ready"),
        Phase::Waiting { .. } | Phase::Asking { .. } | Phase::Resting { .. } => (1, "waiting"),
    }
}

fn step(state: &State, place: usize) -> Value {
    let own = &state.steps[place];
    let mut map = Map::new();
    let mut add = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    add("status", step_status(state, place).into());
    let section = state.workflow().steps[place].section;
    if section.is_closing() {
        add("handler", section.member().into());
    }
    add("attempts", own.attempts.into());
    if let Some(times) = attempts::shown(own) {
        add("attemptTimes", times);
    }
    if let Some(output) = own.output.as_ref() {
        add("output", output.clone());
    }
    if let Some(fault) = &own.fault {
        add("error", error(fault, None, own.attempts));
    }
    if let Some(primary) = own.alias_for {
        add("aliasFor", (*state.workflow().steps[primary].id).into());
    }
    if let Some(skip) = &own.skip {
        add("skipReason", skip.reason.clone().into());
    }
    if let Some(started) = own.started_ms {
        add("startTime", iso(started).into());
    }
    if let Some(ended) = own.ended_ms {
        add("endTime", iso(ended).into());
    }
    if state.work.keys().any(|task| task.step == place && task.undo) {
        add("compensating", true.into());
    } else if !own.undone.is_empty() {
        add("compensated", own.undone.values().all(|undone| matches!(undone, Undone::Done)).into());
    }
    if let Some(work) = state.work.get(&Task::of(place)) {
        for (name, value) in phase(&work.phase) {
            add(name, value);
        }
        // Tasks of workers need a place in their queue, and no slot.
        if let (Phase::Ready, Some(queue)) = (&work.phase, scope::worker_queue(state, Task::of(place))) {
            add("waitingFor", json!({"queue": queue}));
        }
    }
    if let Some(items) = items(state, place, own) {
        add("items", items);
    }
    Value::Object(map)
}

/// What it waits for, and until when.
fn phase(phase: &Phase) -> Vec<(&'static str, Value)> {
    match phase {
        Phase::Retrying { at_ms } => vec![("nextRetryAt", iso(*at_ms).into())],
        Phase::Child { execution, stopping: _ } => vec![("childExecutionId", (**execution).into())],
        Phase::Waiting { due_ms, event } => {
            let until = due_ms.map(iso);
            vec![("waitingFor", json!({"event": event, "until": until}))]
        }
        Phase::Asking { due_ms } => vec![("waitingFor", json!({"approval": true, "until": due_ms.map(iso)}))],
        Phase::Unknown => vec![("waitingFor", json!({"resolution": true}))],
        Phase::Resting { due_ms } => vec![("waitingFor", json!({"until": iso(*due_ms)}))],
        Phase::Ready => vec![("waitingFor", json!({"slot": true}))],
        Phase::Beginning | Phase::Running => Vec::new(),
    }
}

/// How far the items or rounds have come.
fn items(state: &State, place: usize, own: &Step) -> Option<Value> {
    let parts = own.parts.as_ref()?;
    if own.outcome == Some(Outcome::Completed) {
        return None;
    }
    let done = parts.outputs.iter().filter(|one| one.is_some()).count();
    Some(json!({
        "total": parts.outputs.len(), "begun": parts.next, "succeeded": done,
        "failed": parts.failed.len(), "running": state.works_on(place),
    }))
}
