//! Steps that run several times: once for each item of a list, or in rounds while a condition holds.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::json::{bytes, kind};
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::evaluation::{note_loop_data, with_fuel};
use super::event::{Decision, Task};
use super::graph::{complete, fail, launch};
use super::scope::Frame;
use super::state::{Parts, Phase, State, Work};
use super::view;
use crate::definition::model::{Each, Kind, OnItemError, Repeat};
use crate::limits;

pub fn no_list(value: &Value) -> Fault {
    Fault::invalid(format!("forEach.items must give a list, and gives {}", kind(value)))
}

pub fn too_many(items: usize) -> Fault {
    let limit = limits::ITEMS;
    Fault::new(Code::LimitExceeded, format!("forEach.items gives {items} items; the limit is {limit}"))
        .with("items", items)
        .with("limit", limit)
}

/// One item or round has ended.
pub fn ended(state: &mut State, task: Task, result: Result<Value, StoredFault>) {
    let Some(part) = task.part else { return };
    let keeps_rounds = state.workflow().steps[task.step].compensate.is_some();
    if let (Ok(output), true) = (&result, state.workflow().steps[task.step].repeat.is_some()) {
        note_loop_data(state, output);
    }
    let Some(parts) = state.steps[task.step].parts.as_mut() else { return };
    match result {
        Ok(output) => {
            match parts.outputs.get_mut(usize::try_from(part).unwrap_or(usize::MAX)) {
                Some(place) => {
                    parts.kept += 1;
                    parts.bytes += bytes(&output);
                    *place = Some(output);
                    if parts.exceeded.is_none() && is_too_large(parts) {
                        parts.exceeded = Some(part);
                    }
                }
                None => {
                    if keeps_rounds {
                        state.outputs_bytes += bytes(&output);
                        parts.rounds.insert(part, output.clone());
                    }
                    parts.last = output;
                    parts.rounds_done += 1;
                }
            }
            parts.rested = false;
        }
        Err(fault) => {
            parts.failed.insert(part, fault);
        }
    }
}

/// Whether the output of the step would be too large, however small the outputs of the items that are to come.
fn is_too_large(parts: &Parts) -> bool {
    const FRAME: usize = r#"{"failed":[],"results":[],"succeeded":0}"#.len();
    let total = parts.outputs.len();
    let (commas, others) = (total.saturating_sub(1), total.saturating_sub(parts.kept));
    FRAME + parts.bytes + commas + others > limits::OUTPUT_BYTES
}

/// Measures again what is kept of the outputs, after some of it was given up.
pub fn measure(parts: &mut Parts) {
    parts.kept = parts.outputs.iter().flatten().count();
    parts.bytes = parts.outputs.iter().flatten().map(bytes).sum();
    if !is_too_large(parts) {
        parts.exceeded = None;
    }
}

/// Begins what is next, or ends the step.
pub fn advance(state: &mut State, step: usize, at_ms: i64, out: &mut Vec<Decision>) {
    let workflow = state.workflow().clone();
    let definition = &workflow.steps[step];
    if let Some(each) = &definition.each {
        advance_each(state, step, each, at_ms, out);
    } else if let Some(repeat) = &definition.repeat {
        advance_repeat(state, step, repeat, at_ms, out);
    }
}

/// Whether a loop can only end: an item or round failed it, or all items have ended.
pub fn has_nothing_to_begin(state: &State, step: usize, parts: &Parts) -> bool {
    match &state.workflow().steps[step].each {
        Some(each) if each.on_item_error == OnItemError::Fail && !parts.failed.is_empty() => true,
        Some(_) => {
            let ended = parts.failed.len() + parts.outputs.iter().filter(|output| output.is_some()).count();
            ended == parts.outputs.len()
        }
        None => !parts.failed.is_empty(),
    }
}

fn advance_each(state: &mut State, step: usize, each: &Each, at_ms: i64, out: &mut Vec<Decision>) {
    let mut under_way = state.works_on(step);
    loop {
        let Some(parts) = state.steps[step].parts.as_mut() else { return };
        let has_failed = each.on_item_error == OnItemError::Fail && !parts.failed.is_empty();
        let stopped = has_failed || parts.exceeded.is_some();
        let at = usize::try_from(parts.next).unwrap_or(usize::MAX);
        if stopped || at >= parts.outputs.len() || under_way >= each.concurrency {
            break;
        }
        let part = parts.next;
        parts.next += 1;
        // Taken up again after a failure, an item that succeeded before is not run again.
        if parts.outputs[at].is_none() {
            under_way += 1;
            launch(state, Task::part(step, part), out);
        }
    }
    if under_way == 0 {
        conclude_each(state, step, each, at_ms, out);
    }
}

