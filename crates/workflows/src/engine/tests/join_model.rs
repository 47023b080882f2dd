//! A reference interpreter of the join rules, written from the contract's table alone, beside the engine on random definitions.
//!
//! The model knows final states only: it starts steps, ends the first one that runs, in the order of the definition, and decides by
//! the sentences of the table. Steps that end without being run because of a failure count as "not run" on both sides.

use serde_json::{Value, json};

use super::super::event::{Event, Status, Task};
use super::super::state::{Outcome, Phase, State};
use super::random::{Tape, failed, succeeded};
use super::{begun, next, state};
use orchestr8_contract::Code;
use orchestr8_testing::every_seed;

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Pending,
    Running,
    Completed,
    Failed,
    Skipped,
    NotRun,
}

#[derive(Debug, Clone, PartialEq)]
enum Work {
    /// Whether it succeeds.
    Agent(bool),
    /// Whether it is approved.
    Approval(bool),
    /// The steps of the chosen branch, and those of the others.
    Switch(Vec<usize>, Vec<usize>),
}

#[derive(Debug, Clone)]
struct Step {
    work: Work,
    dependencies: Vec<usize>,
    join: &'static str,
    /// What its `if` is; the condition over a decision is `over`.
    holds: bool,
    over: Option<usize>,
    tolerated: bool,
    fallback: Option<usize>,
}

#[derive(Debug)]
struct Model {
    steps: Vec<Step>,
    ends: Vec<End>,
    has_failed: bool,
    /// Fallbacks that a failed step needs.
    needed: Vec<bool>,
}

impl Model {
    /// The end of a step as its dependents see it: with its fallback's, if that stands in.
    fn end(&self, step: usize) -> End {
        match (self.ends[step], self.steps[step].fallback) {
            (End::Failed, Some(fallback)) if self.needed[fallback] => self.end(fallback),
            (end, _) => end,
        }
    }

    fn is_tolerated(&self, step: usize) -> bool {
        match self.steps[step].fallback {
            Some(fallback) => self.is_tolerated(fallback),
            None => self.steps[step].tolerated,
        }
    }

    /// "May a step run?" None: not yet known.
    fn may_run(&self, step: usize) -> Option<End> {
        let own = &self.steps[step];
        let is_rejection = |one: usize| {
            self.ends[one] == End::Completed
                && self.steps[one].work == Work::Approval(false)
                && own.over != Some(one)
        };
        let of = |wanted: End| own.dependencies.iter().filter(|one| self.end(**one) == wanted).count();
        let rejected = own.dependencies.iter().filter(|one| is_rejection(**one)).count();
        let completed = of(End::Completed) - rejected;
        let tolerated = own
            .dependencies
            .iter()
            .filter(|one| self.end(**one) == End::Failed && self.is_tolerated(**one))
            .count();
        let (failed, skipped) = (of(End::Failed) - tolerated + of(End::NotRun), of(End::Skipped));
        let is_final = of(End::Pending) + of(End::Running) == 0;
        let all = own.dependencies.len();
        Some(match own.join {
            _ if all == 0 => End::Running,
            "any" if completed > 0 => End::Running,
            _ if !is_final => return None,
            "always" => End::Running,
            _ if failed > 0 => End::NotRun,
            "all" if completed < all => End::Skipped,
            "any" if tolerated == 0 => End::Skipped,
            "any" => End::Running,
            _ if rejected > 0 || skipped == all => End::Skipped,
            _ => End::Running,
        })
    }

    /// "What is not chosen is skipped."
    fn is_unchosen(&self, step: usize) -> bool {
        self.steps.iter().enumerate().any(|(place, one)| match &one.work {
            Work::Switch(chosen, others) if self.ends[place] == End::Completed => {
                others.contains(&step) && !chosen.contains(&step)
            }
            Work::Switch(chosen, others) => chosen.contains(&step) || others.contains(&step),
            Work::Agent(_) | Work::Approval(_) => false,
        })
    }

