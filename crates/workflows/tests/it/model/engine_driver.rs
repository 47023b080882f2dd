//! The engine with what a runtime does around it, in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use orchestr8_workflows::definition::model::{Kind, Which, Workflow};
use orchestr8_workflows::engine::event::{Decision, Event, NewBudget, Resolution, Task};
use orchestr8_workflows::engine::state::{Phase, State};
use orchestr8_workflows::engine::{next, undo, view};
use orchestr8_workflows::{child_ended, child_undone, definition, generations_of_fork, kept_by_fork};
use serde_json::{Value, json};

use super::comparable::comparable;
use super::execution::{Execution, child_path, ending, inner, new_state};
use super::reference::definition::Definition;
use super::reference::run::Open;
use super::reference::script::{self, Act, System, View};

/// Executions by their path.
#[derive(Default)]
pub struct EngineDriver {
    pub(super) executions: BTreeMap<String, Execution>,
    /// The path of the outermost one.
    root: String,
    at_ms: i64,
    /// Messages between executions, in order.
    posted: Vec<(String, Event)>,
}

impl System for EngineDriver {
    fn start(&mut self, definition: &Definition) {
        let source = definition.to_json();
        let workflow =
            definition::read_value(&source).unwrap_or_else(|problems| panic!("{problems:?} {source}"));
        let state = new_state(workflow);
        self.root = String::new();
        self.insert(String::new(), state, None);
        self.begin("", Vec::new(), Vec::new());
        self.deliver();
    }

    fn act(&mut self, act: &Act) {
        self.at_ms += 1000;
        match act {
            Act::End { key, how, again } => {
                let (path, task) = self.find(key);
                let attempts = self.executions[&path].state.work.get(&task).map_or(1, |work| work.attempts);
                self.give(&path, ending(task, attempts, *how, *again));
            }
            Act::Due { key } => {
                let (path, task) = self.find(key);
                self.execution(&path).timers.remove(&task);
                self.give(&path, Event::Due { task: Some(task) });
            }
            Act::Decide { key, approved } => {
                let (path, task) = self.find(key);
                let (by, data) = ("ann".into(), Value::Null);
                let event =
                    Event::Decided { task, approved: *approved, by, on_behalf_of: None, comment: None, data };
                self.give(&path, event);
            }
            Act::Resolve { key, how } => {
                let (path, task) = self.find(key);
                let how = match how {
                    script::Resolution::Retry => Resolution::Retry,
                    script::Resolution::Fail => Resolution::Fail,
                    script::Resolution::Complete => Resolution::Complete { output: json!({"n": 1}) },
                };
                self.give(&path, Event::Resolved { task, how });
            }
            Act::Signal { path } => {
                self.give(path, Event::Signal { name: "e".into(), payload: json!("event"), id: None });
            }
            Act::Cancel { force } => self.give_root(Event::CancelAsked {
                reason: "enough".into(),
                graceful: !force,
                force: *force,
            }),
            Act::GraceOver { path } => self.give(path, Event::Forced),
            Act::TimeOut => self.give_root(Event::Due { task: None }),
            Act::Pause => self.give_root(Event::Paused { reason: "wait".into() }),
            Act::Resume => self.give_root(Event::Resumed { budget: NewBudget::default() }),
            Act::Crash => self.crash(),
            Act::Retry => self.give_root(Event::Again),
            Act::Fork { from, path } => {
                let old = &self.executions[&self.root].state;
                let kept = kept_by_fork(old, old.workflow(), *from, &asking(old.workflow()));
                let generations = generations_of_fork(old, old.workflow());
                let state = State::new(old.identity.clone());
                self.root = path.clone();
                self.insert(path.clone(), state, None);
                self.begin(path, kept, generations);
            }
        }
        self.deliver();
    }

    fn open(&mut self, _: &BTreeMap<String, Open>) -> BTreeMap<String, Open> {
        self.named().into_iter().map(|(key, (_, _, open))| (key, open)).collect()
    }

    fn view(&mut self, path: &str, _: &str) -> Option<View> {
        let state = &self.executions.get(path)?.state;
        let step = |place: usize| {
            let output = state.steps[place].output.clone();
            let output = output.map(|output| comparable(&state.workflow().steps[place], output));
            (view::step_status(state, place).to_owned(), output)
        };
        let mut left: Vec<String> = match state.undoing {
            None => Vec::new(),
            Some(_) => undo::left(state)
                .iter()
                .map(|left| json!([format!("s{}", left.task.step), left.task.part]).to_string())
                .collect(),
        };
        left.sort();
        Some(View {
            status: state.status.as_str().to_owned(),
            steps: (0..state.steps.len()).map(step).collect(),
            left,
        })
    }
}

