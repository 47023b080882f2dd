//! One step, in either form, up to the names of other steps: those are connected in `graph`.

use std::sync::Arc;

use orchestr8_kernel::resilience::Resilience;
use serde_json::Value;

use super::call;
use super::fields::{Fields, note};
use super::form::Form;
use super::graph::Link;
use super::kinds::{self, Branches};
use super::limits;
use super::model::{Each, Join, Kind, OnError, OnItemError, OnUnknown, Repeat, Step, StepSection, Switch};
use super::resilience::Wish;
use super::words::quoted;
use crate::expression::{Condition, Template};

pub(super) const CONDITION: &[&str] = &["if", "unless"];
pub(super) const POLICIES: &[&str] = &["timeout", "retry", "circuitBreaker", "idempotencyKey"];
pub(super) const EACH: &[&str] = &["items", "concurrency", "onItemError"];
pub(super) const WHILE: &[&str] = &["condition", "maxIterations", "delayMs"];

const JOINS: [(&str, Join); 4] =
    [("all", Join::All), ("any", Join::Any), ("race", Join::Race), ("always", Join::Always)];

/// How many items of a `forEach` run at once unless it says otherwise.
const CONCURRENCY: u64 = 10;

/// A step whose names of other steps are not resolved yet.
#[derive(Debug)]
pub(super) struct Draft {
    /// Its JSON path.
    pub at: String,
    pub step: Step,
    pub dependencies: Vec<Link>,
    pub fallback: Option<Link>,
    pub branches: Branches,
}

impl Draft {
    pub fn in_section(mut self, section: StepSection) -> Self {
        self.step.section = section;
        self
    }
}

/// The five things a step can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Agent,
    Workflow,
    Wait,
    Approval,
    Switch,
}

pub(super) const WORKS: [(&str, Work); 5] = [
    ("agent", Work::Agent),
    ("workflow", Work::Workflow),
    ("wait", Work::Wait),
    ("approval", Work::Approval),
    ("switch", Work::Switch),
];

/// What every step may have.
const ANY: &[&str] = &[
    "id",
    "name",
    "type",
    "dependencies",
    "dependsOn",
    "join",
    "condition",
    "if",
    "unless",
    "onError",
    "fallbackStepId",
    "checkpoint",
];

impl Work {
    pub fn name(self) -> &'static str {
        WORKS.iter().find(|(_, work)| *work == self).map_or("", |(name, _)| name)
    }

    /// The member that says what to do.
    fn member(self, form: Form) -> &'static str {
        match (self, form) {
            (Work::Agent, Form::Engine) => "agentId",
            (Work::Agent, Form::Canonical) => "agent",
            (Work::Workflow | Work::Wait | Work::Approval | Work::Switch, _) => self.name(),
        }
    }

    /// What only a step of this sort may have, over both forms.
    fn own(self) -> &'static [&'static str] {
        match self {
            Work::Agent => &[
                "agent",
                "agentId",
                "config",
                "input",
                "output",
                "forEach",
                "while",
                "policies",
                "maxRetries",
                "timeout",
                "resilience",
                "onUnknown",
                "compensate",
                "heartbeatTimeoutMs",
                "idempotencyKey",
            ],
            Work::Workflow => &["workflow", "inputs", "detached", "forEach", "while", "compensate"],
            Work::Wait => &["wait"],
            Work::Approval => &["approval"],
            Work::Switch => &["switch"],
        }
    }

    pub fn may_have(self, member: &str) -> bool {
        ANY.contains(&member) || self.own().contains(&member)
    }
}

