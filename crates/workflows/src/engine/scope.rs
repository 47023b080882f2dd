//! What expressions can see of an execution.

use std::borrow::Cow;
use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::event::Task;
use super::state::{Parts, State, Step};
use super::{closing, evaluation};
use crate::agents::has_fixed_input;
use crate::agents::secrets::SecretView;
use crate::definition::model::{Call, Kind};
use crate::expression::{EvaluationCost, Found, Fuel, SCHEDULE, Scope, Template};

/// The view of one task, or of a step that has not begun.
pub struct Frame<'s> {
    pub state: &'s State,
    pub task: Option<Task>,
    /// Only calls of agents get references to secrets. Their values are in no state at all.
    pub secrets: Option<SecretView<'s>>,
}

impl<'s> Frame<'s> {
    pub fn of(state: &'s State) -> Self {
        Self { state, task: None, secrets: None }
    }

    pub fn at(state: &'s State, task: Task) -> Self {
        Self { state, task: Some(task), secrets: None }
    }

    fn input_of_step(&self, task: Task, fuel: &mut Fuel) -> Option<Value> {
        let call = match &self.state.workflow().steps[task.step].kind {
            Kind::Agent(call) => call,
            Kind::Workflow(_) | Kind::Wait(_) | Kind::Approval(_) | Kind::Switch(_) => return None,
        };
        let frame = Frame { task: Some(task.undone()), ..*self };
        call.input.resolve(&frame, fuel).ok()
    }
}

impl Scope for Frame<'_> {
    fn output(&self, step: &str) -> Found<'_> {
        match self.state.workflow().place(step) {
            None => Found::Unknown,
            Some(place) => self.state.output(place).map_or(Found::NotCompleted, Found::Output),
        }
    }

    fn error(&self, step: &str) -> Option<Value> {
        self.state.workflow().place(step).and_then(|place| closing::step_error(self.state, place))
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.state.identity.variables.get(name)
    }

    fn env(&self, name: &str) -> Option<Cow<'_, str>> {
        self.state.env.get(name)?.as_str().map(Cow::Borrowed)
    }

    fn secret(&self, name: &str) -> Option<Cow<'_, str>> {
        let declared = self.state.workflow().secrets.iter().any(|own| &**own == name);
        if declared { self.secrets?.reference(name).map(Cow::Owned) } else { None }
    }

    fn local(&self, name: &str, fuel: &mut Fuel) -> Option<Cow<'_, Value>> {
        let identity = &self.state.identity;
        match name {
            "execution" => {
                let outcome = self.state.closing.as_ref().map(|closing| closing.outcome);
                return Some(Cow::Owned(
                    json!({"id": identity.execution, "correlationId": identity.correlation, "status": outcome}),
                ));
            }
            "failure" => return closing::failure(self.state).map(Cow::Owned),
            _ => {}
        }
        if name == SCHEDULE {
            return identity.schedule.as_ref().map(|moment| Cow::Owned(moment.shown()));
        }
        let task = self.task?;
        let step = &self.state.steps[task.step];
        let part = task.part;
        match name {
            "item" => step.parts.as_ref()?.items.get(usize::try_from(part?).ok()?).map(Cow::Borrowed),
            "index" | "iteration" => Some(Cow::Owned(part?.into())),
            "last" => step.parts.as_ref().map(|parts| last(parts, part)),
            "output" if task.undo => undone_output(step, part).map(Cow::Borrowed),
            "input" if task.undo => self.input_of_step(task, fuel).map(Cow::Owned),
            "outcome" if task.undo => Some(Cow::Owned(outcome(step, part).into())),
            _ => None,
        }
    }
}

/// The output of the round before this one. Rounds that may have to be undone are all kept.
fn last(parts: &Parts, round: Option<u32>) -> Cow<'_, Value> {
    match round.filter(|_| !parts.rounds.is_empty()) {
        Some(0) => Cow::Owned(Value::Null),
        Some(round) => Cow::Borrowed(parts.rounds.get(&(round - 1)).unwrap_or(&parts.last)),
        None => Cow::Borrowed(&parts.last),
    }
}

/// The output of what is undone: of the step, or of one item or round of it.
fn undone_output(step: &Step, part: Option<u32>) -> Option<&Value> {
    let Some(part) = part else { return step.output.as_ref() };
    let parts = step.parts.as_ref()?;
    let item = usize::try_from(part).ok().and_then(|part| parts.outputs.get(part)?.as_ref());
    item.or_else(|| parts.rounds.get(&part))
}

/// Whether what is undone is known to have happened.
fn outcome(step: &Step, part: Option<u32>) -> &'static str {
    if step.unknown.contains(&part) { "unknown" } else { "completed" }
}

/// What an agent is called with.
pub struct Resolved<'s> {
    pub call: &'s Call,
    pub input: Value,
    pub config: Value,
    /// The same for every attempt.
    pub key: String,
    /// What resolving it has cost.
    pub fuel: u64,
}

