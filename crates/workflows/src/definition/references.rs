//! Checks every expression before anything runs (WF-19.5): what it names exists, and may be seen where it stands.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use orchestr8_contract::Code;

use super::fields::{Sink, is_full};
use super::graph::Ancestry;
use super::model::{Kind, Policies, Step, Wait, Which, Workflow};
use super::problems::Problem;
use super::step::Draft;
use super::words::nearest;
use crate::expression::{Part, Reference, Root, SCHEDULE, Template};

/// What a workflow declares.
pub(super) struct Names<'n> {
    pub variables: HashSet<&'n str>,
    pub env: HashSet<&'n str>,
    pub secrets: HashSet<&'n str>,
}

/// What an expression may see at the place where it stands.
#[derive(Clone, Copy, Default)]
struct Sight {
    /// The step it belongs to; none when no step has run yet.
    step: Option<usize>,
    /// Only what goes to an agent may hold secrets: everything else is journalled.
    secrets: bool,
    /// `item` and `index`.
    each: bool,
    /// `iteration` and `last`.
    rounds: bool,
    /// `output`, `input` and `outcome` of what is undone.
    undo: bool,
    /// `failure` and `execution.status`.
    closing: bool,
}

/// What an expression reads of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aspect {
    Output,
    Error,
}

/// The members of `${steps.<id>.error}`.
const ERROR: [&str; 4] = ["code", "message", "category", "attempts"];

/// The members of `${failure}`.
const FAILURE: [&str; 4] = ["code", "message", "category", "stepId"];

/// Looks at every expression of a workflow. Without ancestry, what comes before what is not looked at. Gives the first expression
/// that only a scheduled execution can resolve.
pub(super) fn check(
    drafts: &[Draft],
    ancestry: Option<&Ancestry>,
    policies: &Policies,
    names: &Names<'_>,
    sink: &Sink,
) -> Option<Arc<str>> {
    let checker = Checker { drafts, ancestry, names, sink, needs_schedule: RefCell::default() };
    let keys =
        [policies.concurrency.as_ref().map(|one| &one.key), policies.rate.as_ref().map(|one| &one.key)];
    for key in keys.into_iter().flatten().chain(&policies.tags) {
        checker.look(key.located(), Sight::default());
    }
    for (place, draft) in drafts.iter().enumerate() {
        checker.look_at_step(place, &draft.step);
    }
    checker.needs_schedule.into_inner()
}

struct Checker<'c> {
    drafts: &'c [Draft],
    ancestry: Option<&'c Ancestry>,
    names: &'c Names<'c>,
    sink: &'c Sink,
    /// The first expression that only a scheduled execution can resolve.
    needs_schedule: RefCell<Option<Arc<str>>>,
}

