//! The fuel of what the engine evaluates, and how much the next look at the graph may take: what is large does not run on a thread
//! that serves requests.

use orchestr8_contract::{Fault, json};
use serde::Serialize;
use serde_json::Value;

use super::event::Event;
use super::scope::Frame;
use super::state::State;
use super::waits;
use crate::definition::model::{Kind, Step, Wait};
use crate::expression::{Condition, EvaluationCost, Fuel, Template};
use crate::limits::{EVALUATION_FUEL, INLINE_FUEL};

/// Resolves a template for the graph. What it used counts, also if it failed.
pub fn resolve(state: &mut State, template: &Template) -> Result<Value, Fault> {
    with_fuel(state, |state, fuel| template.resolve(&Frame::of(state), fuel))
}

/// Evaluates something with the fuel that is left to the execution.
pub fn with_fuel<T>(state: &mut State, evaluate: impl FnOnce(&State, &mut Fuel) -> T) -> T {
    let mut fuel = Fuel::of_execution(state.fuel_used);
    let result = evaluate(state, &mut fuel);
    state.fuel_used = state.fuel_used.saturating_add(fuel.used());
    result
}

/// Remembers the size of what a loop holds beside the outputs of steps: its items, and the output of its last round.
pub fn note_loop_data(state: &mut State, value: &impl Serialize) {
    state.loop_bytes = state.loop_bytes.max(json::bytes(value));
}

/// The bytes that expressions can see.
pub fn data_bytes(state: &State) -> usize {
    let variables = *state.variables_bytes.get_or_init(|| json::bytes(&state.identity.variables));
    variables.saturating_add(state.outputs_bytes).saturating_add(state.loop_bytes)
}

/// The most fuel that applying this event may take. An execution that ends, pauses or stops evaluates nothing.
pub fn bound(state: &State, event: &Event) -> u64 {
    let workflow = state.workflow();
    let stops = matches!(event, Event::CancelAsked { .. } | Event::Forced | Event::UndoAsked);
    let is_stopping = stops || state.cancel.is_some() || state.undoing.is_some();
    let begins_again = matches!(event, Event::Again | Event::AgainQueued);
    let rests = matches!(event, Event::Paused { .. }) || (is_stopping && !workflow.has_closing_steps());
    if (rests && !begins_again) || state.status.is_final() && !event.concerns_ended() {
        return 0;
    }
    let open = || {
        let all = workflow.steps.iter().zip(&state.steps);
        all.filter(move |(_, own)| begins_again || own.outcome.is_none())
            .map(move |(step, own)| (step, own.begun && !begins_again))
    };
    // Most definitions evaluate nothing that depends on the size of the data, so that need not be known.
    let data = match open().any(|(step, begun)| step_costs(step, begun).any(EvaluationCost::is_sized)) {
        true => data_bytes(state).saturating_add(event_bytes(event)),
        false => 0,
    };
    let bounds = open().flat_map(|(step, begun)| step_costs(step, begun)).map(|cost| cost.bound(data));
    let cases = open().filter(|(_, begun)| !begun).map(|(step, _)| cases_bound(step));
    bounds.chain(cases).fold(0, u64::saturating_add)
}

/// What finding the case of a switch takes at most. A list or an object may be as large as a definition, so it is not measured here.
fn cases_bound(step: &Step) -> u64 {
    let Kind::Switch(switch) = &step.kind else { return 0 };
    let one = |value: &Value| match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 2,
        Value::String(text) => 2 + u64::try_from(text.len()).unwrap_or(u64::MAX),
        Value::Array(_) | Value::Object(_) => EVALUATION_FUEL,
    };
    switch.cases.iter().map(|(case, _)| one(case)).fold(0, u64::saturating_add).min(EVALUATION_FUEL)
}

/// Whether an event may be applied on a thread that serves requests.
pub fn may_run_inline(state: &State, event: &Event) -> bool {
    bound(state, event) <= INLINE_FUEL
}

/// The most fuel that applying any event may take, with so many bytes more to see.
pub fn bound_of_any(state: &State, more_bytes: usize) -> u64 {
    let costs = || state.workflow().steps.iter().flat_map(|step| step_costs(step, false));
    let is_sized = costs().any(EvaluationCost::is_sized);
    let data = if is_sized { data_bytes(state).saturating_add(more_bytes) } else { 0 };
    let cases = state.workflow().steps.iter().map(cases_bound);
    costs().map(|cost| cost.bound(data)).chain(cases).fold(0, u64::saturating_add)
}

/// What an event brings that expressions can see from then on.
fn event_bytes(event: &Event) -> usize {
    match event {
        Event::Succeeded { output, .. } => json::bytes(output),
        Event::Signal { payload, .. } => json::bytes(payload),
        Event::Begun { kept, .. } => kept.iter().map(|(_, output)| json::bytes(output)).sum(),
        Event::Decided { data, .. } => json::bytes(data),
        Event::Resolved { .. }
        | Event::Started { .. }
        | Event::Retrying { .. }
        | Event::Failed { .. }
        | Event::ChildBegun { .. }
        | Event::Lost { .. }
        | Event::Due { .. }
        | Event::CancelAsked { .. }
        | Event::UndoAsked
        | Event::Forced
        | Event::Unwritable { .. }
        | Event::Paused { .. }
        | Event::Resumed { .. }
        | Event::Again
        | Event::AgainQueued => 0,
    }
}

/// What the graph may evaluate for a step. One that has begun only tests whether there is another round.
fn step_costs(step: &Step, begun: bool) -> impl Iterator<Item = &EvaluationCost> {
    let repeat = step.repeat.as_ref().map(|repeat| repeat.condition.cost());
    let conditions = [&step.only_if, &step.unless].into_iter().flatten().map(Condition::cost);
    let each = step.each.as_ref().map(|each| each.items.cost());
    let (value, key) = match &step.kind {
        Kind::Agent(_) | Kind::Workflow(_) | Kind::Approval(_) => (None, None),
        Kind::Wait(wait) => {
            let key = match wait {
                Wait::Event { key, .. } => key.as_ref(),
                Wait::For(_) | Wait::Until(_) => None,
            };
            (Some(waits::template(wait)), key)
        }
        Kind::Switch(switch) => (Some(&switch.on), None),
    };
    let entered = conditions.chain(each).chain([value, key].into_iter().flatten().map(Template::cost));
    repeat.into_iter().chain(entered.filter(move |_| !begun))
}