    fn fails(&mut self) {
        self.has_failed = true;
        for step in 0..self.steps.len() {
            if self.steps[step].join != "always" && matches!(self.ends[step], End::Pending | End::Running) {
                self.ends[step] = End::NotRun;
            }
        }
    }

    fn begin(&mut self, step: usize) -> bool {
        let Some(mut end) = self.may_run(step) else { return false };
        let is_fallback = self.steps.iter().any(|one| one.fallback == Some(step));
        if is_fallback && end == End::Running && !self.needed[step] {
            let users = self.steps.iter().enumerate().filter(|(_, one)| one.fallback == Some(step));
            let all_ended = users
                .map(|(place, _)| self.ends[place])
                .all(|end| !matches!(end, End::Pending | End::Running));
            if !all_ended {
                return false;
            }
            end = End::Skipped;
        }
        let over = self.steps[step]
            .over
            .map(|one| self.end(one) == End::Completed && self.steps[one].work == Work::Approval(true));
        if end == End::Running && (self.is_unchosen(step) || !over.unwrap_or(self.steps[step].holds)) {
            end = End::Skipped;
        }
        if end == End::Running && matches!(self.steps[step].work, Work::Switch(..)) {
            end = End::Completed;
        }
        self.ends[step] = end;
        if self.needed[step] && matches!(end, End::Skipped | End::NotRun) {
            self.fails();
        }
        true
    }

    fn run(mut self) -> (bool, Vec<End>) {
        loop {
            while (0..self.steps.len()).any(|step| self.ends[step] == End::Pending && self.begin(step)) {}
            let Some(step) = self.ends.iter().position(|end| *end == End::Running) else { break };
            self.ends[step] = End::Completed;
            if self.steps[step].work != Work::Agent(false) {
                continue;
            }
            self.ends[step] = End::Failed;
            match self.steps[step].fallback {
                Some(fallback) if !matches!(self.ends[fallback], End::Skipped | End::NotRun) => {
                    self.needed[fallback] = true
                }
                None if self.steps[step].tolerated => {}
                Some(_) | None => self.fails(),
            }
        }
        (self.has_failed, self.ends)
    }
}

/// A random definition, in the model's form. Fallbacks are agents at the end, used by one step each.
fn random_model(tape: &mut Tape) -> Model {
    let count = 2 + tape.below(9);
    let mut steps: Vec<Step> = Vec::new();
    for place in 0..count {
        let mut dependencies: Vec<usize> = (0..place).filter(|_| tape.once_in(3)).collect();
        dependencies.truncate(4);
        let work = match tape.below(6) {
            0 => Work::Approval(tape.once_in(2)),
            1 => Work::Switch(Vec::new(), Vec::new()),
            _ => Work::Agent(!tape.once_in(4)),
        };
        for (switch, step) in steps.iter_mut().enumerate() {
            if let Work::Switch(own, others) = &mut step.work
                && dependencies.contains(&switch)
                && !tape.once_in(3)
            {
                if tape.once_in(2) { own.push(place) } else { others.push(place) }
            }
        }
        let mut approvals =
            dependencies.iter().copied().filter(|one| matches!(steps[*one].work, Work::Approval(_)));
        let over = approvals.next_back().filter(|_| tape.once_in(3));
        let join = ["", "", "", "all", "any", "always"][tape.below(6)];
        let tolerated = tape.once_in(3);
        steps.push(Step {
            work,
            dependencies,
            join,
            holds: !tape.once_in(5),
            over,
            tolerated,
            fallback: None,
        });
    }
    for place in 0..count {
        let is_agent = matches!(steps[place].work, Work::Agent(_));
        if is_agent && tape.once_in(4) {
            let work = Work::Agent(!tape.once_in(3));
            let dependencies: Vec<usize> = (0..place).filter(|_| tape.once_in(5)).collect();
            steps[place].fallback = Some(steps.len());
            steps[place].tolerated = false;
            let (holds, tolerated) = (!tape.once_in(5), tape.once_in(3));
            steps.push(Step { work, dependencies, join: "", holds, over: None, tolerated, fallback: None });
        }
    }
    let (ends, needed) = (vec![End::Pending; steps.len()], vec![false; steps.len()]);
    Model { steps, ends, has_failed: false, needed }
}

