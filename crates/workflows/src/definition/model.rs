//! A workflow as the engine sees it: both JSON forms become this, and everything in it has been checked.

use std::ops::Range;
use std::sync::Arc;

use orchestr8_kernel::resilience::Resilience;
use serde_json::{Map, Value};

use crate::expression::{Condition, Template};
use crate::notifications::NotifyRule;

/// A checked workflow. Steps refer to each other by their place in `steps`.
#[derive(Debug, Clone)]
pub struct Workflow {
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// Semantic version, as written.
    pub version: Arc<str>,
    pub description: Option<String>,
    pub tags: Vec<String>,
    /// SHA-256 of the canonical JSON without `schemaHash`: what an execution is pinned to.
    pub hash: Arc<str>,
    /// The size of its text; of a workflow inside another one it is not known.
    pub bytes: usize,
    /// The definition as it was written.
    pub source: Arc<Value>,
    /// Variables and what they are when nobody gives them.
    pub variables: Map<String, Value>,
    /// JSON Schema of the inputs, if the author gave one.
    pub inputs: Option<Value>,
    /// Names of secrets its expressions may use.
    pub secrets: Vec<Arc<str>>,
    /// Names of environment variables its expressions may use.
    pub env: Vec<Arc<str>>,
    pub policies: Policies,
    /// An expression over the schedule that has no default: only a scheduled execution can resolve it.
    pub needs_schedule: Option<Arc<str>>,
    /// In the order of the definition: the body, then the steps of `onFailure`, then those of `finally`.
    pub steps: Vec<Step>,
    /// Where each section of `steps` ends.
    pub section_ends: [usize; 3],
    /// A step has `join: "race"`.
    pub has_race: bool,
}

/// What holds for a whole execution.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    /// The execution fails with TIMEOUT after this long.
    pub timeout_ms: Option<u64>,
    /// So many steps of one execution run at once.
    pub max_concurrency: Option<usize>,
    /// How long a step may wait for a slot; the server's default if none.
    pub queue_wait_ms: Option<u64>,
    /// Higher goes first. From -100 to 100.
    pub priority: i32,
    /// Executions with the same key run at most `limit` at once.
    pub concurrency: Option<Concurrency>,
    /// Executions with the same key start at most `limit` times in `per_ms`.
    pub rate: Option<Rate>,
    pub budget: Budget,
    pub journal: JournalRules,
    pub compensate_on: CompensateOn,
    /// The tags of its executions: an object of texts, with expressions over the inputs.
    pub tags: Option<Template>,
    /// Who is told of what.
    pub notify: Vec<NotifyRule>,
}

/// After which ends of an execution its completed steps are undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompensateOn {
    pub failed: bool,
    pub cancelled: bool,
}

impl Default for CompensateOn {
    fn default() -> Self {
        Self { failed: true, cancelled: false }
    }
}

#[derive(Debug, Clone)]
pub struct Concurrency {
    pub key: Template,
    pub limit: usize,
}

#[derive(Debug, Clone)]
pub struct Rate {
    pub key: Template,
    pub limit: u32,
    pub per_ms: u64,
}

/// What an execution may use before it pauses. None: without limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Budget {
    pub wall_clock_ms: Option<u64>,
    /// Attempts of steps, retries included.
    pub steps: Option<u64>,
    pub tokens: Option<u64>,
    pub cost: Option<f64>,
}

/// What the journal of a workflow may show beyond the seed's allow-list, and what it must hide in its own way.
#[derive(Debug, Clone, Default)]
pub struct JournalRules {
    /// Field names that are shown.
    pub allow: Vec<String>,
    pub rules: Vec<RedactionRule>,
}

#[derive(Debug, Clone)]
pub struct RedactionRule {
    pub on: RuleOn,
    /// A text to find: a field's name, a dotted path, or a part of a value. `*` stands for anything.
    pub pattern: String,
    pub action: RuleAction,
    pub replacement: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleOn {
    FieldName,
    FieldPattern,
    ValuePattern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleAction {
    Redact,
    Hash,
    Remove,
}

/// Which list of a definition a step is in. The sections run one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StepSection {
    #[default]
    Body,
    /// When the execution has failed, after its rollback.
    OnFailure,
    /// At the end, however it ended.
    Finally,
}

impl StepSection {
    pub const ALL: [StepSection; 3] = [StepSection::Body, StepSection::OnFailure, StepSection::Finally];

    /// The member of the definition that holds it.
    pub fn member(self) -> &'static str {
        match self {
            StepSection::Body => "steps",
            StepSection::OnFailure => "onFailure",
            StepSection::Finally => "finally",
        }
    }

    pub fn is_closing(self) -> bool {
        self != StepSection::Body
    }
}

/// One step.
#[derive(Debug, Clone)]
pub struct Step {
    pub id: Arc<str>,
    pub name: Option<String>,
    pub section: StepSection,
    pub kind: Kind,
    /// Places of the steps it waits for.
    pub dependencies: Vec<usize>,
    pub join: Join,
    /// It runs only if this holds.
    pub only_if: Option<Condition>,
    /// It does not run if this holds.
    pub unless: Option<Condition>,
    /// It runs once for each item of a list.
    pub each: Option<Each>,
    /// It runs again and again while a condition holds. Never together with `each`.
    pub repeat: Option<Repeat>,
    pub on_error: OnError,
    /// The place of the step that stands in for it when it fails.
    pub fallback: Option<usize>,
    /// It only runs when a step that names it as its fallback has failed.
    pub is_fallback: bool,
    pub resilience: Resilience,
    pub on_unknown: OnUnknown,
    /// Instead of the key `execution:step`.
    pub idempotency_key: Option<Template>,
    /// Undoes it in a rollback. Runs with `${output}`, `${input}` and `${outcome}` of the step, or of one item or round of it.
    pub compensate: Option<Call>,
    /// How hard the undo tries.
    pub undo_resilience: Resilience,
    /// Without a sign of life for this long, an attempt counts as timed out.
    pub heartbeat_timeout_ms: Option<u64>,
    /// Its end is durable before the next step begins, even if its agent is pure.
    pub checkpoint: bool,
    /// Its result is kept as an artifact, and its output refers to it.
    pub keeps_artifact: bool,
}

