//! What the graph says is due: steps begin when what they depend on is settled, are skipped when they cannot run, and the
//! execution ends when nothing is left.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use serde_json::json;

use super::evaluation::{note_loop_data, resolve, with_fuel};
use super::event::{Decision, Note, Status, Task};
use super::join::{self, Readiness};
use super::scope::Frame;
use super::state::{Outcome, Parts, Phase, Skip, State, Work};
use super::stop::{drop_waiting, is_told_to_stop};
use super::{closing, complete_step, fail_step, note_failure, parts, pause, race, undo, waits};
use crate::definition::model::{Join, Kind, Switch};
use crate::expression::{Condition, Fuel, Reference, Root, Template, is_equal_within};
use crate::limits;

/// Brings the state to rest: begins, skips and ends all that is due.
pub fn settle(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    if state.status.is_final() || state.status == Status::Queued {
        return;
    }
    if state.closing_section().is_some() {
        return closing::advance(state, at_ms, out);
    }
    if state.cancel.is_some() || state.undoing.is_some() {
        if state.work.is_empty() {
            undo::conclude(state, false, at_ms, out);
        }
        return;
    }
    if state.failing.is_none() && state.pause.is_none() {
        if let Some(reason) = over_budget(state, at_ms) {
            pause(state, reason, true, out);
            out.push(Decision::Note(Note::Paused));
        } else {
            while state.failing.is_none() && advance(state, at_ms, out) {}
        }
    }
    if state.failing.is_some() {
        wind_down(state, at_ms, out);
    } else if state.work.is_empty() && state.all_ended() {
        closing::close(state, Status::Completed, false, at_ms, out);
    }
}

pub fn finish(state: &mut State, status: Status, forced: bool, at_ms: i64, out: &mut Vec<Decision>) {
    if state.workflow().has_closing_steps() {
        closing::leave_out(state);
    }
    for step in &mut state.steps {
        if step.outcome.is_none() {
            step.outcome = Some(Outcome::Cancelled);
        }
    }
    state.status = status;
    state.ended_ms = Some(at_ms);
    state.pause = None;
    if state.timeout_ms().is_some() {
        out.push(Decision::Forget { task: None });
    }
    out.push(Decision::Note(Note::Finished { forced }));
    out.push(Decision::Finish);
}

/// One look at every step that may run now, in the order of the definition. True when something changed that may let others go on.
pub fn advance(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) -> bool {
    let mut changed = false;
    if state.workflow().has_race {
        race::decide_all(state, at_ms, out);
    }
    for step in state.current_steps() {
        if state.steps[step].outcome.is_some() || !may_go_on(state, step) {
            continue;
        }
        let own = &state.steps[step];
        if !own.begun {
            begin(state, step, at_ms, out);
        }
        let goes_on = state.steps[step].lost.is_none() || race::ends_whole(state, step, at_ms);
        if goes_on && state.steps[step].begun && state.steps[step].parts.is_some() {
            parts::advance(state, step, at_ms, out);
        }
        changed |= state.steps[step].outcome.is_some();
    }
    changed
}

/// Whether a step may do anything new: after the failure of a step only if it is to run always, and not at all when the
/// execution ran out of time. Handlers may.
fn may_go_on(state: &State, step: usize) -> bool {
    if state.closing.is_some() {
        return true;
    }
    match &state.failing {
        None => true,
        Some(failing) => !failing.stops && state.workflow().steps[step].join == Join::Always,
    }
}