/// Reads a step. None: it has no usable id, so that nothing can refer to it.
pub(super) fn read(fields: &Fields<'_>, form: Form, base: &Resilience, depth: usize) -> Option<Draft> {
    fields.need("id", "Give the step an id that others can refer to.");
    let id = fields.id("id");
    let work = work(fields, form);
    if let Some(work) = work {
        refuse_foreign(fields, work, form);
    }
    let mut branches = Branches::default();
    let kind = work.and_then(|work| match work {
        Work::Agent => call::of_step(fields, form).map(Kind::Agent),
        Work::Workflow => kinds::child(fields, depth).map(Kind::Workflow),
        Work::Wait => kinds::wait(fields).map(Kind::Wait),
        Work::Approval => kinds::approval(fields).map(Kind::Approval),
        Work::Switch => kinds::switch(fields).map(|(on, found)| {
            branches = found;
            Kind::Switch(Switch { on, cases: Vec::new(), default: Vec::new() })
        }),
    });
    let (only_if, unless) = conditions(fields, form);
    let (wish, mut key) = wish(fields, form);
    if let Some(own) = fields.text_template("idempotencyKey") {
        key = Some(own);
    }
    let fallback = fallback(fields);
    let (each, repeat) = (each(fields), repeat(fields));
    if each.is_some() && repeat.is_some() {
        let hint = "Put one of them into a child workflow.";
        fields.wrong("while", "forEach and while cannot be on the same step", hint);
    }
    let (compensate, undo_wish) = call::compensate(fields).unzip();
    let undo_resilience = undo_resilience(work, (&wish, &undo_wish.unwrap_or_default()), base);
    let step = Step {
        id: Arc::from(id.unwrap_or_default()),
        name: fields.text("name", limits::NAME_CHARACTERS).map(str::to_owned),
        section: StepSection::Body,
        // Where nothing usable was found a problem has been noted, and this is never looked at.
        kind: kind.unwrap_or(Kind::Switch(Switch {
            on: Template::literal(Value::Null),
            cases: Vec::new(),
            default: Vec::new(),
        })),
        dependencies: Vec::new(),
        join: fields.choice("join", &JOINS).unwrap_or_default(),
        only_if,
        unless,
        each,
        repeat,
        on_error: on_error(fields, fallback.is_some()),
        fallback: None,
        is_fallback: false,
        resilience: resilience(work, &wish, base),
        on_unknown: fields
            .choice(
                "onUnknown",
                &[("retry", OnUnknown::Retry), ("fail", OnUnknown::Fail), ("ask", OnUnknown::Ask)],
            )
            .unwrap_or(OnUnknown::Retry),
        idempotency_key: key,
        compensate,
        undo_resilience,
        heartbeat_timeout_ms: fields.ms("heartbeatTimeoutMs", 1),
        checkpoint: fields.flag("checkpoint").unwrap_or(false),
        keeps_artifact: fields.choice("output", &[("inline", false), ("artifact", true)]).unwrap_or(false),
    };
    let dependencies = dependencies(fields);
    id.map(|_| Draft { at: fields.at.to_string(), step, dependencies, fallback, branches })
}

/// Only calls of agents are retried and timed by the step; a child workflow has policies of its own, and a wait its timeout.
fn resilience(work: Option<Work>, wish: &Wish, base: &Resilience) -> Resilience {
    match work {
        Some(Work::Agent) | None => wish.over(base),
        Some(Work::Workflow | Work::Wait | Work::Approval | Work::Switch) => Resilience {
            max_attempts: 1,
            timeout_ms: limits::DURATION_MS,
            total_budget_ms: limits::DURATION_MS,
            breaker: None,
            ..base.clone()
        },
    }
}

/// An undo has the limits of its step, unless it says others. A step that is not tried again is undone with the usual attempts.
fn undo_resilience(work: Option<Work>, (step, undo): (&Wish, &Wish), base: &Resilience) -> Resilience {
    let mut own = match work {
        Some(Work::Agent) | None => step.over(base),
        Some(Work::Workflow | Work::Wait | Work::Approval | Work::Switch) => base.clone(),
    };
    own.max_attempts = own.max_attempts.max(Resilience::default().max_attempts);
    undo.over(&own)
}

/// What the step does: what `type` says, and which of the five members is there.
fn work(fields: &Fields<'_>, form: Form) -> Option<Work> {
    let present: Vec<Work> =
        WORKS.iter().map(|(_, work)| *work).filter(|work| fields.has(work.member(form))).collect();
    let said = fields.choice("type", &WORKS);
    match (said, present.as_slice()) {
        (None, _) if fields.has("type") => None,
        (Some(said), []) => {
            fields.need(said.member(form), "Add it, or correct the type.");
            None
        }
        (Some(said), _) => Some(said),
        (None, [only]) => Some(*only),
        // The other form's way of saying it has been noted already.
        (None, []) if fields.has("agent") || fields.has("agentId") => None,
        (None, []) => {
            let names: Vec<&str> = WORKS.iter().map(|(_, work)| work.member(form)).collect();
            let message = "it does not say what to do".to_owned();
            note(fields.sink, &fields.at, message, format!("Add one of {}.", names.join(", ")));
            None
        }
        (None, [first, others @ ..]) => {
            for other in others {
                let message =
                    format!("the step has {} already, and can do one thing only", first.member(form));
                fields.wrong(other.member(form), message, "Make two steps of it.");
            }
            None
        }
    }
}

/// Members that are known, but not for what this step does.
fn refuse_foreign(fields: &Fields<'_>, work: Work, form: Form) {
    for member in form.step().names.iter().filter(|member| fields.has(member) && !work.may_have(member)) {
        let hint = match (*member, work) {
            ("input", Work::Workflow) => String::from("A child workflow takes inputs."),
            ("inputs", Work::Agent) => String::from("An agent takes input."),
            ("timeout", Work::Wait) => String::from("Write wait.timeoutMs, for a wait for an event."),
            ("timeout", Work::Approval) => String::from("Write approval.timeoutMs."),
            ("timeout" | "maxRetries" | "resilience" | "policies", Work::Workflow) => {
                String::from("Give the child workflow policies of its own.")
            }
            (_, Work::Agent | Work::Workflow | Work::Wait | Work::Approval | Work::Switch) => {
                format!("Remove it, or put it on another step than {}.", quoted(work.name()))
            }
        };
        fields.wrong(member, format!("{member} does not go with a step of type {}", work.name()), hint);
    }
}

