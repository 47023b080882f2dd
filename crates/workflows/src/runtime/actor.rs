//! One execution under way. Events come in; the engine says what follows; it is written down; then it is done.
//!
//! Steps without effects outside run while events are taken in, so several of them share one commit. Everything else begins
//! only after the commit that says so.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use orchestr8_contract::Fault;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::accept::{Accepted, Seed};
use super::admit::begun;
use super::children::ChildAdmission;
use super::gates::Pass;
use super::line::{Line, Listing};
use super::load::Tail;
use super::remote_limits::RemotePlace;
use super::run_task::{self, Ended};
use super::scheduler::{Begun, Slot};
use super::{Hub, Posted, record, tables};
use crate::engine::event::{Decision, Event, Task};
use crate::engine::state::{Phase, State};
use crate::engine::{self, event};

/// What an actor is told.
pub enum Message {
    /// Something happened that is stored nowhere.
    Event(Event),
    /// There is something in its inbox. What is stored reaches an actor only from there, in the order in which it was stored:
    /// those who bring the news may overtake each other.
    Look,
    /// Events about it were dropped on the bus.
    EventsDropped(Value),
    /// It may begin, with its place among the executions with its key.
    Begin(Slot, Option<Arc<Pass>>),
}

/// What an attempt occupies while it runs. Dropped, it goes to the next that waits for it.
pub enum Occupied {
    Slot(#[expect(dead_code, reason = "it is held")] Slot),
    Remote(#[expect(dead_code, reason = "it is held")] RemotePlace),
}

/// An attempt that runs.
pub struct Running {
    pub(super) _occupied: Occupied,
    pub(super) cancel: CancellationToken,
    /// Fired when its end is durable.
    pub(super) recorded: CancellationToken,
}

/// A step that waits for a slot or for a place with others; the fault says that it waited too long.
type Grant = BoxFuture<'static, (Task, Result<Occupied, Fault>)>;

pub struct Actor {
    pub(super) hub: Hub,
    pub(super) seed: Seed,
    pub(super) state: State,
    /// The number of the last entry of the journal.
    pub(super) seq: u64,
    pub(super) journal_bytes: usize,
    pub(super) last_ms: i64,
    pub(super) queue: VecDeque<(Event, Option<i64>)>,
    pub(super) batch: Batch,
    /// Bytes that pure steps read, and bytes of the journal, since the last commit.
    pub(super) commit_bytes: usize,
    /// What evaluating expressions has cost since the last commit.
    pub(super) fuel: u64,
    /// It works on a thread for heavy work.
    pub(super) is_beside: bool,
    /// What comes next may cost too much for a thread that serves requests.
    pub(super) needs_turn: bool,
    /// Steps that have their room and begin on a thread for heavy work.
    pub(super) held: Vec<(Task, Occupied)>,
    /// The last `absorb` stopped because the batch was full: there is more to do after the commit.
    pub(super) is_cut: bool,
    /// What the row of the execution says, if that is known: status, whether it is awake, and how many events it keeps.
    pub(super) written: Option<(event::Status, bool, usize)>,
    /// The row of the execution is not stored yet: it is inserted with what is taken in first.
    pub(super) is_new: bool,
    /// Slots in hand that no step has taken yet.
    pub(super) spare: Vec<Slot>,
    /// What runs.
    pub(super) running: HashMap<Task, Running>,
    /// Steps that want a slot and may not ask for one yet, in the order of the definition.
    pub(super) ready: BTreeSet<Task>,
    pub(super) asked: BTreeSet<Task>,
    /// Those of them whose work is done elsewhere.
    pub(super) remote: BTreeSet<Task>,
    pub(super) grants: FuturesUnordered<Grant>,
    /// What begins after the next commit.
    pub(super) starting: Vec<run_task::Start>,
    /// Children to begin with the next commit.
    pub(super) beginning: Vec<Task>,
    pub(super) admission: ChildAdmission,
    pub(super) launching: Vec<Accepted>,
    pub(super) tasks: JoinSet<Ended>,
    /// To be fired with the next commit, which has the ends of these steps.
    pub(super) recorded: Vec<CancellationToken>,
    pub(super) posting: Vec<Posted>,
    /// Its inbox may hold what it has not taken in.
    pub(super) looking: bool,
    /// What its inbox held at the last look.
    pub(super) known: HashSet<i64>,
    pub(super) mailbox: mpsc::Receiver<Message>,
    pub(super) seen: watch::Sender<u64>,
    pub(super) listing: Listing,
    pub(super) timers_changed: bool,
    /// It has not begun and is to wait for its turn.
    pub(super) lining_up: bool,
    pub(super) counted: Option<Begun>,
    pub(super) finished: bool,
    pub(super) told_closing: bool,
}

impl Actor {
    pub fn new(line: Line, hub: Hub, seed: Seed, state: State, tail: Tail) -> Self {
        let Line { sender: _, mailbox, seen, listing } = line;
        Self {
            last_ms: tail.at_ms.max(seed.created_ms),
            journal_bytes: tail.bytes,
            queue: VecDeque::new(),
            batch: Batch::new(),
            commit_bytes: 0,
            fuel: 0,
            is_beside: false,
            needs_turn: false,
            held: Vec::new(),
            is_cut: false,
            written: None,
            is_new: false,
            spare: Vec::new(),
            running: HashMap::new(),
            ready: BTreeSet::new(),
            asked: BTreeSet::new(),
            remote: BTreeSet::new(),
            grants: FuturesUnordered::new(),
            starting: Vec::new(),
            beginning: Vec::new(),
            admission: ChildAdmission::default(),
            launching: Vec::new(),
            tasks: JoinSet::new(),
            recorded: Vec::new(),
            posting: Vec::new(),
            looking: false,
            known: HashSet::new(),
            mailbox,
            seen,
            listing,
            timers_changed: false,
            lining_up: false,
            counted: None,
            finished: false,
            told_closing: false,
            hub,
            seed,
            state,
            seq: tail.seq,
        }
    }

    /// Lets it begin with this slot.
    pub fn begin(&mut self, slot: Slot) {
        self.spare.push(slot);
        self.counted = Some(self.hub.0.scheduler.count_begun(&self.seed.tenant));
        if let Some(pass) = &self.seed.pass {
            for statement in pass.begin(self.seed.num, self.hub.0.now_ms()) {
                self.batch.then(statement);
            }
        }
        let event = begun(&self.hub, &self.seed);
        self.queue.push_back((event, None));
    }

    /// Its place under its key is held until it ends, also while it has no actor.
    pub(super) fn hold_place(&mut self) {
        self.hub.0.gates.hold(self.seed.num, self.seed.pass.take());
    }

    /// Continues an execution that had begun.
    pub fn resume(&mut self) {
        self.counted = Some(self.hub.0.scheduler.count_begun(&self.seed.tenant));
    }

    pub fn give(&mut self, event: Event) {
        self.queue.push_back((event, None));
    }

    /// Goes on with what was due when it was last recorded.
    pub fn take_up(&mut self) {
        for (task, work) in &self.state.work {
            match work.phase {
                Phase::Ready if self.state.pause.is_none() => {
                    self.ready.insert(*task);
                }
                Phase::Beginning => self.beginning.push(*task),
                // Earlier versions set no timer for it.
                Phase::Retrying { at_ms } => {
                    self.batch.then(tables::timer_set(self.seed.num, &timer_name(Some(*task)), at_ms));
                    self.timers_changed = true;
                }
                Phase::Ready
                | Phase::Running
                | Phase::Child { .. }
                | Phase::Waiting { .. }
                | Phase::Asking { .. }
                | Phase::Resting { .. }
                | Phase::Unknown => {}
            }
        }
    }

    /// Runs it in a task of its own; what `take_batch` gave is durable.
    pub fn spawn(mut self) {
        self.hold_place();
        self.act();
        if !self.finished {
            tokio::spawn(self.live());
            return;
        }
        // What has ended already is put away at once, which costs no task.
        let mut living = Box::pin(self.live());
        if run_task::poll_once(living.as_mut()).is_pending() {
            tokio::spawn(living);
        }
    }

    /// Runs it in a task of its own; nothing of what it took in is written yet.
    pub fn spawn_unrecorded(mut self) {
        self.hold_place();
        tokio::spawn(self.live());
    }

    pub(super) fn take_in(&mut self, event: Event, inbox: Option<i64>) {
        let at_ms = self.hub.0.now_ms().max(self.last_ms);
        self.last_ms = at_ms;
        if let Some(id) = inbox {
            self.batch.then_one(tables::inbox_take(id));
        }
        if self.state.status.is_final() && !event.concerns_ended() {
            return;
        }
        if self.is_late(&event) {
            return;
        }
        if matches!(&event, Event::Signal { id: Some(id), .. } if self.state.has_heard(id)) {
            // It was sent again: the first one is in the journal.
            return;
        }
        let event = self.take_place_again(event);
        let entry = record::of_event(&self.state, &event, at_ms, self.hub.0.settings.grace_ms);
        match record::record(&event) {
            Ok(text) => self.write(entry, Some(text), at_ms),
            Err(fault) => {
                self.hub.0.log().error("an event was dropped", json!({"error": log::error(&fault)}));
                return;
            }
        }
        self.log_event(&event);
        if let Event::Succeeded { task, .. } | Event::Failed { task, .. } | Event::Retrying { task, .. } =
            &event
        {
            self.asked.remove(task);
            self.remote.remove(task);
            self.recorded.extend(self.running.remove(task).map(|running| running.recorded));
        }
        if event.concerns_ended() {
            self.hub.forget(&self.state.identity.execution);
        }
        if let Event::Due { task } = &event {
            self.batch.then(tables::timer_clear(self.seed.num, &timer_name(*task)));
        }
        let graceful = !matches!(event, Event::CancelAsked { graceful: false, .. });
        let used = self.state.fuel_used;
        let decisions = engine::next(&mut self.state, event, at_ms);
        self.fuel += self.state.fuel_used - used;
        for decision in decisions {
            self.decide(decision, at_ms);
        }
        if !graceful && !self.state.status.is_final() {
            self.queue.push_back((Event::Forced, None));
        }
    }

    /// Whether this is the end of a step that is not waited for any more: it was cancelled by force, and a rollback or
    /// handlers run. That is only noted.
    fn is_late(&mut self, event: &Event) -> bool {
        let (Event::Succeeded { task, .. } | Event::Failed { task, .. }) = event else { return false };
        let is_closing = self.state.undoing.is_some() || self.state.closing.is_some();
        if !is_closing || self.state.work.contains_key(task) {
            return false;
        }
        self.asked.remove(task);
        self.recorded.extend(self.running.remove(task).map(|running| running.recorded));
        self.write(record::late(*task, self.last_ms), None, self.last_ms);
        true
    }

    fn decide(&mut self, decision: Decision, at_ms: i64) {
        let num = self.seed.num;
        match decision {
            Decision::Run { task } => {
                self.ready.insert(task);
            }
            Decision::Begin { task } => self.beginning.push(task),
            Decision::LineUp => self.lining_up = true,
            Decision::Wake { task, due_ms } => {
                self.batch.then(tables::timer_set(num, &timer_name(task), due_ms));
                self.timers_changed = true;
            }
            Decision::Forget { task } => {
                self.batch.then(tables::timer_clear(num, &timer_name(task)));
            }
            Decision::Ask { task, due_ms } => self.ask(task, due_ms),
            Decision::Unask { task } => {
                self.batch.then(tables::approval_close(num, &task.to_string()));
            }
            Decision::Expect { name, key } => self.expect(name, key),
            Decision::Stop { task } => self.stop_task(task),
            Decision::UndoChild { task } => self.undo_child(task),
            Decision::ReportUndo => self.report(),
            Decision::Withdraw => {
                self.ready.clear();
                self.asked.retain(|task| self.running.contains_key(task));
                self.remote.retain(|task| self.running.contains_key(task));
                self.grants = FuturesUnordered::new();
                self.held.clear();
                self.spare.clear();
            }
            Decision::Note(note) => {
                self.log_note(&note);
                let entry = record::of_note(&self.state, &note, at_ms);
                self.write(entry, None, at_ms);
            }
            Decision::Finish => self.finish(),
        }
    }

    /// The end: the execution that it belongs to is told in the same commit.
    fn finish(&mut self) {
        self.finished = true;
        // What ends before it is stored has timers only if it has set them in this commit.
        if !self.is_new || self.timers_changed {
            self.batch.then(tables::timers_clear(self.seed.num));
        }
        if self.state.workflow().policies.concurrency.is_some() {
            self.batch.then(tables::limit_leave(self.seed.num));
        }
        if self.state.workflow().has_keyed_waits() {
            self.batch.then(crate::keyed_events::tables::waits_clear(self.seed.num));
        }
        self.report();
    }

    /// Fires the token of an attempt that runs.
    pub(super) fn cancel_running(&self, task: Task) {
        if let Some(running) = self.running.get(&task) {
            running.cancel.cancel();
        }
    }
}

fn timer_name(task: Option<Task>) -> String {
    task.map_or_else(|| String::from("all"), |task| task.to_string())
}
