//! Who runs next (WF-19.3): one limit for the whole process, and turns for everybody who waits.
//!
//! Tenants that wait take turns. One tenant may hold all slots; a few more are kept in reserve for tenants that hold hardly any, so
//! that no tenant waits for the end of another one's steps (ADR 39). Within a tenant two lines wait for slots: steps of executions that have begun, in turns by execution, and executions that have not, by
//! priority and age. Slots go to them alternately, so neither line starves the other; while very many executions have begun,
//! only those get slots, so that begun work ends.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// While this many times more executions have begun than steps may run, no further one begins.
const BEGUN_FACTOR: usize = 8;

/// The slots in reserve, in tenths of the limit, and at least this many; and the part of them that one tenant may use.
const RESERVE_TENTHS: usize = 4;
const RESERVE_LEAST: usize = 4;
const RESERVE_SHARE: usize = 4;

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
    admit: Mutex<Option<Admit<P>>>,
}

struct Lines<P> {
    max: usize,
    reserve: usize,
    running: usize,
    /// Executions that have begun and not ended.
    begun: usize,
    tenants: HashMap<Tenant, TenantLines<P>>,
    /// Tenants for whom something waits, in the order of their turns.
    order: VecDeque<Tenant>,
    /// Executions with waiting steps.
    turns: usize,
}

/// What one tenant has running and waiting.
struct TenantLines<P> {
    running: usize,
    begun: usize,
    /// Executions with waiting steps, in the order of their turns.
    turns: VecDeque<i64>,
    steps: HashMap<i64, VecDeque<oneshot::Sender<Slot>>>,
    /// Executions that have not begun: highest priority first, then the oldest.
    fresh: BTreeMap<(i32, i64), P>,
    /// The next free slot goes to an execution that has not begun.
    fresh_is_next: bool,
}

impl<P> Default for TenantLines<P> {
    fn default() -> Self {
        Self {
            running: 0,
            begun: 0,
            turns: VecDeque::new(),
            steps: HashMap::new(),
            fresh: BTreeMap::new(),
            fresh_is_next: false,
        }
    }
}

/// Room for one step. Dropped, it goes to whoever is next.
pub struct Slot(Option<(Arc<dyn Give>, Tenant)>);

trait Give: Send + Sync {
    fn give_back(self: Arc<Self>, tenant: &Tenant);
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some((giver, tenant)) = self.0.take() {
            giver.give_back(&tenant);
        }
    }
}

