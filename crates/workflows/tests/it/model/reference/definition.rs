//! Definitions in the form that the reference interpreter reads, and as an author writes them.

use std::ops::Range;
use std::rc::Rc;

use serde_json::{Value, json};

use super::dice::ITEMS;

#[derive(Debug, Clone)]
pub struct Definition {
    /// The steps of the body, then those of `onFailure`, then those of `finally`.
    pub steps: Vec<Step>,
    /// Where the body ends, and where `onFailure` does.
    pub ends: [usize; 2],
    /// After which ends there is a rollback.
    pub on_failed: bool,
    pub on_cancelled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Section {
    Body,
    OnFailure,
    Finally,
}

#[derive(Debug, Clone)]
pub struct Step {
    pub kind: Kind,
    pub dependencies: Vec<usize>,
    pub join: Join,
    pub condition: Option<Condition>,
    /// The condition is an `unless`.
    pub is_unless: bool,
    pub repeat: Repeat,
    pub on_error: OnError,
    pub on_unknown: OnUnknown,
    pub compensate: bool,
    /// So many attempts of a call are made, those that were lost included.
    pub attempts: u32,
    /// Its input uses the output of this step, without a default.
    pub needs: Option<usize>,
    /// It runs only as the fallback of another step.
    pub is_fallback: bool,
    /// A child that the step starts and does not wait for.
    pub is_detached: bool,
    /// Its author chose the idempotency key.
    pub has_own_key: bool,
    pub gives: Gives,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Agent,
    /// A task for a worker.
    Worker,
    Child(Rc<Definition>),
    Timer,
    Event {
        timeout: bool,
    },
    Approval {
        on_timeout: Option<OnTimeout>,
    },
    Switch {
        on: Subject,
        cases: Vec<(i64, Vec<usize>)>,
        default: Vec<usize>,
    },
}

impl Kind {
    /// A person decides in it, or in a child of it.
    pub fn asks(&self) -> bool {
        match self {
            Kind::Approval { .. } => true,
            Kind::Child(inner) => inner.steps.iter().any(|step| step.kind.asks()),
            Kind::Agent | Kind::Worker | Kind::Timer | Kind::Event { .. } | Kind::Switch { .. } => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Subject {
    /// The number that a step gave.
    Number(usize),
    /// The decision of an approval: case 1 is "approved", case 0 is "rejected".
    Decision(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnTimeout {
    Fail,
    Approve,
    Reject,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Join {
    Default,
    All,
    Any,
    Race,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Condition {
    Constant(bool),
    /// The number that a step gave, or 0, is above this.
    Above(usize, i64),
    Approved(usize),
    Rejected(usize),
    /// The status that the execution will have, for handlers.
    Status(&'static str),
    /// The execution did not complete, for handlers.
    HasFailure,
    /// `${steps.x.error}` is there.
    HasError(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Repeat {
    Once,
    Each { items: u32, concurrency: usize, on_item_error: OnItemError },
    While { rounds: u32, until: Option<i64>, most: u32, delay: bool },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnItemError {
    Fail,
    Continue,
    /// The step fails if more than half of the items failed.
    TolerateHalf,
}

/// What comes of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gives {
    /// A script decides.
    Scripted,
    Number {
        n: i64,
        is_pure: bool,
    },
    Failure,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnError {
    Fail,
    Continue,
    Fallback(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnUnknown {
    Retry,
    Fail,
    Ask,
}

impl Step {
    pub fn is_pure(&self) -> bool {
        matches!(self.gives, Gives::Number { is_pure: true, .. })
    }

    pub fn is_call(&self) -> bool {
        matches!(self.kind, Kind::Agent | Kind::Worker)
    }

    /// What reads the decision of an approval decides itself what a rejection means.
    pub fn reads_decision_of(&self, approval: usize) -> bool {
        let by_condition = matches!(self.condition, Some(Condition::Approved(one) | Condition::Rejected(one)) if one == approval);
        let by_switch =
            matches!(self.kind, Kind::Switch { on: Subject::Decision(one), .. } if one == approval);
        by_condition || by_switch
    }
}

pub fn id(place: usize) -> String {
    format!("s{place}")
}

fn ids(places: &[usize]) -> Vec<String> {
    places.iter().map(|place| id(*place)).collect()
}

impl Definition {
    pub fn range(&self, section: Section) -> Range<usize> {
        let [body, on_failure] = self.ends;
        match section {
            Section::Body => 0..body,
            Section::OnFailure => body..on_failure,
            Section::Finally => on_failure..self.steps.len(),
        }
    }

    pub fn is_closing_step(&self, step: usize) -> bool {
        step >= self.ends[0]
    }

    pub fn has_closing_steps(&self) -> bool {
        self.ends[0] < self.steps.len()
    }

    /// Whether a rollback of it has something to do once its steps have run.
    pub fn is_undoable(&self) -> bool {
        self.steps[..self.ends[0]].iter().any(|step| match &step.kind {
            Kind::Child(inner) => step.compensate || (!step.is_detached && inner.is_undoable()),
            _ => step.compensate,
        })
    }

    /// As an author writes it.
    pub fn to_json(&self) -> Value {
        let on: Vec<&str> = [("failed", self.on_failed), ("cancelled", self.on_cancelled)]
            .into_iter()
            .filter_map(|(word, holds)| holds.then_some(word))
            .collect();
        let steps = |section: Section| -> Vec<Value> {
            self.range(section).map(|place| self.steps[place].to_json(place)).collect()
        };
        let mut json = json!({"id": "flow", "version": "1.0.0", "name": "Flow", "compensateOn": on,
            "steps": steps(Section::Body), "onFailure": steps(Section::OnFailure), "finally": steps(Section::Finally)});
        let is_beyond = |step: &Step| matches!(step.repeat, Repeat::Each { items, .. } if items > ITEMS);
        if self.steps.iter().any(is_beyond) {
            json["variables"] = json!({"many": vec![0; ITEMS as usize + 1]});
        }
        json
    }
}

impl Step {
    fn to_json(&self, place: usize) -> Value {
        let mut json = json!({"id": id(place), "dependsOn": ids(&self.dependencies)});
        self.write_work(&mut json);
        match self.join {
            Join::Default => {}
            Join::All => json["join"] = "all".into(),
            Join::Any => json["join"] = "any".into(),
            Join::Race => json["join"] = "race".into(),
            Join::Always => json["join"] = "always".into(),
        }
        if let Some(condition) = self.condition {
            let word = if self.is_unless { "unless" } else { "if" };
            json[word] = match condition {
                Condition::Constant(true) => "1 == 1".into(),
                Condition::Constant(false) => "1 == 2".into(),
                Condition::Above(step, least) => format!("${{steps.s{step}.output.n ?? 0}} > {least}").into(),
                Condition::Approved(step) => format!("${{steps.s{step}.output.approved ?? false}}").into(),
                Condition::Status(status) => format!("${{execution.status}} == \"{status}\"").into(),
                Condition::HasFailure => "${failure.code ?? \"none\"} != \"none\"".into(),
                Condition::HasError(step) => {
                    format!("${{steps.s{step}.error.code ?? \"none\"}} != \"none\"").into()
                }
                Condition::Rejected(step) => {
                    format!("${{steps.s{step}.output.decision ?? \"none\"}} == \"rejected\"").into()
                }
            };
        }
        self.write_repeat(&mut json);
        match self.on_error {
            OnError::Fail => {}
            OnError::Continue => json["onError"] = "continue".into(),
            OnError::Fallback(step) => {
                json["onError"] = "fallback".into();
                json["fallbackStepId"] = id(step).into();
            }
        }
        if self.is_detached {
            json["detached"] = true.into();
        }
        if self.has_own_key {
            json["idempotencyKey"] = match self.repeat {
                Repeat::Once => format!("own-{place}"),
                Repeat::Each { .. } => format!("own-{place}-${{index}}"),
                Repeat::While { .. } => format!("own-{place}-${{iteration}}"),
            }
            .into();
        }
        if self.compensate {
            json["compensate"] = json!({"agentId": "@test/agent", "input": {"was": "${output ?? 0}", "outcome": "${outcome}"}});
        }
        json
    }

    fn write_work(&self, json: &mut Value) {
        match &self.kind {
            Kind::Agent | Kind::Worker => {
                let is_worker = matches!(self.kind, Kind::Worker);
                json["agentId"] = if is_worker { "@worker/queue" } else { "@test/agent" }.into();
                json["resilience"] = json!({"retry": {"maxAttempts": self.attempts, "baseDelayMs": 0}});
                json["onUnknown"] = match self.on_unknown {
                    OnUnknown::Retry => "retry".into(),
                    OnUnknown::Fail => "fail".into(),
                    OnUnknown::Ask => "ask".into(),
                };
                json["input"] = match self.gives {
                    Gives::Scripted => json!({}),
                    Gives::Number { n, is_pure: false } => json!({"value": {"n": n}}),
                    Gives::Number { n, is_pure: true } => json!({"n": n}),
                    Gives::Failure => json!({"fail": "NOT_FOUND"}),
                };
                if self.is_pure() {
                    json["agentId"] = "@orchestr8/echo".into();
                }
                if let Some(step) = self.needs {
                    json["input"]["x"] = format!("${{steps.s{step}.output}}").into();
                }
            }
            Kind::Child(inner) => json["workflow"] = inner.to_json(),
            // What no script decides is over at once.
            Kind::Timer if self.gives != Gives::Scripted => json["wait"] = json!({"durationMs": 1}),
            Kind::Timer => json["wait"] = json!({"durationMs": 500}),
            Kind::Event { timeout: false } => json["wait"] = json!({"event": "e"}),
            Kind::Event { timeout: true } => json["wait"] = json!({"event": "e", "timeoutMs": 86_400_000}),
            Kind::Approval { on_timeout: None } => json["approval"] = json!({"message": "Go on?"}),
            Kind::Approval { on_timeout: Some(how) } => {
                let how = match how {
                    OnTimeout::Fail => "fail",
                    OnTimeout::Approve => "approve",
                    OnTimeout::Reject => "reject",
                };
                let timeout_ms = if self.gives == Gives::Scripted { 86_400_000 } else { 1 };
                json["approval"] = json!({"message": "Go on?", "timeoutMs": timeout_ms, "onTimeout": how});
            }
            Kind::Switch { on, cases, default } => {
                let case = |(value, steps): &(i64, Vec<usize>)| {
                    let value = match on {
                        // Numbers are compared by value: 1.0 is 1.
                        Subject::Number(_) => json!(*value as f64),
                        Subject::Decision(_) => json!(if *value == 1 { "approved" } else { "rejected" }),
                    };
                    json!({"value": value, "steps": ids(steps)})
                };
                let on = match on {
                    Subject::Number(step) => format!("${{steps.s{step}.output.n ?? 0}}"),
                    Subject::Decision(step) => format!("${{steps.s{step}.output.decision ?? \"none\"}}"),
                };
                let cases: Vec<Value> = cases.iter().map(case).collect();
                json["switch"] = json!({"on": on, "cases": cases, "default": ids(default)});
            }
        }
    }

    fn write_repeat(&self, json: &mut Value) {
        match self.repeat {
            Repeat::Once => {}
            Repeat::Each { items, concurrency, on_item_error } => {
                let on_item_error = match on_item_error {
                    OnItemError::Fail => json!("fail"),
                    OnItemError::Continue => json!("continue"),
                    OnItemError::TolerateHalf => json!({"tolerate": 0.5}),
                };
                let list: Vec<u32> = (0..items).collect();
                // A list beyond the limit can only come from outside: one that is written down is refused with the definition.
                let items = if items > ITEMS { json!("${variables.many}") } else { json!(list) };
                json["forEach"] =
                    json!({"items": items, "concurrency": concurrency, "onItemError": on_item_error});
            }
            Repeat::While { rounds, until, most, delay } => {
                let mut condition = format!("${{iteration}} < {rounds}");
                if let Some(until) = until {
                    condition.push_str(&format!(" && ${{last.n ?? 0}} < {until}"));
                }
                json["while"] = json!({"condition": condition, "maxIterations": most});
                if delay {
                    json["while"]["delayMs"] = json!(50);
                }
            }
        }
    }
}