/// After a failure only steps with `join: "always"` begin: what runs finishes, what was done is undone, then it ends. What ran
/// when the process died may have happened, so it is brought to its end too, and so is a step between two attempts.
fn wind_down(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    lift_budget_pause(state, out);
    let workflow = state.workflow().clone();
    let runs_always = |task: &Task| workflow.steps[task.step].join == Join::Always;
    let is_dropped = |task: &Task, work: &Work| {
        !work.phase.is_active() && !work.is_between_attempts() && !runs_always(task)
    };
    if state.work.iter().any(|(task, work)| is_dropped(task, work)) {
        out.push(Decision::Withdraw);
        drop_waiting(state, is_dropped, at_ms, out);
        if state.pause.is_none() {
            let ready = state.work.iter().filter(|(_, work)| work.phase == Phase::Ready);
            out.extend(ready.map(|(task, _)| Decision::Run { task: *task }));
        }
    }
    for (task, work) in &mut state.work {
        if matches!(work.phase, Phase::Child { .. }) && !runs_always(task) && work.phase.stop() {
            out.push(Decision::Stop { task: *task });
        }
    }
    skip_rest(state, at_ms, out);
    // While it is paused nothing begins, and an execution with a step that is to begin does not end.
    if state.pause.is_none() || is_told_to_stop(state) {
        close_loops(state, at_ms, out);
    }
    if state.pause.is_none() {
        while advance(state, at_ms, out) {
            skip_rest(state, at_ms, out);
        }
    }
    let has_ended = state.pause.is_none() || state.all_ended();
    if state.work.is_empty() && has_ended {
        undo::conclude(state, false, at_ms, out);
    }
}

/// A budget that is used up holds back new work. What has failed winds down and is undone all the same.
fn lift_budget_pause(state: &mut State, out: &mut Vec<Decision>) {
    if state.pause.take_if(|pause| pause.by_budget).is_some() {
        state.status = Status::Running;
        let ready = state.work.iter().filter(|(_, work)| work.phase == Phase::Ready);
        out.extend(ready.map(|(task, _)| Decision::Run { task: *task }));
    }
}

/// A loop that has nothing more to begin ends as its items did, also after the failure of another step. One that was cut short is
/// cancelled; only then can a step begin that waits for it, however it ended.
fn close_loops(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    for step in 0..state.steps.len() {
        let own = &state.steps[step];
        let Some(parts) = own.parts.as_ref().filter(|_| own.begun && own.outcome.is_none()) else { continue };
        if state.works_on(step) > 0 || may_go_on(state, step) {
            continue;
        }
        let ends_as_its_items = match own.lost {
            // A loop that was stopped by a race is cancelled, whatever it tolerates.
            Some(_) => race::ends_whole(state, step, at_ms),
            None => parts::has_nothing_to_begin(state, step, parts),
        };
        if !is_told_to_stop(state) && ends_as_its_items {
            parts::advance(state, step, at_ms, out);
            continue;
        }
        let own = &mut state.steps[step];
        (own.outcome, own.ended_ms) = (Some(Outcome::Cancelled), Some(at_ms));
    }
}

fn skip_rest(state: &mut State, at_ms: i64, out: &mut Vec<Decision>) {
    let culprit = state.failing.as_ref().and_then(|failing| failing.step);
    let workflow = state.workflow().clone();
    for step in state.current_steps() {
        let own = &state.steps[step];
        if own.begun || own.outcome.is_some() || may_go_on(state, step) {
            continue;
        }
        let dead = workflow.steps[step].dependencies.iter().find(|dependency| {
            let own = &state.steps[**dependency];
            own.outcome == Some(Outcome::Failed) || own.skip.as_ref().is_some_and(|skip| skip.by_failure)
        });
        let reason = match (dead, culprit) {
            (Some(dependency), _) => format!("Dependency '{}' failed", workflow.steps[*dependency].id),
            (None, Some(step)) => format!("Execution failed at '{}'", workflow.steps[step].id),
            (None, None) => String::from("The execution ran out of time"),
        };
        skip(state, step, Skip { reason, by_failure: true }, at_ms, out);
    }
}

pub fn skip(state: &mut State, step: usize, skip: Skip, at_ms: i64, out: &mut Vec<Decision>) {
    let own = &mut state.steps[step];
    own.outcome = Some(Outcome::Skipped);
    own.skip = Some(skip);
    own.ended_ms = Some(at_ms);
    // A fallback that is needed and cannot run leaves the failure as it is.
    if let Some(failed) = own.alias_for {
        note_failure(state, failed, false);
    }
    out.push(Decision::Note(Note::Skipped { step }));
}