/// The agent that a task calls, if it calls one.
pub fn agent(state: &State, task: Task) -> Option<&Arc<str>> {
    call(state, task).map(|call| &call.agent)
}

/// The queue whose workers do a task, if it is theirs.
pub fn worker_queue(state: &State, task: Task) -> Option<&str> {
    agent(state, task)?.strip_prefix("@worker/")
}

fn call(state: &State, task: Task) -> Option<&Call> {
    let step = &state.workflow().steps[task.step];
    match (&step.kind, &step.compensate, task.undo) {
        (_, Some(call), true) | (Kind::Agent(call), _, false) => Some(call),
        (Kind::Agent(_) | Kind::Workflow(_) | Kind::Wait(_) | Kind::Approval(_) | Kind::Switch(_), _, _) => {
            None
        }
    }
}

/// The call a task makes, with its expressions resolved; secrets are references.
pub fn resolve<'s>(state: &'s State, task: Task, secrets: SecretView<'_>) -> Result<Resolved<'s>, Fault> {
    let call = call(state, task).ok_or_else(|| Fault::internal("the step calls no agent"))?;
    let frame = Frame { state, task: Some(task), secrets: Some(secrets) };
    let mut fuel = Fuel::evaluation();
    let key = key_within(state, task, &mut fuel)?;
    let mut input = call.input.resolve(&frame, &mut fuel)?;
    let is_unknown = task.undo && state.steps[task.step].unknown.contains(&task.part);
    // Agents with members of their own would refuse another one; their author writes `${outcome}` where it belongs.
    if let Value::Object(members) = &mut input
        && is_unknown
        && !has_fixed_input(&call.agent)
    {
        members.entry("outcome").or_insert_with(|| "unknown".into());
    }
    let config = call.config.resolve(&frame, &mut fuel)?;
    Ok(Resolved { call, input, config, key, fuel: fuel.used() })
}

/// What resolving the call of a task costs at most. The input of what is undone may be a part of it.
pub fn cost(state: &State, task: Task) -> u64 {
    let step = &state.workflow().steps[task.step];
    let Some(call) = call(state, task) else { return 0 };
    let templates = [Some(&call.input), Some(&call.config), step.idempotency_key.as_ref()];
    let costs = || templates.into_iter().flatten().map(Template::cost);
    let data = if costs().any(EvaluationCost::is_sized) { evaluation::data_bytes(state) } else { 0 };
    costs().map(|cost| cost.bound(data)).fold(0, u64::saturating_add)
}

/// The key of a call: the default, or what the author chose. That of an undo is derived from that of what it undoes.
pub fn key(state: &State, task: Task) -> Result<String, Fault> {
    key_within(state, task, &mut Fuel::evaluation())
}

fn key_within(state: &State, task: Task, fuel: &mut Fuel) -> Result<String, Fault> {
    match &state.workflow().steps[task.step].idempotency_key {
        Some(template) => {
            let done = Frame::at(state, task.undone());
            Ok(finish_key(text(template.resolve(&done, fuel)?)?, state, task))
        }
        None => Ok(default_key(state, task)),
    }
}

/// `execution:step`, with the item or round after it, and `:g2` when it is done a second time after it was undone.
pub(super) fn default_key(state: &State, task: Task) -> String {
    let mut key = format!("{}:{}", state.identity.execution, state.workflow().steps[task.step].id);
    if let Some(part) = task.part {
        key.push_str(&format!(":{part}"));
    }
    finish_key(key, state, task)
}

/// Adds what tells generations and undos apart, also where the author chose the rest of the key.
fn finish_key(mut key: String, state: &State, task: Task) -> String {
    let generation = state.steps[task.step].generation_of(task.part);
    if generation > 0 {
        key.push_str(&format!(":g{}", generation.saturating_add(1)));
    }
    if task.undo {
        key.push_str(":compensate");
    }
    key
}

impl Step {
    /// How often this piece of work was done and undone.
    pub fn generation_of(&self, part: Option<u32>) -> u32 {
        let own = part.and_then(|part| self.part_generations.get(&part)).copied().unwrap_or(0);
        self.generation.saturating_add(own)
    }

    /// The generation that another execution begins with: above that of every item and round, and of what was undone.
    pub fn next_generation(&self) -> u32 {
        let was_undone = self.undone.values().any(|undone| !undone.leaves_result());
        let of_parts = self.part_generations.values().max().copied().unwrap_or(0);
        self.generation.saturating_add(of_parts).saturating_add(u32::from(was_undone))
    }
}

fn text(value: Value) -> Result<String, Fault> {
    match value {
        Value::String(text) if !text.is_empty() => Ok(text),
        other => Err(Fault::new(
            Code::InvalidArgument,
            format!("idempotencyKey must give a text that is not empty, and gives {other}"),
        )),
    }
}