fn conditions(fields: &Fields<'_>, form: Form) -> (Option<Condition>, Option<Condition>) {
    match form {
        Form::Engine => (fields.condition("if"), fields.condition("unless")),
        Form::Canonical => match fields.object("condition", CONDITION) {
            Some(own) => (own.condition("if"), own.condition("unless")),
            None => (None, None),
        },
    }
}

fn wish(fields: &Fields<'_>, form: Form) -> (Wish, Option<Template>) {
    match form {
        Form::Engine => (Wish::of_engine_step(fields), None),
        Form::Canonical => match fields.object("policies", POLICIES) {
            Some(own) => {
                if own.has("idempotencyKey") && fields.has("idempotencyKey") {
                    let hint = "Keep one of idempotencyKey and policies.idempotencyKey.";
                    own.wrong("idempotencyKey", "the step says this already", hint);
                }
                (Wish::of_step_policies(&own), own.text_template("idempotencyKey"))
            }
            None => (Wish::default(), None),
        },
    }
}

fn dependencies(fields: &Fields<'_>) -> Vec<Link> {
    fields.only_one("dependencies", "dependsOn");
    let name = if fields.has("dependsOn") { "dependsOn" } else { "dependencies" };
    kinds::links(fields, name)
}

fn fallback(fields: &Fields<'_>) -> Option<Link> {
    let id = fields.text("fallbackStepId", limits::ID_CHARACTERS)?;
    Some(Link { id: id.to_owned(), at: fields.at.field("fallbackStepId").to_string() })
}

/// A fallback without a word about errors means that it is to be used.
fn on_error(fields: &Fields<'_>, has_fallback: bool) -> OnError {
    let choices = [
        ("fail", OnError::Fail),
        ("continue", OnError::Continue),
        ("retry", OnError::Retry),
        ("fallback", OnError::Fallback),
    ];
    let said = fields.choice("onError", &choices);
    match said {
        Some(OnError::Fallback) if !fields.has("fallbackStepId") => {
            fields.need("fallbackStepId", "Name the step that stands in for this one when it fails.");
            OnError::Fallback
        }
        Some(OnError::Fail | OnError::Continue | OnError::Retry) if fields.has("fallbackStepId") => {
            let hint = "Write \"onError\": \"fallback\", or remove fallbackStepId.";
            fields.wrong("onError", "fallbackStepId is only used with onError fallback", hint);
            OnError::Fail
        }
        Some(said) => said,
        None if has_fallback => OnError::Fallback,
        None => OnError::Fail,
    }
}

/// `forEach: {items, concurrency?, onItemError?}`
fn each(fields: &Fields<'_>) -> Option<Each> {
    let own = fields.object("forEach", EACH)?;
    own.need("items", "Add a list, or one expression that gives one.");
    let concurrency = own.whole("concurrency", 1..=limits::STEPS as u64).unwrap_or(CONCURRENCY);
    let on_item_error = on_item_error(&own);
    let items = match own.get("items")? {
        Value::Array(items) if items.len() > limits::ITEMS => {
            let message = format!("items has {} entries; at most {} are allowed", items.len(), limits::ITEMS);
            own.wrong("items", message, "Split the list over several steps.");
            return None;
        }
        Value::Array(_) => own.template("items")?,
        Value::String(text) if text.starts_with("${") && text.ends_with('}') => own.template("items")?,
        other => {
            own.out_of_range("items", "a list, or one expression that gives one", other);
            return None;
        }
    };
    Some(Each { items, concurrency: usize::try_from(concurrency).unwrap_or(limits::STEPS), on_item_error })
}

fn on_item_error(fields: &Fields<'_>) -> OnItemError {
    match fields.get("onItemError") {
        Some(Value::Object(_)) => match fields.object("onItemError", &["tolerate"]) {
            Some(own) => {
                own.need("tolerate", "Add the share of items that may fail, from 0 to 1.");
                own.number("tolerate", 0.0..=1.0).map_or(OnItemError::Fail, OnItemError::Tolerate)
            }
            None => OnItemError::Fail,
        },
        Some(Value::String(word)) if word == "continue" => OnItemError::Continue,
        Some(Value::String(word)) if word == "fail" => OnItemError::Fail,
        Some(other) => {
            let hint = "Write \"fail\", \"continue\" or {\"tolerate\": 0.2}.";
            fields.wrong("onItemError", format!("onItemError cannot be {other}"), hint);
            OnItemError::Fail
        }
        None => OnItemError::Fail,
    }
}

/// `while: {condition, maxIterations, delayMs?}`
fn repeat(fields: &Fields<'_>) -> Option<Repeat> {
    let own = fields.object("while", WHILE)?;
    own.need("condition", "Add what must hold for another round.");
    own.need("maxIterations", "Add how many rounds there may be at most.");
    let condition = own.condition("condition");
    let most = own.whole("maxIterations", 1..=u64::from(limits::ITERATIONS));
    let delay_ms = own.ms("delayMs", 0).unwrap_or(0);
    let max_iterations = u32::try_from(most?).unwrap_or(limits::ITERATIONS);
    Some(Repeat { condition: condition?, max_iterations, delay_ms })
}