/// How the ends of its dependencies decide whether a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// None failed, and not all were skipped.
    #[default]
    Default,
    /// Every one completed.
    All,
    /// One completed; the others go on.
    Any,
    /// One completed; the others are cancelled.
    Race,
    /// All ended, however they did; also after the execution has failed.
    Always,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Kind {
    Agent(Call),
    Workflow(Child),
    Wait(Wait),
    Approval(Approval),
    Switch(Switch),
}

/// A call of an agent.
#[derive(Debug, Clone)]
pub struct Call {
    pub agent: Arc<str>,
    pub version: Option<String>,
    pub input: Template,
    pub config: Template,
}

/// Another workflow as a step: a stored one, or one written where it is used.
#[derive(Debug, Clone)]
pub struct Child {
    pub which: Which,
    pub inputs: Template,
    /// It goes on by itself: the step is done when it has begun, and nothing that happens to the parent concerns it.
    pub detached: bool,
}

#[derive(Debug, Clone)]
pub enum Which {
    /// Its newest version, or the one named.
    Stored {
        id: Arc<str>,
        version: Option<String>,
    },
    Inline(Arc<Workflow>),
}

#[derive(Debug, Clone)]
pub enum Wait {
    /// A number of milliseconds, or an ISO 8601 duration.
    For(Template),
    /// A moment in ISO 8601.
    Until(Template),
    Event {
        name: Template,
        /// What the event is about: it may be sent to the key instead of the execution.
        key: Option<Template>,
        timeout_ms: Option<u64>,
    },
}

#[derive(Debug, Clone)]
pub struct Approval {
    pub message: Template,
    /// Who may decide: names of principals, or `role:<name>`. Empty: every approver, and the holder of the link.
    pub who: Vec<String>,
    /// Whether the principal that started the execution may not decide.
    pub exclude_starter: bool,
    pub timeout_ms: Option<u64>,
    pub on_timeout: OnTimeout,
    /// JSON Schema of what the decider fills in.
    pub form: Option<Value>,
}

/// What an approval becomes when it is not decided in time. The output names `timeout` as the decider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    Fail,
    Approve,
    Reject,
}

/// Chooses which of the steps it names go on; the others are skipped.
#[derive(Debug, Clone)]
pub struct Switch {
    pub on: Template,
    pub cases: Vec<(Value, Vec<usize>)>,
    pub default: Vec<usize>,
}

#[derive(Debug, Clone)]
pub struct Each {
    pub items: Template,
    pub concurrency: usize,
    pub on_item_error: OnItemError,
}

/// What a failed item means for the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnItemError {
    /// The first failure fails the step; items under way finish, the others do not begin.
    Fail,
    /// All items run; failures are listed in the output.
    Continue,
    /// As `Continue`, and the step fails at the end when more than this share of the items failed. From 0 to 1.
    Tolerate(f64),
}

#[derive(Debug, Clone)]
pub struct Repeat {
    /// Tested before each round, with `${iteration}` and `${last}`.
    pub condition: Condition,
    pub max_iterations: u32,
    pub delay_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    Fail,
    Continue,
    Retry,
    Fallback,
}

/// What to do with an attempt that died with its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknown {
    Retry,
    Fail,
    /// A person decides.
    Ask,
}

impl Workflow {
    /// Whether a step waits for an event that may be sent to a key.
    pub fn has_keyed_waits(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.kind, Kind::Wait(Wait::Event { key: Some(_), .. })))
    }

    /// Whether a rollback of it may have something to undo. What a stored child contains is not known here.
    pub fn is_undoable(&self) -> bool {
        self.steps[self.section(StepSection::Body)].iter().any(|step| match &step.kind {
            Kind::Workflow(child) if child.detached => step.compensate.is_some(),
            Kind::Workflow(child) => match &child.which {
                Which::Inline(inner) => step.compensate.is_some() || inner.is_undoable(),
                Which::Stored { .. } => true,
            },
            Kind::Agent(_) | Kind::Wait(_) | Kind::Approval(_) | Kind::Switch(_) => step.compensate.is_some(),
        })
    }

    pub fn place(&self, step: &str) -> Option<usize> {
        self.steps.iter().position(|one| &*one.id == step)
    }

    /// The places of the steps of a section.
    pub fn section(&self, section: StepSection) -> Range<usize> {
        let [body, on_failure, finally] = self.section_ends;
        match section {
            StepSection::Body => 0..body,
            StepSection::OnFailure => body..on_failure,
            StepSection::Finally => on_failure..finally,
        }
    }

    pub fn has_closing_steps(&self) -> bool {
        self.section_ends[0] < self.steps.len()
    }

    /// Where the author wrote a step: `steps[2]`, `finally[0]`.
    pub fn path(&self, place: usize) -> String {
        let section = self.steps[place].section;
        format!("{}[{}]", section.member(), place - self.section(section).start)
    }
}
