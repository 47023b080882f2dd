//! What holds for every workflow in every world: the live state is what its records fold to, and a crash changes no end.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::{Code, Fault};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::evaluation;
use super::super::event::{Decision, Event, NewBudget, Resolution, Status, Task};
use super::super::next;
use super::super::state::{Outcome, Phase, State, Step, Work};
use super::random::{self, Tape, failed, succeeded};
use super::{begun, whole};

/// Everything of a state but what it never changes. A field that is added must be added here, too.
fn picture(state: &State) -> String {
    let State {
        identity: _,
        env,
        status,
        started_ms,
        ended_ms,
        steps,
        work,
        signals,
        heard,
        completed,
        children,
        failing,
        cancel,
        pause,
        abandoned,
        undoing,
        closing,
        undo_asked,
        undo_started_ms,
        deadline_ms,
        budget,
        usage,
        attempts,
        errors,
        outputs_bytes,
        variables_bytes: _,
        loop_bytes,
        fuel_used,
    } = state;
    let sizes = (outputs_bytes, loop_bytes, fuel_used);
    let times = (started_ms, ended_ms, attempts, sizes, undo_asked, undo_started_ms, deadline_ms);
    format!(
        "{env:?} {status:?} {times:?} {steps:?} {work:?} {signals:?} {heard:?} {completed:?} {children:?} {failing:?} {cancel:?} {pause:?} {abandoned:?} {undoing:?} {closing:?} {budget:?} {usage:?} {errors:?}"
    )
}

/// An event as the journal keeps it.
fn stored(event: &Event) -> String {
    serde_json::to_string(event).unwrap()
}

/// What a start of the process makes of the records.
fn fold(state: &State, records: &[(String, i64)]) -> State {
    let mut folded = State::new(state.identity.clone());
    for (record, at_ms) in records {
        next(&mut folded, serde_json::from_str(record).unwrap(), *at_ms);
    }
    folded
}

