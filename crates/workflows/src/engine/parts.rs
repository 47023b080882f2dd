//! Steps that run several times: once for each item of a list, or in rounds while a condition holds.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::json::{bytes, kind};
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::event::{Decision, Task};
use super::graph::{complete, fail, launch};
use super::scope::Frame;
use super::state::{Parts, Phase, State, Work};
use crate::definition::model::{Each, OnItemError, Repeat};
use crate::limits;

pub fn no_list(value: &Value) -> Fault {
    Fault::invalid(format!("forEach.items must give a list, and gives {}", kind(value)))
}

pub fn too_many(items: usize) -> Fault {
    let limit = limits::ITEMS;
    Fault::new(Code::ResourceExhausted, format!("forEach.items gives {items} items; the limit is {limit}"))
        .with("items", items)
        .with("limit", limit)
}

/// One item or round has ended.
pub fn ended(state: &mut State, task: Task, result: Result<Value, StoredFault>) {
    let Some(part) = task.part else { return };
    let keeps_rounds = state.workflow().steps[task.step].compensate.is_some();
    let Some(parts) = state.steps[task.step].parts.as_mut() else { return };
    match result {
        Ok(output) => {
            match parts.outputs.get_mut(usize::try_from(part).unwrap_or(usize::MAX)) {
                Some(place) => *place = Some(output),
                None => {
                    if keeps_rounds {
                        state.outputs_bytes += bytes(&output);
                        parts.rounds.insert(part, output.clone());
                    }
                    parts.last = output;
                }
            }
            parts.rested = false;
        }
        Err(fault) => {
            parts.failed.insert(part, fault);
        }
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

fn advance_each(state: &mut State, step: usize, each: &Each, at_ms: i64, out: &mut Vec<Decision>) {
    let mut under_way = state.works_on(step);
    loop {
        let Some(parts) = state.steps[step].parts.as_mut() else { return };
        let stopped = each.on_item_error == OnItemError::Fail && !parts.failed.is_empty();
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
    let (total, failed) = (parts.outputs.len(), parts.failed.len());
    let fails = match each.on_item_error {
        OnItemError::Fail => failed > 0,
        OnItemError::Continue => false,
        OnItemError::Tolerate(share) => exceeds(failed, total, share),
    };
    let list = || parts.failed.iter().map(|(index, fault)| json!({"index": index, "error": fault}));
    if fails {
        let first = parts.failed.iter().next();
        let (index, cause) =
            first.map_or((0, String::new()), |(index, fault)| (*index, fault.message.clone()));
        let code = first.map_or(Code::AgentFailed, |(_, fault)| fault.code);
        let fault = Fault::new(code, format!("{failed} of {total} items failed; item {index}: {cause}"))
            .with("failed", list().take(10).collect::<Vec<_>>());
        return fail(state, step, &fault, at_ms, out);
    }
    let results: Vec<Value> = parts.outputs.iter().map(|one| one.clone().unwrap_or(Value::Null)).collect();
    let output = json!({
        "results": results, "succeeded": total - failed, "failed": list().collect::<Vec<_>>(),
    });
    conclude(state, step, output, at_ms, out);
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
        let fault = Fault::new(fault.code, format!("round {round} failed: {}", fault.message));
        return fail(state, step, &fault, at_ms, out);
    }
    let round = parts.next;
    let task = Task::part(step, round);
    let again = match repeat.condition.test(&Frame::at(state, task)) {
        Ok(again) => again,
        Err(fault) => return fail(state, step, &fault, at_ms, out),
    };
    if !again {
        let last = parts.last.clone();
        return conclude(state, step, json!({"iterations": round, "last": last}), at_ms, out);
    }
    if round >= repeat.max_iterations {
        let limit = repeat.max_iterations;
        let fault =
            Fault::new(Code::ResourceExhausted, format!("the condition still holds after {limit} rounds"))
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
    if state.workflow().steps[step].compensate.is_none()
        && let Some(parts) = state.steps[step].parts.as_mut()
    {
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