impl Checker<'_> {
    fn look_at_step(&self, place: usize, step: &Step) {
        let closing = step.section.is_closing();
        let plain = Sight { step: Some(place), closing, ..Sight::default() };
        let inside = Sight { each: step.each.is_some(), rounds: step.repeat.is_some(), ..plain };
        for condition in step.only_if.iter().chain(&step.unless) {
            self.look(condition.located(), plain);
        }
        if let Some(each) = &step.each {
            self.look(each.items.located(), plain);
        }
        if let Some(repeat) = &step.repeat {
            self.look(repeat.condition.located(), Sight { rounds: true, ..plain });
        }
        if let Some(key) = &step.idempotency_key {
            self.look(key.located(), inside);
        }
        match &step.kind {
            Kind::Agent(call) => {
                for template in [&call.input, &call.config] {
                    self.look(template.located(), Sight { secrets: true, ..inside });
                }
            }
            Kind::Workflow(child) => {
                self.look(child.inputs.located(), inside);
                // A workflow inside another one sees the same schedule.
                if let Which::Inline(inner) = &child.which
                    && let Workflow { needs_schedule: Some(expression), .. } = &**inner
                {
                    self.needs_schedule.borrow_mut().get_or_insert_with(|| expression.clone());
                }
            }
            Kind::Wait(Wait::For(template) | Wait::Until(template) | Wait::Event { name: template, .. }) => {
                self.look(template.located(), plain);
                if let Kind::Wait(Wait::Event { key: Some(key), .. }) = &step.kind {
                    self.look(key.located(), plain);
                }
            }
            Kind::Approval(approval) => self.look(approval.message.located(), plain),
            Kind::Switch(switch) => self.look(switch.on.located(), plain),
        }
        let undoing: [Option<&Template>; 2] = match &step.compensate {
            Some(call) => [Some(&call.input), Some(&call.config)],
            None => [None, None],
        };
        for template in undoing.into_iter().flatten() {
            self.look(template.located(), Sight { secrets: true, undo: true, ..inside });
        }
    }

    fn look<'r>(&self, references: impl Iterator<Item = (&'r str, &'r Reference)>, sight: Sight) {
        for (at, reference) in references {
            if is_full(self.sink) {
                return;
            }
            let problem = match &reference.root {
                Root::Step(id) => self.step(id, Aspect::Output, sight),
                Root::StepError(id) => {
                    self.step(id, Aspect::Error, sight).or_else(|| member_of(reference, &ERROR))
                }
                Root::Variable(name) => self.variable(name),
                Root::Env(name) => {
                    undeclared(&self.names.env, name, "environment variable", "allowedEnvVars")
                }
                Root::Secret(_) if !sight.secrets => Some((
                    Code::InvalidWorkflow,
                    format!("{reference} would be written to the journal here"),
                    String::from("Use secrets in the input and config of an agent only."),
                )),
                Root::Secret(name) => undeclared(&self.names.secrets, name, "secret", "secretRefs"),
                Root::Local(name) => local(name, reference, sight),
            };
            if matches!(&reference.root, Root::Local(name) if &**name == SCHEDULE) && !reference.has_default()
            {
                self.needs_schedule.borrow_mut().get_or_insert_with(|| reference.to_string().into());
            }
            if let Some((code, message, hint)) = problem {
                self.sink.borrow_mut().push(Problem::new(at, code, message, hint));
            }
        }
    }

    fn step(&self, id: &str, aspect: Aspect, sight: Sight) -> Option<(Code, String, String)> {
        let Some(place) = self.drafts.iter().position(|draft| &*draft.step.id == id) else {
            let hint = match nearest(id, self.drafts.iter().map(|draft| &*draft.step.id)) {
                Some(meant) => format!("Did you mean {meant}?"),
                None => String::from("Name a step of this workflow."),
            };
            return Some((Code::ExprStepNotFound, format!("Unknown step reference: {id}"), hint));
        };
        let Some(own) = sight.step else {
            let message = format!("no step has run when this is needed, so {id} has no output");
            let hint = String::from("Use variables here.");
            return Some((Code::ExprStepNotFound, message, hint));
        };
        if own == place && sight.undo {
            return None;
        }
        let (user, used) = (&self.drafts[own].step, &self.drafts[place].step);
        // All steps of the sections before have ended, and a fallback begins when the step it stands in for has failed.
        let is_over = used.section < user.section || (aspect == Aspect::Error && used.fallback == Some(own));
        let known_before = is_over || self.ancestry.is_none_or(|ancestry| ancestry.has(own, place));
        if known_before && own != place {
            return None;
        }
        let user = &user.id;
        let hint = match own == place {
            true => String::from(
                "A step cannot use its own output; with while, ${last} is that of the round before.",
            ),
            false if used.section > self.drafts[own].step.section => {
                format!("Steps of {} run after this one.", used.section.member())
            }
            false => format!("Add {id:?} to the dependencies of {user}."),
        };
        Some((Code::ExprStepNotFound, format!("Step {user} references {id} but missing dependency"), hint))
    }

    fn variable(&self, name: &str) -> Option<(Code, String, String)> {
        if self.names.variables.contains(name) {
            return None;
        }
        let hint = match nearest(name, self.names.variables.iter().copied()) {
            Some(meant) => format!("Did you mean {meant}?"),
            None => format!("Add {name:?} to variables, or to the properties of inputs."),
        };
        Some((Code::InvalidWorkflow, format!("the variable {name} is not declared"), hint))
    }
}

fn undeclared(known: &HashSet<&str>, name: &str, what: &str, list: &str) -> Option<(Code, String, String)> {
    (!known.contains(name)).then(|| {
        (
            Code::InvalidWorkflow,
            format!("the {what} {name} is not in {list}"),
            format!("Add {name:?} to {list}."),
        )
    })
}

/// An error has these members and nothing inside them.
fn member_of(reference: &Reference, members: &[&str]) -> Option<(Code, String, String)> {
    let is_known = match reference.path.as_slice() {
        [] => true,
        [Part::Field(field)] => members.contains(&&**field),
        [Part::Index(_) | Part::Field(_), ..] => false,
    };
    let hint = || format!("Write one of {}, or nothing after {}.", members.join(", "), reference.root);
    (!is_known).then(|| (Code::InvalidWorkflow, format!("{reference} names no member of an error"), hint()))
}

/// Names that only mean something in certain places.
fn local(name: &str, reference: &Reference, sight: Sight) -> Option<(Code, String, String)> {
    let (seen, hint) = match name {
        "item" | "index" => (sight.each, "It exists in the input and config of a step with forEach."),
        "iteration" | "last" => {
            (sight.rounds, "It exists in the condition of while, and in the input and config of that step.")
        }
        "output" | "input" | "outcome" => {
            (sight.undo, "It exists in compensate; elsewhere write ${steps.<id>.output}.")
        }
        "failure" => match sight.closing {
            true => return member_of(reference, &FAILURE),
            false => (false, "It exists in the steps of onFailure and finally."),
        },
        SCHEDULE => {
            let known = matches!(reference.path.as_slice(),
                [Part::Field(field)] if matches!(&**field, "id" | "time"));
            (known, "Write ${schedule.id} or ${schedule.time}.")
        }
        "hook" | "event" => (false, "It exists in the inputs and keys of a trigger."),
        _ => {
            let known = matches!(reference.path.as_slice(),
                [Part::Field(field)] if matches!(&**field, "id" | "correlationId"));
            let is_status = matches!(reference.path.as_slice(), [Part::Field(field)] if &**field == "status");
            match is_status {
                true => (sight.closing, "${execution.status} exists in the steps of onFailure and finally."),
                false => (known, "Write ${execution.id} or ${execution.correlationId}."),
            }
        }
    };
    (!seen).then(|| (Code::InvalidWorkflow, format!("{reference} has no meaning here"), hint.to_owned()))
}