/// A budget that is used up while there is more to do.
fn over_budget(state: &State, at_ms: i64) -> Option<String> {
    let budget = &state.budget;
    if state.all_ended() {
        return None;
    }
    let elapsed_ms = u64::try_from(at_ms - state.started_ms.unwrap_or(at_ms)).unwrap_or(0);
    let over = |used: u64, limit: Option<u64>, what: &str| {
        limit.filter(|limit| used >= *limit).map(|limit| format!("budget: {used} of {limit} {what} used"))
    };
    over(elapsed_ms, budget.wall_clock_ms, "ms")
        .or_else(|| over(state.attempts, budget.steps, "steps"))
        .or_else(|| over(state.usage.tokens, budget.tokens, "tokens"))
        .or_else(|| {
            let limit = budget.cost.filter(|limit| state.usage.cost >= *limit)?;
            Some(format!("budget: cost {} of {limit} used", state.usage.cost))
        })
}

/// Begins a step if it is due, or skips it if it never will be.
fn begin(state: &mut State, step: usize, at_ms: i64, out: &mut Vec<Decision>) {
    let workflow = state.workflow().clone();
    let definition = &workflow.steps[step];
    match join::readiness(state, step) {
        Readiness::Pending => return,
        Readiness::Ready => {}
        Readiness::Skipped { reason, by_failure } => {
            return skip(state, step, Skip { reason, by_failure }, at_ms, out);
        }
    }
    if definition.is_fallback && state.steps[step].alias_for.is_none() {
        let mut primaries =
            workflow.steps.iter().zip(&state.steps).filter(|(one, _)| one.fallback == Some(step));
        if primaries.all(|(_, own)| own.outcome.is_some()) {
            let reason = String::from("No step needed this fallback");
            skip(state, step, Skip { reason, by_failure: false }, at_ms, out);
        }
        return;
    }
    match with_fuel(state, |state, fuel| may_run(state, step, fuel)) {
        Ok(None) => {}
        Ok(Some(reason)) => return skip(state, step, Skip { reason, by_failure: false }, at_ms, out),
        Err(fault) => return fail(state, step, &fault, at_ms, out),
    }
    state.steps[step].begun = true;
    if let Err(fault) = enter(state, step, at_ms, out) {
        fail(state, step, &fault, at_ms, out);
    }
}

/// A failure that no event of its own tells of.
pub fn fail(state: &mut State, step: usize, fault: &Fault, at_ms: i64, out: &mut Vec<Decision>) {
    fail_step(state, step, StoredFault::from(fault), at_ms);
    out.push(Decision::Note(Note::Failed { step }));
}

/// A completion that no event of its own tells of.
pub fn complete(
    state: &mut State,
    step: usize,
    output: serde_json::Value,
    at_ms: i64,
    out: &mut Vec<Decision>,
) {
    complete_step(state, step, output, at_ms);
    out.push(Decision::Note(Note::Completed { step }));
}

/// None: it may. Some: why it is skipped.
fn may_run(state: &State, step: usize, fuel: &mut Fuel) -> Result<Option<String>, Fault> {
    let workflow = state.workflow();
    let definition = &workflow.steps[step];
    for place in &definition.dependencies {
        let Kind::Switch(switch) = &workflow.steps[*place].kind else { continue };
        if !is_branch(switch, step) {
            continue;
        }
        let chosen = state.steps[*place].chosen.is_some_and(|case| branch(switch, case).contains(&step));
        if !chosen {
            return Ok(Some(format!("Not chosen by '{}'", workflow.steps[*place].id)));
        }
    }
    let frame = Frame::of(state);
    let mut test = |condition: &Option<Condition>| match condition.as_ref().map(|one| one.test(&frame, fuel))
    {
        None => Ok(None),
        Some(Ok(holds)) => Ok(Some(holds)),
        Some(Err(fault)) if fault.code == Code::ExprStepNotCompleted => Err(Ok(fault.message.into_owned())),
        Some(Err(fault)) => Err(Err(fault)),
    };
    let tested = test(&definition.only_if).and_then(|holds| Ok((holds, test(&definition.unless)?)));
    match tested {
        Err(Ok(reason)) => return Ok(Some(reason)),
        Err(Err(fault)) => return Err(fault),
        Ok((Some(false), _)) => return Ok(Some(String::from("Condition 'if' is false"))),
        Ok((_, Some(true))) => return Ok(Some(String::from("Condition 'unless' is true"))),
        Ok((Some(true) | None, Some(false) | None)) => {}
    }
    Ok(missing(state, step).map(|id| format!("Needs the output of '{id}', which has none")))
}

