//! Who runs next (WF-19.3): one limit for the whole process, and turns for all that waits.
//!
//! A slot is held only while this process works on a step (ADR 41). Tenants that wait take turns. One tenant may hold all slots; a
//! few more are kept in reserve for tenants that hold hardly any, so that no tenant waits for the end of another one's steps
//! (ADR 39). Within a tenant two lines wait for slots: steps of executions that have begun, in turns by workflow and, within it, by
//! execution; and executions that have not begun, by priority, in turns by workflow, and by age. Slots go to them alternately, so
//! neither line starves the other; while very many executions want slots, only those get them, so that begun work ends.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::fair_queue::{ByAge, ByPriority, RoundRobin, StepLine, WaitingLine};

/// While this many times more executions run steps or wait to, than steps may run, no further one begins.
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
    /// Executions that have begun and run steps here or wait to. Those that only wait for others hold up nothing.
    begun: usize,
    tenants: HashMap<Tenant, TenantLines<P>>,
    /// Tenants for whom something waits, in the order of their turns.
    order: VecDeque<Tenant>,
    /// Tenants with waiting steps.
    waiting_tenants: usize,
    /// Tenants that may hold fewer slots than there are.
    limits: HashMap<Tenant, usize>,
}

/// What one tenant has running and waiting.
struct TenantLines<P> {
    running: usize,
    begun: usize,
    steps: StepLine<Slot>,
    /// Executions that have not begun: the highest priority first, within it workflows in turns, within those the oldest.
    fresh: ByPriority<RoundRobin<Arc<str>, ByAge<P>>>,
    /// The next free slot goes to an execution that has not begun.
    fresh_is_next: bool,
}

impl<P> Default for TenantLines<P> {
    fn default() -> Self {
        Self {
            running: 0,
            begun: 0,
            steps: StepLine::default(),
            fresh: ByPriority::default(),
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
            waiting_tenants: 0,
            limits: HashMap::new(),
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

    /// Counts an execution that has begun, for as long as it runs steps or waits to.
    pub fn count_begun(&self, tenant: &Tenant) -> Begun {
        let mut lines = self.0.lines.lock();
        lines.begun += 1;
        lines.of(tenant).begun += 1;
        Begun(self.0.clone(), tenant.clone())
    }

    /// Lets an execution wait for its turn to begin.
    pub fn line_up(
        &self,
        (tenant, workflow): (&Tenant, &Arc<str>),
        (priority, number): (i32, i64),
        execution: P,
    ) {
        let place = (priority, (workflow.clone(), number));
        let mut lines = self.0.lines.lock();
        lines.wait(tenant, |own| own.fresh.push(place, execution));
        drop(lines);
        self.hand_out();
    }

    /// A slot for a step of an execution that has begun: at once, or later by the receiver.
    pub fn take(
        &self,
        (tenant, workflow, execution): (&Tenant, &Arc<str>, i64),
    ) -> Result<Slot, oneshot::Receiver<Slot>> {
        let mut lines = self.0.lines.lock();
        let is_first = match lines.running < lines.max {
            true => lines.waiting_tenants == 0,
            false => lines.tenants.get(tenant).is_none_or(|own| own.steps.is_empty()),
        };
        if is_first && lines.may_run(tenant) {
            lines.count_running(tenant);
            drop(lines);
            return Ok(self.slot(tenant));
        }
        let (sender, receiver) = oneshot::channel();
        let place = (workflow.clone(), (execution, ()));
        lines.wait(tenant, |own| own.steps.push(place, sender));
        drop(lines);
        self.hand_out();
        Err(receiver)
    }

    /// Limits the slots that a tenant holds; without a limit it may hold all. What runs goes on.
    pub fn limit_tenant(&self, tenant: &Tenant, limit: Option<usize>) {
        let mut lines = self.0.lines.lock();
        match limit {
            Some(limit) => lines.limits.insert(tenant.clone(), limit),
            None => lines.limits.remove(tenant),
        };
        drop(lines);
        self.hand_out();
    }

    pub fn depth(&self) -> Depth {
        let lines = self.0.lines.lock();
        Depth {
            running: lines.running,
            begun: lines.begun,
            waiting_steps: lines.tenants.values().map(|own| own.steps.len()).sum(),
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
                // It may have stopped waiting in this very moment.
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
        let is_free =
            self.running < self.max || (self.running < self.max + self.reserve && own() < self.share());
        is_free && self.limits.get(tenant).is_none_or(|limit| own() < *limit)
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
        let (is_new, had_steps) = (!own.waits(), !own.steps.is_empty());
        add(own);
        let has_steps = !own.steps.is_empty();
        self.waiting_tenants += usize::from(has_steps && !had_steps);
        if is_new {
            self.order.push_back(tenant.clone());
        }
    }

    /// What is next, with its slot counted.
    fn next(&mut self, admits: bool) -> Option<(Tenant, Next<P>)> {
        let mut place = 0;
        while let Some(tenant) = self.order.get(place).cloned() {
            if !self.may_run(&tenant) {
                place += 1;
                continue;
            }
            let may_begin = admits && self.may_begin(&tenant);
            let own = self.of(&tenant);
            let had_steps = !own.steps.is_empty();
            let next = own.next(may_begin);
            let (has_steps, waits) = (!own.steps.is_empty(), own.waits());
            self.waiting_tenants -= usize::from(had_steps && !has_steps);
            match (&next, waits) {
                // What waits may not begin now.
                (None, true) => {
                    place += 1;
                    continue;
                }
                // All that waited has given up.
                (None, false) => {
                    self.order.remove(place);
                    self.forget(&tenant);
                    continue;
                }
                (Some(_), _) => {}
            }
            self.order.remove(place);
            if waits {
                self.order.push_back(tenant.clone());
            }
            self.count_running(&tenant);
            return next.map(|next| (tenant, next));
        }
        None
    }
}

impl<P> TenantLines<P> {
    fn waits(&self) -> bool {
        !self.steps.is_empty() || !self.fresh.is_empty()
    }

    fn next(&mut self, may_begin: bool) -> Option<Next<P>> {
        if may_begin
            && (self.fresh_is_next || self.steps.is_empty())
            && let Some(execution) = self.fresh.pop()
        {
            self.fresh_is_next = false;
            return Some(Next::Execution(execution));
        }
        if let Some(waiter) = self.steps.pop() {
            self.fresh_is_next = true;
            return Some(Next::Step(waiter));
        }
        // Every step that waited has given up.
        if may_begin { self.fresh.pop().map(Next::Execution) } else { None }
    }
}

/// Counts one execution that runs steps or waits to.
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