fn conclude_each(state: &mut State, step: usize, each: &Each, at_ms: i64, out: &mut Vec<Decision>) {
    let Some(parts) = state.steps[step].parts.as_ref() else { return };
    if let Some(index) = parts.exceeded {
        let limit = limits::OUTPUT_BYTES;
        let text =
            format!("the outputs of all items together take more than {limit} bytes, from item {index} on");
        let fault = Fault::new(Code::PayloadTooLarge, text).with("index", index).with("limit", limit);
        return fail(state, step, &fault, at_ms, out);
    }
    let (total, failed) = (parts.outputs.len(), parts.failed.len());
    let fails = match each.on_item_error {
        OnItemError::Fail => failed > 0,
        OnItemError::Continue => false,
        OnItemError::Tolerate(share) => exceeds(failed, total, share),
    };
    let list =
        || parts.failed.iter().map(|(index, fault)| json!({"index": index, "error": item_error(fault)}));
    if fails {
        let first = parts.failed.iter().next();
        let (index, cause) =
            first.map_or((0, String::new()), |(index, fault)| (*index, fault.message.clone()));
        let code = first.map_or(Code::AgentFailed, |(_, fault)| fault.code);
        let category = first.map_or(code.category(), |(_, fault)| fault.category());
        let fault = Fault::new(code, format!("{failed} of {total} items failed; item {index}: {cause}"))
            .in_category(category)
            .with("failed", list().take(10).collect::<Vec<_>>());
        return fail(state, step, &fault, at_ms, out);
    }
    let results: Vec<Value> = parts.outputs.iter().map(|one| one.clone().unwrap_or(Value::Null)).collect();
    let output = json!({
        "results": results, "succeeded": total - failed, "failed": list().collect::<Vec<_>>(),
    });
    conclude(state, step, output, at_ms, out);
}

/// The error of one item: as it is stored, with the number of its attempts.
fn item_error(fault: &StoredFault) -> Value {
    let mut error = json!(fault);
    error["attempts"] = view::attempts_of(fault).into();
    error["category"] = json!(fault.category());
    error
}

#[allow(clippy::cast_precision_loss, reason = "ten thousand items at most")]
fn exceeds(failed: usize, total: usize, share: f64) -> bool {
    total > 0 && failed as f64 / total as f64 > share
}

fn advance_repeat(state: &mut State, step: usize, repeat: &Repeat, at_ms: i64, out: &mut Vec<Decision>) {
    if state.works_on(step) > 0 {
        return;
    }
    let Some(parts) = state.steps[step].parts.as_ref() else { return };
    if let Some((round, fault)) = parts.failed.iter().next() {
        let fault = Fault::new(fault.code, format!("round {round} failed: {}", fault.message))
            .in_category(fault.category());
        return fail(state, step, &fault, at_ms, out);
    }
    let round = parts.next;
    let task = Task::part(step, round);
    let again = with_fuel(state, |state, fuel| repeat.condition.test(&Frame::at(state, task), fuel));
    let again = match again {
        Ok(again) => again,
        Err(fault) => return fail(state, step, &fault, at_ms, out),
    };
    let Some(parts) = state.steps[step].parts.as_ref() else { return };
    if !again {
        let last = parts.last.clone();
        return conclude(state, step, json!({"iterations": round, "last": last}), at_ms, out);
    }
    if round >= repeat.max_iterations {
        let limit = repeat.max_iterations;
        let fault =
            Fault::new(Code::LimitExceeded, format!("the condition still holds after {limit} rounds"))
                .with("maxIterations", limit);
        return fail(state, step, &fault, at_ms, out);
    }
    if repeat.delay_ms > 0 && round > 0 && !parts.rested {
        let due_ms = at_ms.saturating_add(i64::try_from(repeat.delay_ms).unwrap_or(i64::MAX));
        state.work.insert(task, Work::new(Phase::Resting { due_ms }, 0));
        out.push(Decision::Wake { task: Some(task), due_ms });
        return;
    }
    if let Some(parts) = state.steps[step].parts.as_mut() {
        parts.next += 1;
    }
    launch(state, task, out);
}

/// The step is done. Its items are not needed any more, unless they may have to be undone; what they gave is in the output.
fn conclude(state: &mut State, step: usize, output: Value, at_ms: i64, out: &mut Vec<Decision>) {
    let definition = &state.workflow().steps[step];
    let may_be_undone = definition.compensate.is_some() || matches!(definition.kind, Kind::Workflow(_));
    if !may_be_undone && let Some(parts) = state.steps[step].parts.as_mut() {
        *parts = Parts { next: parts.next, ..Parts::default() };
    }
    match super::fit(state, output) {
        Ok(output) => complete(state, step, output, at_ms, out),
        Err(fault) => fail(state, step, &fault.into(), at_ms, out),
    }
}

/// The time between two rounds is over.
pub fn rested(state: &mut State, task: Task) {
    state.work.remove(&task);
    if let Some(parts) = state.steps[task.step].parts.as_mut() {
        parts.rested = true;
    }
}