/// The same definition as an author writes it.
fn definition(model: &Model) -> Value {
    let id = |place: &usize| format!("s{place}");
    let ids = |places: &[usize]| -> Vec<String> { places.iter().map(id).collect() };
    let written = model.steps.iter().enumerate().map(|(place, step)| {
        let mut json = json!({"id": id(&place), "dependsOn": ids(&step.dependencies)});
        match &step.work {
            Work::Agent(_) => json["agentId"] = "@test/agent".into(),
            Work::Approval(_) => json["approval"] = json!({"message": "Go on?"}),
            Work::Switch(chosen, others) => {
                let cases =
                    json!([{"value": 5.0, "steps": ids(chosen)}, {"value": "x", "steps": ids(others)}]);
                json["switch"] = json!({"on": 5, "cases": cases});
            }
        }
        if !step.join.is_empty() {
            json["join"] = step.join.into();
        }
        match step.over {
            Some(approval) => json["if"] = format!("${{steps.s{approval}.output.approved}}").into(),
            None if !step.holds => json["if"] = "1 == 2".into(),
            None => {}
        }
        match step.fallback {
            Some(fallback) => json["fallbackStepId"] = id(&fallback).into(),
            None if step.tolerated => json["onError"] = "continue".into(),
            None => {}
        }
        json
    });
    written.collect()
}

/// Lets the engine run it: always the first step that is under way ends, as the model says.
fn engine_run(model: &Model) -> Result<State, String> {
    let mut state = state(definition(model));
    next(&mut state, begun(), 1);
    for at_ms in 2..1000 {
        let Some(task) = state.work.keys().next().copied() else { break };
        for event in ending(model, &state, task) {
            next(&mut state, event, at_ms);
        }
    }
    if state.status.is_final() { Ok(state) } else { Err(format!("it does not end: {:?}", state.work)) }
}

fn ending(model: &Model, state: &State, task: Task) -> Vec<Event> {
    match (&state.work[&task].phase, &model.steps[task.step].work) {
        (Phase::Asking { .. }, Work::Approval(approved)) => vec![Event::Decided {
            task,
            approved: *approved,
            by: "ann".into(),
            on_behalf_of: None,
            comment: None,
            data: Value::Null,
        }],
        (_, Work::Agent(true)) => vec![Event::Started { task, attempt: 1 }, succeeded(task, 1, json!(1))],
        _ => vec![Event::Started { task, attempt: 1 }, failed(task, 1, Code::AgentFailed)],
    }
}

fn engine_end(state: &State, step: usize) -> End {
    let own = &state.steps[step];
    match own.outcome {
        None => End::Pending,
        Some(Outcome::Completed) => End::Completed,
        Some(Outcome::Failed) => End::Failed,
        Some(Outcome::Cancelled) => End::NotRun,
        Some(Outcome::Skipped) => match own.skip.as_ref().is_some_and(|skip| skip.by_failure) {
            true => End::NotRun,
            false => End::Skipped,
        },
    }
}

/// Numbers from a seed (SplitMix64).
fn choices(seed: u64) -> Vec<u16> {
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u16::try_from((mixed ^ (mixed >> 31)) & 0xffff).unwrap()
    };
    (0..400).map(|_| draw()).collect()
}

#[test]
fn wf_join_the_engine_does_what_the_table_says_on_random_definitions() {
    every_seed(10_000, |seed| {
        let model = random_model(&mut Tape::new(choices(seed)));
        let text = definition(&model).to_string();
        let state = engine_run(&model).map_err(|broken| format!("{broken} in {text}"))?;
        let (has_failed, wanted) = model.run();
        let ends: Vec<End> = (0..wanted.len()).map(|step| engine_end(&state, step)).collect();
        let status = if has_failed { Status::Failed } else { Status::Completed };
        if ends == wanted && state.status == status {
            return Ok(());
        }
        Err(format!("{:?} {ends:?} instead of {status:?} {wanted:?} in {text}", state.status))
    });
}
