//! Who runs next (WF-19.3): one limit for the whole process, and turns for everybody who waits.
//!
//! Two lines wait for slots: steps of executions that have begun, in turns by execution, and executions that have not, by
//! priority and age. Slots go to them alternately, so neither line starves the other; while very many executions have begun,
//! only those get slots, so that begun work ends.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// While this many times more executions have begun than steps may run, no further one begins.
const BEGUN_FACTOR: usize = 8;

/// Runs executions that get their turn to begin.
pub type Admit<P> = Arc<dyn Fn(P, Slot) + Send + Sync>;

/// Hands out slots. `P` is what is needed to begin an execution.
pub struct Scheduler<P: Send + 'static>(Arc<Shared<P>>);

impl<P: Send + 'static> Clone for Scheduler<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Shared<P: Send + 'static> {
    lines: Mutex<Lines<P>>,
    max: usize,
    admit: Mutex<Option<Admit<P>>>,
}

struct Lines<P> {
    running: usize,
    /// Executions that have begun and not ended.
    begun: usize,
    /// Executions with waiting steps, in the order of their turns.
    turns: VecDeque<i64>,
    steps: HashMap<i64, VecDeque<oneshot::Sender<Slot>>>,
    /// Executions that have not begun: highest priority first, then the oldest.
    fresh: BTreeMap<(i32, i64), P>,
    /// The next free slot goes to an execution that has not begun.
    fresh_is_next: bool,
}

/// Room for one step. Dropped, it goes to whoever is next.
pub struct Slot(Option<Arc<dyn Give>>);

trait Give: Send + Sync {
    fn give_back(self: Arc<Self>);
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(giver) = self.0.take() {
            giver.give_back();
        }
    }
}

impl<P: Send + 'static> Give for Shared<P> {
    fn give_back(self: Arc<Self>) {
        self.lines.lock().running -= 1;
        Scheduler(self).hand_out();
    }
}

/// How many wait and run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    pub running: usize,
    pub begun: usize,
    pub waiting_steps: usize,
    pub waiting_executions: usize,
    pub max: usize,
}

impl<P: Send + 'static> Scheduler<P> {
    pub fn new(max: usize) -> Self {
        let lines = Lines {
            running: 0,
            begun: 0,
            turns: VecDeque::new(),
            steps: HashMap::new(),
            fresh: BTreeMap::new(),
            fresh_is_next: false,
        };
        Self(Arc::new(Shared { lines: Mutex::new(lines), max: max.max(1), admit: Mutex::new(None) }))
    }

    /// Says how executions begin. Without it none does.
    pub fn on_admit(&self, admit: Admit<P>) {
        *self.0.admit.lock() = Some(admit);
        self.hand_out();
    }

    /// A slot for an execution that begins now, if nobody waits who comes before it.
    pub fn try_begin(&self) -> Option<Slot> {
        let mut lines = self.0.lines.lock();
        let free = lines.running < self.0.max && lines.turns.is_empty() && lines.fresh.is_empty();
        if !free || lines.begun >= self.0.max * BEGUN_FACTOR {
            return None;
        }
        lines.running += 1;
        drop(lines);
        Some(self.slot())
    }

    /// Counts an execution that has begun, for as long as it lasts.
    pub fn count_begun(&self) -> Begun {
        self.0.lines.lock().begun += 1;
        Begun(self.0.clone())
    }

    /// Lets an execution wait for its turn to begin.
    pub fn line_up(&self, priority: i32, number: i64, execution: P) {
        self.0.lines.lock().fresh.insert((-priority, number), execution);
        self.hand_out();
    }

    /// A slot for a step of an execution that has begun: at once, or later by the receiver.
    pub fn take(&self, execution: i64) -> Result<Slot, oneshot::Receiver<Slot>> {
        let mut lines = self.0.lines.lock();
        if lines.running < self.0.max && lines.turns.is_empty() {
            lines.running += 1;
            drop(lines);
            return Ok(self.slot());
        }
        let (sender, receiver) = oneshot::channel();
        let waiting = lines.steps.entry(execution).or_default();
        waiting.push_back(sender);
        if waiting.len() == 1 {
            lines.turns.push_back(execution);
        }
        drop(lines);
        self.hand_out();
        Err(receiver)
    }

    pub fn depth(&self) -> Depth {
        let lines = self.0.lines.lock();
        Depth {
            running: lines.running,
            begun: lines.begun,
            waiting_steps: lines.steps.values().map(VecDeque::len).sum(),
            waiting_executions: lines.fresh.len(),
            max: self.0.max,
        }
    }

    fn slot(&self) -> Slot {
        Slot(Some(self.0.clone()))
    }

    /// Gives free slots to whoever is next, until there are none of one or the other.
    fn hand_out(&self) {
        let admit = self.0.admit.lock().clone();
        loop {
            let next = {
                let mut lines = self.0.lines.lock();
                if lines.running >= self.0.max {
                    return;
                }
                let Some(next) = lines.next(admit.is_some(), self.0.max * BEGUN_FACTOR) else { return };
                lines.running += 1;
                next
            };
            match (next, &admit) {
                // Whoever has stopped waiting hands the slot back by dropping it.
                (Next::Step(sender), _) => match sender.send(self.slot()) {
                    Ok(()) => {}
                    Err(mut slot) => {
                        slot.0 = None;
                        self.0.lines.lock().running -= 1;
                    }
                },
                (Next::Execution(execution), Some(admit)) => admit(execution, self.slot()),
                (Next::Execution(_), None) => return,
            }
        }
    }
}

enum Next<P> {
    Step(oneshot::Sender<Slot>),
    Execution(P),
}

impl<P> Lines<P> {
    fn next(&mut self, admits: bool, begun_max: usize) -> Option<Next<P>> {
        let may_begin = admits && self.begun < begun_max;
        if may_begin
            && (self.fresh_is_next || self.turns.is_empty())
            && let Some((_, execution)) = self.fresh.pop_first()
        {
            self.fresh_is_next = false;
            return Some(Next::Execution(execution));
        }
        let execution = self.turns.pop_front()?;
        self.fresh_is_next = true;
        let waiting = self.steps.get_mut(&execution)?;
        let sender = waiting.pop_front();
        if waiting.is_empty() {
            self.steps.remove(&execution);
        } else {
            self.turns.push_back(execution);
        }
        sender.map(Next::Step)
    }
}

/// Counts one execution as begun.
pub struct Begun(Arc<dyn Uncount>);

trait Uncount: Send + Sync {
    fn uncount(self: Arc<Self>);
}

impl<P: Send + 'static> Uncount for Shared<P> {
    fn uncount(self: Arc<Self>) {
        self.lines.lock().begun -= 1;
        Scheduler(self).hand_out();
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.clone().uncount();
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
