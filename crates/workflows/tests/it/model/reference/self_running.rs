//! Random definitions that need no script: what each call gives is written down, and nothing depends on which of two calls ends first.

use std::rc::Rc;

use super::definition::{
    Definition, Gives, Join, Kind, OnError, OnTimeout, OnUnknown, Repeat, Section, Step,
};
use super::dice::{Dice, ITEMS, Range, definition};
use super::run::{Open, Place, Run};
use super::script::{How, within};

/// Items and rounds around the limits: of one commit, of what once was the limit of the store, and the documented one.
const SIZES: [u32; 6] = [249, 251, 1_000, 5_001, ITEMS, ITEMS + 1];

pub fn self_running(dice: &mut Dice, range: Range) -> Definition {
    let mut one = definition(dice, range);
    settle_results(dice, &mut one);
    if dice.once_in(4) {
        add_long_loop(dice, &mut one);
    }
    if dice.once_in(2) {
        add_failure(&mut one);
    }
    one
}

fn settle_results(dice: &mut Dice, definition: &mut Definition) {
    let body = definition.range(Section::Body).end;
    for (place, step) in definition.steps.iter_mut().enumerate() {
        step.kind = match std::mem::replace(&mut step.kind, Kind::Agent) {
            Kind::Worker | Kind::Event { .. } => Kind::Agent,
            Kind::Approval { .. } => {
                Kind::Approval { on_timeout: Some(dice.one_of(&[OnTimeout::Approve, OnTimeout::Reject])) }
            }
            Kind::Child(inner) => {
                let mut inner = Definition::clone(&inner);
                settle_results(dice, &mut inner);
                if dice.once_in(3) {
                    add_failure(&mut inner);
                }
                Kind::Child(Rc::new(inner))
            }
            kind @ (Kind::Agent | Kind::Timer | Kind::Switch { .. }) => kind,
        };
        let is_pure = step.needs.is_none() && dice.once_in(2);
        step.gives = match dice.below(5) {
            0 => Gives::Failure,
            _ => Gives::Number { n: dice.below(3) as i64, is_pure },
        };
        step.on_unknown = OnUnknown::Retry;
        step.is_detached = false;
        step.is_fallback = false;
        // The first of several depends on time.
        if matches!(step.join, Join::Any | Join::Race) {
            step.join = Join::Default;
        }
        // A failure that nothing tolerates cuts off what runs beside it; only the last step of the body may.
        if place < body || step.on_error != OnError::Fail {
            step.on_error = OnError::Continue;
        }
    }
}

/// A step without effects beside all others that runs very often.
fn add_long_loop(dice: &mut Dice, definition: &mut Definition) {
    let size = dice.one_of(&SIZES);
    let repeat = match dice.below(2) {
        0 => Repeat::Each {
            items: size,
            concurrency: 1 + dice.below(3),
            on_item_error: super::definition::OnItemError::Fail,
        },
        _ => Repeat::While { rounds: size, until: None, most: size.min(ITEMS), delay: false },
    };
    let gives = Gives::Number { n: 1, is_pure: true };
    insert(definition, Step { repeat, gives, on_error: OnError::Continue, ..plain(Vec::new()) });
}

/// The last step of the body: it fails when everything else has ended.
fn add_failure(definition: &mut Definition) {
    let all = definition.range(Section::Body).collect();
    insert(definition, Step { join: Join::Always, gives: Gives::Failure, ..plain(all) });
}

fn plain(dependencies: Vec<usize>) -> Step {
    Step {
        kind: Kind::Agent,
        dependencies,
        join: Join::Default,
        condition: None,
        is_unless: false,
        repeat: Repeat::Once,
        on_error: OnError::Fail,
        on_unknown: OnUnknown::Retry,
        compensate: false,
        attempts: 1,
        needs: None,
        is_fallback: false,
        is_detached: false,
        has_own_key: false,
        gives: Gives::Scripted,
    }
}

/// Adds a step at the end of the body; handlers come one place later.
fn insert(definition: &mut Definition, step: Step) {
    let place = definition.ends[0];
    for handler in &mut definition.steps[place..] {
        handler.dependencies.iter_mut().filter(|one| **one >= place).for_each(|one| *one += 1);
    }
    definition.steps.insert(place, step);
    definition.ends.iter_mut().for_each(|end| *end += 1);
}

/// Lets everything happen that is open, until the execution and its children have ended. Gives the keys of the calls with effects.
pub fn run_to_the_end(root: &mut Run) -> Vec<String> {
    let mut called = Vec::new();
    while let Some((key, (Place { path, unit }, open))) = root.open().pop_first() {
        within(root, &path, &mut |run| match open {
            Open::Call => {
                let step = &run.definition.steps[unit.0];
                let (is_undo, gives) = (run.undoing.is_some(), step.gives);
                if is_undo || !step.is_pure() {
                    called.push(key.rsplit('/').next().unwrap_or_default().to_owned());
                }
                let how = match gives {
                    Gives::Number { n, .. } if !is_undo => How::Output(n),
                    Gives::Failure if !is_undo => How::Fails,
                    Gives::Scripted | Gives::Number { .. } | Gives::Failure => How::Output(1),
                };
                run.end_attempt(unit, how, false);
            }
            _ => run.due(unit),
        });
    }
    called
}