fn is_branch(switch: &Switch, step: usize) -> bool {
    switch.default.contains(&step) || switch.cases.iter().any(|(_, steps)| steps.contains(&step))
}

fn branch(switch: &Switch, case: Option<usize>) -> &[usize] {
    case.and_then(|case| switch.cases.get(case)).map_or(&switch.default, |(_, steps)| steps)
}

/// A step whose output is needed and does not exist.
fn missing(state: &State, step: usize) -> Option<String> {
    let definition = &state.workflow().steps[step];
    let mut templates: Vec<&Template> = definition.each.iter().map(|each| &each.items).collect();
    match &definition.kind {
        Kind::Agent(call) => templates.extend([&call.input, &call.config]),
        Kind::Workflow(child) => templates.push(&child.inputs),
        Kind::Wait(wait) => templates.push(waits::template(wait)),
        Kind::Approval(approval) => templates.push(&approval.message),
        Kind::Switch(switch) => templates.push(&switch.on),
    }
    templates.into_iter().flat_map(Template::references).find_map(|reference: &Reference| {
        let Root::Step(id) = &reference.root else { return None };
        let place = state.workflow().place(id)?;
        (!reference.has_default() && state.output(place).is_none()).then(|| id.to_string())
    })
}

/// A step begins.
fn enter(state: &mut State, step: usize, at_ms: i64, out: &mut Vec<Decision>) -> Result<(), Fault> {
    let workflow = state.workflow().clone();
    let definition = &workflow.steps[step];
    if let Some(each) = &definition.each {
        let items = match resolve(state, &each.items)? {
            serde_json::Value::Array(items) => items,
            other => return Err(parts::no_list(&other)),
        };
        if items.len() > limits::ITEMS {
            return Err(parts::too_many(items.len()));
        }
        note_loop_data(state, &items);
        state.steps[step].started_ms = Some(at_ms);
        let outputs = vec![None; items.len()];
        state.steps[step].parts = Some(Parts { items, outputs, ..Parts::default() });
        return Ok(());
    }
    if definition.repeat.is_some() {
        state.steps[step].started_ms = Some(at_ms);
        state.steps[step].parts = Some(Parts { rested: true, ..Parts::default() });
        return Ok(());
    }
    let task = Task::of(step);
    match &definition.kind {
        Kind::Agent(_) | Kind::Workflow(_) => launch(state, task, out),
        Kind::Wait(wait) => waits::begin(state, task, wait, at_ms, out)?,
        Kind::Approval(approval) => {
            state.steps[step].started_ms = Some(at_ms);
            let due_ms = waits::due_in(approval.timeout_ms, at_ms);
            state.work.insert(task, Work::new(Phase::Asking { due_ms }, 1));
            out.push(Decision::Ask { task, due_ms });
            out.extend(due_ms.map(|due_ms| Decision::Wake { task: Some(task), due_ms }));
            out.push(Decision::Note(Note::Waiting { step }));
        }
        Kind::Switch(switch) => {
            let value = resolve(state, &switch.on)?;
            let case = with_fuel(state, |_, fuel| find_case(switch, &value, fuel))?;
            state.steps[step].chosen = Some(case);
            let chosen = case.map_or_else(|| json!("default"), |_| value);
            complete(state, step, json!({"chosen": chosen}), at_ms, out);
        }
    }
    Ok(())
}

/// The case of a value. None: that of the default.
fn find_case(switch: &Switch, value: &serde_json::Value, fuel: &mut Fuel) -> Result<Option<usize>, Fault> {
    for (place, (case, _)) in switch.cases.iter().enumerate() {
        if is_equal_within(case, value, fuel).map_err(|_| fuel.fault())? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Something that an agent or another execution does.
pub fn launch(state: &mut State, task: Task, out: &mut Vec<Decision>) {
    let is_child = !task.undo && matches!(state.workflow().steps[task.step].kind, Kind::Workflow(_));
    let (phase, decision) = match is_child {
        true => (Phase::Beginning, Decision::Begin { task }),
        false => (Phase::Ready, Decision::Run { task }),
    };
    state.work.insert(task, Work::new(phase, 0));
    out.push(decision);
}