impl<P: Send + 'static> Give for Shared<P> {
    fn give_back(self: Arc<Self>, tenant: &Tenant) {
        self.lines.lock().release(tenant);
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
        let max = max.max(1);
        let lines = Lines {
            max,
            reserve: (max * RESERVE_TENTHS / 10).max(RESERVE_LEAST),
            running: 0,
            begun: 0,
            tenants: HashMap::new(),
            order: VecDeque::new(),
            turns: 0,
        };
        Self(Arc::new(Shared { lines: Mutex::new(lines), admit: Mutex::new(None) }))
    }

    /// Says how executions begin. Without it none does.
    pub fn on_admit(&self, admit: Admit<P>) {
        *self.0.admit.lock() = Some(admit);
        self.hand_out();
    }

    /// A slot for an execution that begins now, if nobody waits who comes before it.
    pub fn try_begin(&self, tenant: &Tenant) -> Option<Slot> {
        let mut lines = self.0.lines.lock();
        let is_first = match lines.running < lines.max {
            true => lines.order.is_empty(),
            false => lines.tenants.get(tenant).is_none_or(|own| !own.waits()),
        };
        if !is_first || !lines.may_run(tenant) || !lines.may_begin(tenant) {
            return None;
        }
        lines.count_running(tenant);
        drop(lines);
        Some(self.slot(tenant))
    }

    /// Counts an execution that has begun, for as long as it lasts.
    pub fn count_begun(&self, tenant: &Tenant) -> Begun {
        let mut lines = self.0.lines.lock();
        lines.begun += 1;
        lines.of(tenant).begun += 1;
        Begun(self.0.clone(), tenant.clone())
    }

    /// Lets an execution wait for its turn to begin.
    pub fn line_up(&self, tenant: &Tenant, (priority, number): (i32, i64), execution: P) {
        let mut lines = self.0.lines.lock();
        lines.wait(tenant, |own| drop(own.fresh.insert((-priority, number), execution)));
        drop(lines);
        self.hand_out();
    }

    /// A slot for a step of an execution that has begun: at once, or later by the receiver.
    pub fn take(&self, tenant: &Tenant, execution: i64) -> Result<Slot, oneshot::Receiver<Slot>> {
        let mut lines = self.0.lines.lock();
        let is_first = match lines.running < lines.max {
            true => lines.turns == 0,
            false => lines.tenants.get(tenant).is_none_or(|own| own.turns.is_empty()),
        };
        if is_first && lines.may_run(tenant) {
            lines.count_running(tenant);
            drop(lines);
            return Ok(self.slot(tenant));
        }
        let (sender, receiver) = oneshot::channel();
        let mut more = 0;
        lines.wait(tenant, |own| {
            let waiting = own.steps.entry(execution).or_default();
            waiting.push_back(sender);
            if waiting.len() == 1 {
                own.turns.push_back(execution);
                more = 1;
            }
        });
        lines.turns += more;
        drop(lines);
        self.hand_out();
        Err(receiver)
    }

    pub fn depth(&self) -> Depth {
        let lines = self.0.lines.lock();
        let steps = |own: &TenantLines<P>| own.steps.values().map(VecDeque::len).sum::<usize>();
        Depth {
            running: lines.running,
            begun: lines.begun,
            waiting_steps: lines.tenants.values().map(steps).sum(),
            waiting_executions: lines.tenants.values().map(|own| own.fresh.len()).sum(),
            max: lines.max,
        }
    }

    fn slot(&self, tenant: &Tenant) -> Slot {
        Slot(Some((self.0.clone(), tenant.clone())))
    }

    /// Gives free slots to whoever is next, until there are none of one or the other.
    fn hand_out(&self) {
        let admit = self.0.admit.lock().clone();
        loop {
            let Some((tenant, next)) = self.0.lines.lock().next(admit.is_some()) else { return };
            match (next, &admit) {
                // Whoever has stopped waiting hands the slot back by dropping it.
                (Next::Step(sender), _) => match sender.send(self.slot(&tenant)) {
                    Ok(()) => {}
                    Err(mut slot) => {
                        slot.0 = None;
                        self.0.lines.lock().release(&tenant);
                    }
                },
                (Next::Execution(execution), Some(admit)) => admit(execution, self.slot(&tenant)),
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
    fn of(&mut self, tenant: &Tenant) -> &mut TenantLines<P> {
        self.tenants.entry(tenant.clone()).or_default()
    }

    /// What one tenant may use of the reserve.
    fn share(&self) -> usize {
        self.reserve / RESERVE_SHARE
    }

    /// Whether there is a slot for this tenant.
    fn may_run(&self, tenant: &Tenant) -> bool {
        let own = || self.tenants.get(tenant).map_or(0, |own| own.running);
        self.running < self.max || (self.running < self.max + self.reserve && own() < self.share())
    }

    /// Whether an execution of this tenant may begin.
    fn may_begin(&self, tenant: &Tenant) -> bool {
        let own = || self.tenants.get(tenant).map_or(0, |own| own.begun);
        // A tenant within its share is not kept waiting by what others have begun, however much that is.
        self.begun < self.max * BEGUN_FACTOR || own() < self.share() * BEGUN_FACTOR
    }

    fn count_running(&mut self, tenant: &Tenant) {
        self.running += 1;
        self.of(tenant).running += 1;
    }

    fn release(&mut self, tenant: &Tenant) {
        self.running -= 1;
        self.of(tenant).running -= 1;
        self.forget(tenant);
    }

    /// A tenant with nothing running and waiting takes no memory.
    fn forget(&mut self, tenant: &Tenant) {
        let is_idle = |own: &TenantLines<P>| own.running == 0 && own.begun == 0 && !own.waits();
        if self.tenants.get(tenant).is_some_and(is_idle) {
            self.tenants.remove(tenant);
        }
    }

    /// Lets something wait for a tenant, whose turn comes after those that wait already.
    fn wait(&mut self, tenant: &Tenant, add: impl FnOnce(&mut TenantLines<P>)) {
        let own = self.of(tenant);
        let is_new = !own.waits();
        add(own);
        if is_new {
            self.order.push_back(tenant.clone());
        }
    }

    /// What is next, with its slot counted.
    fn next(&mut self, admits: bool) -> Option<(Tenant, Next<P>)> {
        for place in 0..self.order.len() {
            let tenant = self.order[place].clone();
            if !self.may_run(&tenant) {
                continue;
            }
            let may_begin = admits && self.may_begin(&tenant);
            let own = self.of(&tenant);
            let before = own.turns.len();
            let Some(next) = own.next(may_begin) else { continue };
            let (after, waits) = (own.turns.len(), own.waits());
            self.turns = self.turns + after - before;
            self.order.remove(place);
            if waits {
                self.order.push_back(tenant.clone());
            }
            self.count_running(&tenant);
            return Some((tenant, next));
        }
        None
    }
}

impl<P> TenantLines<P> {
    fn waits(&self) -> bool {
        !self.turns.is_empty() || !self.fresh.is_empty()
    }

    fn next(&mut self, may_begin: bool) -> Option<Next<P>> {
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
pub struct Begun(Arc<dyn Uncount>, Tenant);

trait Uncount: Send + Sync {
    fn uncount(self: Arc<Self>, tenant: &Tenant);
}

impl<P: Send + 'static> Uncount for Shared<P> {
    fn uncount(self: Arc<Self>, tenant: &Tenant) {
        let mut lines = self.lines.lock();
        lines.begun -= 1;
        lines.of(tenant).begun -= 1;
        lines.forget(tenant);
        drop(lines);
        Scheduler(self).hand_out();
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.clone().uncount(&self.1);
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