impl EngineDriver {
    fn execution(&mut self, path: &str) -> &mut Execution {
        self.executions.get_mut(path).unwrap_or_else(|| panic!("no execution '{path}'"))
    }

    fn insert(&mut self, path: String, state: State, parent: Option<(String, Task)>) {
        let execution = Execution::new(state, parent);
        self.executions.insert(path, execution);
    }

    fn begin(&mut self, path: &str, kept: Vec<(usize, Value)>, generations: Vec<(usize, u32)>) {
        self.give(path, Event::Begun { env: serde_json::Map::new(), kept, generations });
    }

    fn give_root(&mut self, event: Event) {
        let root = self.root.clone();
        self.give(&root, event);
    }

    /// Gives an event to an execution, and does what it decides.
    fn give(&mut self, path: &str, event: Event) {
        let (at_ms, is_graceful) = (self.at_ms, !matches!(event, Event::CancelAsked { graceful: false, .. }));
        let execution = self.execution(path);
        if execution.state.status.is_final() && !event.concerns_ended() {
            return;
        }
        let record = serde_json::to_string(&event).unwrap();
        let event: Event = serde_json::from_str(&record).unwrap();
        execution.records.push((record, at_ms));
        if let Event::Succeeded { task, .. }
        | Event::Failed { task, .. }
        | Event::Retrying { task, .. }
        | Event::Lost { task } = &event
        {
            execution.running.remove(task);
        }
        let is_forced = matches!(event, Event::Forced);
        let decisions = next(&mut execution.state, event, at_ms);
        if is_forced {
            // What still runs is not heard of any more.
            let work = &execution.state.work;
            execution.running.retain(|task| work.contains_key(task));
        }
        for decision in decisions {
            self.decide(path, decision);
        }
        if !is_graceful && !self.execution(path).state.status.is_final() {
            self.give(path, Event::Forced);
        }
    }

    fn decide(&mut self, path: &str, decision: Decision) {
        let execution = self.execution(path);
        match decision {
            Decision::Run { task } => {
                execution.ready.insert(task);
            }
            Decision::Begin { task } => execution.beginning.push(task),
            Decision::Wake { task: Some(task), .. } => {
                execution.timers.insert(task);
            }
            Decision::Forget { task: Some(task) } => {
                execution.timers.remove(&task);
            }
            Decision::Ask { task, .. } => {
                execution.questions.insert(task);
            }
            Decision::Unask { task } => {
                execution.questions.remove(&task);
            }
            Decision::Stop { task } => self.stop_child(path, task),
            Decision::UndoChild { task } => {
                let child = child_path(execution, path, task);
                self.posted.push((child, Event::UndoAsked));
            }
            Decision::ReportUndo => self.report(path),
            Decision::Withdraw => execution.ready.clear(),
            Decision::Finish => {
                execution.timers.clear();
                // What still runs is not heard of any more.
                execution.running.clear();
                self.report(path);
            }
            Decision::LineUp
            | Decision::Expect { .. }
            | Decision::Wake { task: None, .. }
            | Decision::Forget { task: None }
            | Decision::Note(_) => {}
        }
    }

    fn stop_child(&mut self, path: &str, task: Task) {
        let execution = self.execution(path);
        let is_child =
            matches!(execution.state.work.get(&task).map(|work| &work.phase), Some(Phase::Child { .. }));
        // Its rollback, or the handlers that it belonged to, were stopped by force.
        let is_left = !execution.state.work.contains_key(&task)
            && execution.state.children.contains_key(&task.undone());
        let child = child_path(execution, path, task);
        if is_child || is_left {
            let force = is_left && task.undo;
            let event = Event::CancelAsked { reason: "stop".into(), graceful: !force, force };
            self.posted.push((child, event));
        }
    }

    /// Starts what may start: there are slots for all.
    fn start(&mut self, path: &str) {
        self.start_calls(path);
        self.begin_children(path);
    }

    fn start_calls(&mut self, path: &str) {
        loop {
            let execution = self.execution(path);
            let Some(task) = execution.ready.pop_first() else { break };
            let Some(work) = execution.state.work.get(&task).filter(|work| work.phase == Phase::Ready) else {
                continue;
            };
            let attempt = work.attempts.max(1);
            execution.running.insert(task);
            self.give(path, Event::Started { task, attempt });
        }
    }