/// What must hold of a state and of what follows from an event.
fn sound(state: &State, decisions: &[Decision]) -> Result<(), TestCaseError> {
    prop_assert!(!state.status.is_final() || state.work.is_empty(), "work goes on after the end");
    prop_assert_eq!(
        decisions.contains(&Decision::Finish),
        state.status.is_final() && !decisions.is_empty() && !decisions.contains(&Decision::ReportUndo),
        "the end is told, and only the end"
    );
    for decision in decisions {
        let (Decision::Run { task } | Decision::Begin { task }) = decision else { continue };
        // What is launched in the same turn in which everything ends is dropped again.
        if let Some(work) = state.work.get(task) {
            prop_assert!(
                matches!(work.phase, Phase::Ready | Phase::Beginning),
                "{task} runs twice: {work:?}"
            );
        }
        prop_assert!(
            task.undo || task.part.is_some() || state.steps[task.step].outcome != Some(Outcome::Completed),
            "{} is completed and runs again",
            task
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_live_state_is_what_the_journal_folds_to(choices in prop::collection::vec(any::<u16>(), 20..400)) {
        let mut tape = Tape::new(choices);
        let mut live = whole(random::workflow(&mut tape, true));
        let (mut folded, mut records, mut at_ms) = (live.clone(), Vec::new(), 1000);
        while !tape.is_over() {
            let event = random::anything(&live, &mut tape);
            at_ms += 100;
            // As the runtime does: what comes after the end is no part of the record.
            if live.status.is_final() && !event.concerns_ended() {
                continue;
            }
            records.push((stored(&event), at_ms));
            next(&mut folded, serde_json::from_str(&stored(&event)).unwrap(), at_ms);
            let decisions = next(&mut live, event, at_ms);
            sound(&live, &decisions)?;
            prop_assert_eq!(picture(&folded), picture(&live), "after {:?}", records.last());
        }
        prop_assert_eq!(picture(&fold(&live, &records)), picture(&live));
    }

    #[test]
    fn records_that_make_no_sense_break_nothing(choices in prop::collection::vec(any::<u16>(), 20..300)) {
        let mut tape = Tape::new(choices);
        let mut state = whole(random::workflow(&mut tape, true));
        let mut at_ms = 1000;
        while !tape.is_over() {
            let event = match tape.once_in(3) {
                true => random::anything(&state, &mut tape),
                false => random::nonsense(&mut tape),
            };
            at_ms += 100;
            next(&mut state, serde_json::from_str(&stored(&event)).unwrap(), at_ms);
            prop_assert!(!state.status.is_final() || state.work.is_empty());
        }
    }

    #[test]
    fn a_crash_at_any_point_leads_to_the_same_end(
        choices in prop::collection::vec(any::<u16>(), 20..200),
        crashes in prop::collection::btree_set(0_usize..60, 0..4),
    ) {
        let mut tape = Tape::new(choices);
        let source = random::workflow(&mut tape, false);
        let luck = tape.below(1 << 16);
        let whole_run = run(whole(source.clone()), luck, |_| false);
        let crashed = run(whole(source), luck, |turn| crashes.contains(&turn));
        prop_assert!(whole_run.status.is_final(), "it does not end: {}", picture(&whole_run));
        // What ran at a crash and failed afterwards may have happened: that alone adds to what is undone.
        match has_lost_effects(&crashed, &whole_run) {
            true => prop_assert_eq!(outcomes(&crashed), outcomes(&whole_run)),
            false => prop_assert_eq!(end(&crashed), end(&whole_run)),
        }
    }
}

/// An execution with its records, which is all that a crash leaves.
struct Life {
    state: State,
    records: Vec<(String, i64)>,
}

impl Life {
    fn take_in(&mut self, event: Event) {
        let at_ms = 1000 + i64::try_from(self.records.len()).unwrap();
        self.records.push((stored(&event), at_ms));
        let (used, bound) = (self.state.fuel_used, evaluation::bound(&self.state, &event));
        next(&mut self.state, event, at_ms);
        let used = self.state.fuel_used - used;
        assert!(used <= bound, "{used} units were used where {bound} were foreseen");
    }

    /// The process dies and comes back: the state is folded anew, and what ran is lost.
    fn crash(&mut self) {
        self.state = fold(&self.state, &self.records);
        let lost: Vec<Task> = self.state.interrupted().collect();
        lost.into_iter().for_each(|task| self.take_in(Event::Lost { task }));
    }
}

/// Lets an execution run to its end in a world that always does the same for the same piece of work.
fn run(state: State, luck: usize, crashes: impl Fn(usize) -> bool) -> State {
    let mut life = Life { state, records: Vec::new() };
    life.take_in(begun());
    for turn in 0..1000 {
        if crashes(turn) {
            life.crash();
        }
        let Some(event) = steady(&life.state, luck) else { break };
        life.take_in(event);
    }
    life.state
}

/// What happens next: whatever can begin begins; then what comes first in the definition ends.
fn steady(state: &State, luck: usize) -> Option<Event> {
    if state.status == Status::Paused {
        return Some(Event::Resumed { budget: NewBudget { steps: Some(1000), ..NewBudget::default() } });
    }
    let begins = state.work.iter().find_map(|(task, work)| match work.phase {
        Phase::Ready => Some(Event::Started { task: *task, attempt: work.attempts.max(1) }),
        Phase::Beginning => Some(Event::ChildBegun {
            task: *task,
            execution: "exec-2".into(),
            undoable: task.step.is_multiple_of(2),
            detached: task.step.is_multiple_of(5),
        }),
        Phase::Unknown => Some(Event::Resolved { task: *task, how: Resolution::Retry }),
        Phase::Running
        | Phase::Retrying { .. }
        | Phase::Child { .. }
        | Phase::Waiting { .. }
        | Phase::Asking { .. }
        | Phase::Resting { .. } => None,
    });
    begins.or_else(|| state.work.iter().next().map(|(task, work)| ends(*task, work, luck)))
}

fn ends(task: Task, work: &Work, luck: usize) -> Event {
    let lot = (luck / (1 + task.step) + task.part.map_or(0, |part| part as usize) * 7) % 5;
    match &work.phase {
        Phase::Waiting { event: Some(name), .. } => {
            Event::Signal { name: name.clone(), payload: json!(1), id: None }
        }
        Phase::Waiting { event: None, .. }
        | Phase::Resting { .. }
        | Phase::Asking { .. }
        | Phase::Retrying { .. } => Event::Due { task: Some(task) },
        Phase::Child { .. } if task.undo => succeeded(task, 1, json!({"undone": lot})),
        Phase::Running | Phase::Child { .. } | Phase::Ready | Phase::Beginning | Phase::Unknown => {
            match lot {
                0 => failed(task, 1, Code::AgentFailed),
                1 => succeeded(task, 1, json!(0)),
                2 if work.phase == Phase::Running && work.attempts == 1 => {
                    let fault = StoredFault::from(&Fault::new(Code::Unavailable, "not yet"));
                    Event::Retrying { task, attempt: 1, fault, wait_ms: 10 }
                }
                lot => succeeded(task, 1, json!({"lot": lot})),
            }
        }
    }
}

/// How it ended, without when and in how many attempts.
fn end(state: &State) -> Value {
    let step = |step: &Step| {
        json!({"outcome": format!("{:?}", step.outcome), "output": without_times(step.output.clone()), "fault": step.fault,
               "skip": step.skip.as_ref().map(|skip| &skip.reason), "for": step.alias_for, "undone": format!("{:?}", step.undone)})
    };
    let errors: Vec<Value> = state.errors.iter().map(|one| json!([one.step, one.fault])).collect();
    json!({"status": state.status, "steps": state.steps.iter().map(step).collect::<Vec<_>>(), "errors": errors,
           "completed": state.completed})
}

fn has_lost_effects(crashed: &State, whole_run: &State) -> bool {
    crashed.steps.iter().zip(&whole_run.steps).any(|(crashed, whole)| crashed.unknown != whole.unknown)
}

/// How each step ended.
fn outcomes(state: &State) -> Vec<(Option<Outcome>, Option<StoredFault>)> {
    state.steps.iter().map(|step| (step.outcome, step.fault.clone())).collect()
}

fn without_times(output: Option<Value>) -> Option<Value> {
    output.map(|mut output| {
        output.as_object_mut().and_then(|output| output.remove("at"));
        output
    })
}
