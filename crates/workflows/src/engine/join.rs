//! The join rules: whether a step may begin, given how the steps it depends on ended.
//!
//! The contract's table "What a definition means" rules. A step is skipped if all its dependencies were skipped, so everything
//! that only an unchosen branch leads to is skipped with it. A rejected approval stops its dependents, unless they have a
//! condition over the decision: who forgets the condition must not get the step.

use super::state::{Outcome, State};
use crate::definition::model::{Join, Kind, OnError, Step, Switch, Workflow};
use crate::expression::{Part, Reference, Root};

/// What follows for a step from the ends of its dependencies.
#[derive(Debug, PartialEq, Eq)]
pub enum Readiness {
    /// A dependency that matters is not final.
    Pending,
    Ready,
    Skipped {
        reason: String,
        /// Because a dependency failed.
        by_failure: bool,
    },
}

/// How a dependency ended, as far as its dependents care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Open,
    Completed,
    /// It failed, and `onError: "continue"` lets others go on.
    Tolerated,
    Skipped,
    /// An approval that was not given.
    Rejected,
    Failed,
}

/// Whether a step may begin.
pub fn readiness(state: &State, step: usize) -> Readiness {
    let workflow = state.workflow();
    let definition = &workflow.steps[step];
    let endings: Vec<(usize, Ending)> = definition
        .dependencies
        .iter()
        .map(|dependency| (*dependency, seen_from(state, definition, *dependency)))
        .collect();
    let first = |wanted: &[Ending]| endings.iter().find(|(_, ending)| wanted.contains(ending));
    let id = |dependency: usize| &workflow.steps[dependency].id;
    let skipped = |reason: String| Readiness::Skipped { reason, by_failure: false };
    let failed = |dependency: usize| Readiness::Skipped {
        reason: format!("Dependency '{}' failed", id(dependency)),
        by_failure: true,
    };
    let is_open = first(&[Ending::Open]).is_some();
    if endings.is_empty() {
        return Readiness::Ready;
    }
    match definition.join {
        Join::Always if is_open => Readiness::Pending,
        Join::Always => Readiness::Ready,
        Join::Any | Join::Race if first(&[Ending::Completed]).is_some() => Readiness::Ready,
        Join::Default | Join::All | Join::Any | Join::Race if is_open => Readiness::Pending,
        Join::Default | Join::All | Join::Any | Join::Race => {
            if let Some((dependency, _)) = first(&[Ending::Failed]) {
                return failed(*dependency);
            }
            if let Some((dependency, _)) = first(&[Ending::Rejected]) {
                return skipped(format!("Rejected by '{}'", id(*dependency)));
            }
            let is_skipped = |(_, ending): &(usize, Ending)| *ending == Ending::Skipped;
            let incomplete = first(&[Ending::Skipped, Ending::Tolerated]);
            if let Some((dependency, _)) = incomplete.filter(|_| definition.join == Join::All) {
                return skipped(format!("Dependency '{}' did not complete", id(*dependency)));
            }
            if endings.iter().all(is_skipped) {
                return skipped(String::from("dependencies skipped"));
            }
            // Here none of them completed: one that may fail has failed.
            if let Some((dependency, _)) =
                incomplete.filter(|_| matches!(definition.join, Join::Any | Join::Race))
            {
                return skipped(format!("Dependency '{}' did not complete", id(*dependency)));
            }
            Readiness::Ready
        }
    }
}

/// The dependency that a race goes on with: the first that completed, in the order of the definition.
pub fn winner(state: &State, race: usize) -> Option<usize> {
    let definition = &state.workflow().steps[race];
    let mut dependencies = definition.dependencies.iter().copied();
    dependencies.find(|dependency| seen_from(state, definition, *dependency) == Ending::Completed)
}

fn seen_from(state: &State, dependent: &Step, dependency: usize) -> Ending {
    match ending(state, dependency) {
        Ending::Completed if is_rejected(state, dependency) => {
            let workflow = state.workflow();
            let approval = &workflow.steps[dependency].id;
            let is_tested =
                tests_decision(dependent, approval) || is_behind_switch(workflow, dependent, approval);
            if is_tested { Ending::Completed } else { Ending::Rejected }
        }
        other => other,
    }
}

fn ending(state: &State, step: usize) -> Ending {
    let own = &state.steps[step];
    match own.outcome {
        None => Ending::Open,
        Some(Outcome::Completed) => Ending::Completed,
        Some(Outcome::Skipped) if own.skip.as_ref().is_some_and(|skip| skip.by_failure) => Ending::Failed,
        Some(Outcome::Skipped) => Ending::Skipped,
        Some(Outcome::Cancelled) if own.lost.is_some() => Ending::Skipped,
        Some(Outcome::Cancelled) => Ending::Failed,
        Some(Outcome::Failed) => {
            let definition = &state.workflow().steps[step];
            match (definition.on_error, definition.fallback) {
                (OnError::Continue, _) => Ending::Tolerated,
                // A fallback that was skipped replaces nothing.
                (OnError::Fallback, Some(fallback)) => match ending(state, fallback) {
                    Ending::Skipped => Ending::Failed,
                    other => other,
                },
                (OnError::Fail | OnError::Retry | OnError::Fallback, _) => Ending::Failed,
            }
        }
    }
}

/// Whether a step is an approval that ended without one.
fn is_rejected(state: &State, step: usize) -> bool {
    let is_approval = matches!(state.workflow().steps[step].kind, Kind::Approval(_));
    is_approval && state.output(step).is_none_or(|output| output["approved"] != true)
}

/// Whether a switch over the decision of an approval lists the step in one of its branches.
fn is_behind_switch(workflow: &Workflow, step: &Step, approval: &str) -> bool {
    let lists = |switch: &Switch| {
        let mut listed = switch.cases.iter().flat_map(|(_, steps)| steps).chain(&switch.default);
        listed.any(|place| workflow.steps[*place].id == step.id)
    };
    workflow.steps.iter().any(|one| {
        matches!(&one.kind, Kind::Switch(switch) if lists(switch)) && tests_decision(one, approval)
    })
}

/// Whether a step has a condition over the decision of an approval: its own, or as a switch the value it branches on.
pub fn tests_decision(step: &Step, approval: &str) -> bool {
    let is_over_it = |reference: &Reference| {
        let is_decision = matches!(reference.path.first(), Some(Part::Field(name)) if ["decision", "approved"].contains(&&**name));
        is_decision && matches!(&reference.root, Root::Step(id) if &**id == approval)
    };
    let conditions = [&step.only_if, &step.unless];
    let in_condition =
        conditions.into_iter().flatten().any(|condition| condition.references().any(is_over_it));
    let in_switch = match &step.kind {
        Kind::Switch(switch) => switch.on.references().any(is_over_it),
        Kind::Agent(_) | Kind::Workflow(_) | Kind::Wait(_) | Kind::Approval(_) => false,
    };
    in_condition || in_switch
}