    fn begin_children(&mut self, path: &str) {
        loop {
            let execution = self.execution(path);
            if execution.beginning.is_empty() {
                break;
            }
            let task = execution.beginning.remove(0);
            if execution.state.work.get(&task).is_none_or(|work| work.phase != Phase::Beginning) {
                continue;
            }
            let workflow = inner(&execution.state, task);
            *execution.children.entry(task).or_default() += 1;
            let child = child_path(execution, path, task);
            let detached = is_detached(&execution.state, task);
            let undoable = workflow.is_undoable();
            // What a child does again after a rollback is done under new keys.
            let generation = execution.state.steps[task.step].generation_of(task.part);
            let generations = (0..workflow.steps.len()).map(|step| (step, generation)).collect();
            let state = new_state(workflow);
            let parent = (!detached).then(|| (path.to_owned(), task));
            self.insert(child.clone(), state, parent);
            self.give(path, Event::ChildBegun { task, execution: child.as_str().into(), undoable, detached });
            self.begin(&child, Vec::new(), generations);
            // What it calls begins before anything else happens.
            self.start(&child);
        }
    }

    fn report(&mut self, path: &str) {
        let execution = self.execution(path);
        let Some((parent, task)) = execution.parent.clone() else { return };
        let event = match execution.state.undo_asked {
            true => child_undone(&execution.state, task.undoing()),
            false => child_ended(&execution.state, task),
        };
        self.posted.push((parent, event));
    }

    /// Delivers what executions tell each other, then starts what is due, until nothing is left.
    fn deliver(&mut self) {
        loop {
            // Those that are innermost hear first, and of several ends of children in the order of the definition.
            let rank = |(path, event): &(String, Event)| (Reverse(path.matches('/').count()), event.task());
            while let Some(place) = (0..self.posted.len()).min_by_key(|place| rank(&self.posted[*place])) {
                let (path, event) = self.posted.remove(place);
                self.give(&path, event);
            }
            let paths: Vec<String> = self.executions.keys().cloned().collect();
            paths.iter().for_each(|path| self.start(path));
            if self.posted.is_empty() && self.executions.len() == paths.len() {
                return;
            }
        }
    }

    /// The process dies and comes back: what is stored is folded, and what ran is lost.
    fn crash(&mut self) {
        let paths: Vec<String> = self.executions.keys().cloned().collect();
        for path in &paths {
            let execution = self.execution(path);
            let mut state = State::new(execution.state.identity.clone());
            for (record, at_ms) in &execution.records {
                next(&mut state, serde_json::from_str(record).unwrap(), *at_ms);
            }
            execution.running.clear();
            execution.ready.clear();
            execution.state = state;
            let lost: Vec<Task> = execution.state.interrupted().collect();
            for task in lost {
                self.give(path, Event::Lost { task });
                self.start_calls(path);
            }
            self.take_up(path);
        }
        self.deliver();
    }

    fn take_up(&mut self, path: &str) {
        let execution = self.execution(path);
        let is_paused = execution.state.pause.is_some();
        let mut unsaid = Vec::new();
        for (task, work) in &execution.state.work {
            match &work.phase {
                Phase::Ready if !is_paused => {
                    execution.ready.insert(*task);
                }
                Phase::Child { .. } if task.undo => unsaid.push((*task, Event::UndoAsked)),
                Phase::Child { stopping: true, .. } => {
                    unsaid.push((
                        *task,
                        Event::CancelAsked { reason: "stop".into(), graceful: true, force: false },
                    ));
                }
                _ => {}
            }
        }
        for (task, event) in unsaid {
            let child = child_path(self.execution(path), path, task);
            self.posted.push((child, event));
        }
    }
}

fn is_detached(state: &State, task: Task) -> bool {
    match &state.workflow().steps[task.step].kind {
        Kind::Workflow(child) => child.detached,
        Kind::Agent(_) | Kind::Approval(_) | Kind::Wait(_) | Kind::Switch(_) => false,
    }
}

/// Which steps ask a person, themselves or in a child. Children of these definitions are written where they are used.
fn asking(workflow: &Workflow) -> Vec<bool> {
    let asks = |kind: &Kind| match kind {
        Kind::Approval(_) => true,
        Kind::Workflow(child) => match &child.which {
            Which::Inline(inner) => asking(inner).contains(&true),
            Which::Stored { .. } => true,
        },
        Kind::Agent(_) | Kind::Wait(_) | Kind::Switch(_) => false,
    };
    workflow.steps.iter().map(|step| asks(&step.kind)).collect()
}
