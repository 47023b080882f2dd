//! The kernel itself: what it is made of, and how a submission is handed to it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use orchestr8_contract::id::{RunId, Tenant};
use orchestr8_contract::{Code, Event, Fault, Priority, limits};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::action::Action;
use crate::audit;
use crate::authorize::authorize_operation;
use crate::bus::Bus;
use crate::health::Health;
use crate::heavy::{HeavyLimits, HeavyWork};
use crate::in_flight::{InFlight, InFlightCounts};
use crate::interest::Interests;
use crate::lanes::Lanes;
use crate::ledger::{CutOff, Ledger, store_fault};
use crate::log::Log;
use crate::outcome::{Settled, Stored};
use crate::pipeline::{self, Admitted};
use crate::ports::ids::For;
use crate::ports::store::Batch;
use crate::ports::{Clock, Ids, Random, Store};
use crate::principals::{PrincipalDirectory, Standing};
use crate::redact::Redactor;
use crate::refusals::{self, RefusalBudget, RefusalSource, RefusedCall};
use crate::registry::Registry;
use crate::resilience::Breakers;
use crate::row_seal::RowSeal;
use crate::slots::{Holder, Slot, Slots};
use crate::submission::{Identity, Principal, Submission};
use crate::versions::Versions;

/// What the kernel uses of the outside.
#[derive(Clone)]
pub struct Ports {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub random: Arc<dyn Random>,
    pub store: Arc<dyn Store>,
    pub log: Log,
    pub redactor: Arc<Redactor>,
}

/// The limits an installation sets.
#[derive(Debug, Clone)]
pub struct Limits {
    pub payload_bytes: usize,
    pub concurrent_runs: usize,
    pub timeout_ms: u64,
    pub in_flight: usize,
    pub dependency_wait_ms: u64,
    /// Of CPU-bound work over large inputs.
    pub heavy: HeavyLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes: limits::PAYLOAD_BYTES,
            concurrent_runs: limits::CONCURRENT_RUNS,
            timeout_ms: limits::TIMEOUT_MS,
            in_flight: limits::IN_FLIGHT,
            dependency_wait_ms: limits::DEPENDENCY_WAIT_MS,
            heavy: HeavyLimits::default(),
        }
    }
}

/// Everything the steps of the pipeline share.
pub struct Core {
    pub ports: Ports,
    pub limits: Limits,
    pub registry: Registry,
    pub bus: Bus,
    pub health: Arc<Health>,
    pub breakers: Arc<Breakers>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) versions: Versions,
    pub(crate) lanes: Lanes,
    pub(crate) slots: Slots,
    action_slots: Mutex<HashMap<Arc<str>, Slots>>,
    heavy: HeavyWork,
    directory: OnceLock<Arc<dyn PrincipalDirectory>>,
    row_seal: RowSeal,
    pub(crate) refusals: RefusalBudget,
    in_flight: Arc<InFlightCounts>,
    interests: Interests,
    shutting_down: AtomicBool,
}

/// A handle to the kernel. Clones share it.
#[derive(Clone)]
pub struct Kernel(Arc<Core>);

/// A submission on its way.
pub enum Started {
    /// It ended before anything had to be waited for.
    Done(Box<Settled>),
    /// It goes on in a task of its own, whether or not anybody waits for it.
    Running(tokio::task::JoinHandle<Settled>),
}

impl Kernel {
    pub(crate) fn of(core: &Arc<Core>) -> Self {
        Self(core.clone())
    }

    pub fn new(ports: Ports, limits: Limits, bus: Bus) -> Self {
        Self(Arc::new(Core {
            ledger: Arc::new(Ledger::new(ports.store.clone())),
            versions: Versions::new(ports.store.clone()),
            health: Arc::new(Health::new()),
            breakers: Arc::new(Breakers::new(ports.clock.clone(), bus.clone())),
            registry: Registry::new(),
            lanes: Lanes::new(),
            slots: Slots::new(limits.concurrent_runs),
            action_slots: Mutex::default(),
            heavy: HeavyWork::new(ports.clock.clone(), limits.heavy),
            directory: OnceLock::new(),
            row_seal: RowSeal::default(),
            refusals: RefusalBudget::default(),
            in_flight: Arc::default(),
            interests: Interests::default(),
            shutting_down: AtomicBool::new(false),
            bus,
            ports,
            limits,
        }))
    }

    /// Writes an event about security that no action did into the audit chain. It is durable when this returns.
    pub async fn record_security_event(&self, event: &audit::SecurityEvent) -> Result<(), Fault> {
        let mut batch = Batch::new();
        batch.link(audit::security_event(event, self.0.ports.clock.now_ms()));
        self.0.ports.store.commit(batch).await.map_err(store_fault)
    }

    /// Checks an operation that a face serves without an action, by its row of the access table. A refusal is in the audit
    /// chain when this returns.
    pub async fn authorize_operation(
        &self,
        name: &'static str,
        principal: &Arc<Principal>,
        source: RefusalSource<'_>,
    ) -> Result<(), Fault> {
        let checked = authorize_operation(name, principal);
        if let Err(fault) = &checked {
            self.record_refusal(name, principal, source, fault).await;
        }
        checked
    }

    /// Writes a refusal that a face decided on its own into the audit chain, within the budget of its principal.
    pub async fn record_refusal(
        &self,
        action: &str,
        principal: &Arc<Principal>,
        RefusalSource { transport, source, correlation }: RefusalSource<'_>,
        fault: &Fault,
    ) {
        let call = RefusedCall {
            run: RunId(self.0.ports.ids.fresh(For::Run)),
            action: action.into(),
            object: None,
            principal: principal.clone(),
            transport,
            source,
            correlation: correlation.clone(),
        };
        refusals::record(&self.0, call, fault).await;
    }

    /// Writes a change that no action made into the audit chain, where it cannot be in the commit of the change itself.
    pub async fn record_change(&self, change: &audit::StateChange<'_>) -> Result<(), Fault> {
        let mut batch = Batch::new();
        batch.link(change.link(self.0.ports.clock.now_ms()));
        self.0.ports.store.commit(batch).await.map_err(store_fault)
    }

    /// Begins a submission. What ends at once costs no task; anything else goes on in one, so that nothing that was
    /// accepted is lost when the asker goes away. Needs a tokio runtime around it.
    pub fn start(&self, submission: Submission) -> Started {
        let mut course = Box::pin(pipeline::course(self.0.clone(), Box::new(submission)));
        let mut context = TaskContext::from_waker(Waker::noop());
        match Pin::new(&mut course).poll(&mut context) {
            Poll::Ready(settled) => Started::Done(Box::new(settled)),
            Poll::Pending => Started::Running(tokio::spawn(course)),
        }
    }

    /// Begins a submission and waits for its end.
    pub async fn submit(&self, submission: Submission) -> Settled {
        let (correlation, began_us) = (submission.correlation.clone(), self.0.ports.clock.elapsed_us());
        match self.start(submission) {
            Started::Done(settled) => *settled,
            Started::Running(task) => match task.await {
                Ok(settled) => settled,
                Err(error) => crate::settle::lost(&self.0, correlation, began_us, error),
            },
        }
    }

    /// Settles what an earlier process left in the middle under scopes that begin with this text; see `Ledger::settle_cut_off`.
    pub async fn settle_cut_off(
        &self,
        scopes: &str,
        fault: impl Fn(&CutOff) -> Fault,
    ) -> Result<Vec<CutOff>, Fault> {
        self.0.ledger.settle_cut_off(scopes, fault, self.0.ports.clock.now_ms()).await
    }

    /// How the submission under this identity ended, if it did and is remembered.
    pub async fn outcome_of(
        &self,
        tenant: &Tenant,
        identity: &Identity,
    ) -> Result<Option<Arc<Stored>>, Fault> {
        self.0.ledger.look_up(tenant, identity, self.0.ports.clock.now_ms()).await
    }

    /// Sets the directory that recorded principals are looked up in; once, at start-up.
    pub fn set_directory(&self, directory: Arc<dyn PrincipalDirectory>) {
        // A second one would be a mistake of the program, and the first one stays in force.
        let _ = self.0.directory.set(directory);
    }

    /// Seals rows that grant rights.
    pub fn row_seal(&self) -> &RowSeal {
        &self.0.row_seal
    }

    /// What a recorded principal may do now.
    pub fn standing(&self, tenant: &Tenant, name: &str) -> Standing {
        self.0.standing(tenant, name)
    }

    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub fn bus(&self) -> &Bus {
        &self.0.bus
    }

    pub fn ports(&self) -> &Ports {
        &self.0.ports
    }

    pub fn log(&self) -> &Log {
        &self.0.ports.log
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub fn health(&self) -> &Arc<Health> {
        &self.0.health
    }

    pub fn breakers(&self) -> &Arc<Breakers> {
        &self.0.breakers
    }

    /// Where CPU-bound work over large inputs runs.
    pub fn heavy(&self) -> &HeavyWork {
        &self.0.heavy
    }

    /// What clients want to hear of.
    pub fn interests(&self) -> &Interests {
        &self.0.interests
    }

    /// How many runs hold a slot now.
    pub fn running(&self) -> usize {
        self.0.slots.taken()
    }

    /// A slot for what a run has left running elsewhere, such as a call of another server that was cancelled and has not ended there.
    pub fn slot_for_outliving(&self, principal: &Principal) -> Slot {
        self.0.slots.take_for_outliving(Holder::of(principal))
    }

    /// How many submissions are accepted and have not come to their end, late ones included.
    pub fn in_flight(&self) -> usize {
        self.0.in_flight.total()
    }

    /// Refuses what comes from now on, and waits for what is in flight; false when some of it is still there at the limit.
    pub async fn drain(&self, limit: Duration) -> bool {
        const LOOK_EVERY: Duration = Duration::from_millis(5);
        self.0.shutting_down.store(true, Ordering::Release);
        let clock = &self.0.ports.clock;
        let all_ended = async {
            while self.in_flight() > 0 {
                clock.sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            biased;
            () = all_ended => true,
            () = clock.sleep(limit) => self.in_flight() == 0,
        }
    }
}

impl Core {
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }

    pub(crate) fn standing(&self, tenant: &Tenant, name: &str) -> Standing {
        self.directory.get().map_or(Standing::Unknown, |directory| directory.standing(tenant, name))
    }

    pub(crate) fn count_in(&self, principal: &Principal) -> InFlight {
        self.in_flight.count_in(principal, self.limits.in_flight)
    }

    pub(crate) fn crowded(&self) -> Fault {
        let max = self.limits.in_flight;
        let text = format!("{max} submissions are in flight; send again shortly");
        Fault::new(Code::ResourceExhausted, text).with("reason", "too_many_in_flight")
    }

    pub(crate) fn slots_of(&self, action: &Action, max: usize) -> Slots {
        let mut slots = self.action_slots.lock();
        match slots.get(action.name.as_str()) {
            Some(slots) if slots.max() == max => slots.clone(),
            Some(_) | None => {
                let fresh = Slots::exact(max);
                slots.insert(action.name.as_str().into(), fresh.clone());
                fresh
            }
        }
    }

    pub(crate) fn no_slot(&self, own: Option<&Slots>) -> Fault {
        let (what, max) = match own {
            Some(slots) if slots.taken() >= slots.max() => ("this action", slots.max()),
            Some(_) | None => ("the server", self.slots.max()),
        };
        Fault::new(Code::ResourceExhausted, format!("{what} runs {max} calls at once, and all are taken"))
            .with("reason", "concurrency_limit_exceeded")
            .with("maxConcurrentExecutions", max)
    }

    pub(crate) fn unknown_action(&self, name: &str) -> Fault {
        const SHOWN_CHARACTERS: usize = 128;
        let shown: String = name.chars().take(SHOWN_CHARACTERS).collect();
        Fault::new(Code::NotFound, format!("there is no tool named '{shown}'")).with("name", shown)
    }

    /// Tells listeners what became of a submission; costs next to nothing when there are none.
    pub(crate) fn tell(&self, name: &'static str, admitted: &Admitted, more: impl FnOnce() -> Option<Value>) {
        if !self.bus.has_listeners(name) {
            return;
        }
        let submission = &admitted.submission;
        let data = json!({
            "action": admitted.action.name, "runId": admitted.run, "correlationId": submission.correlation,
            "id": submission.id, "lane": submission.lane, "principal": &*submission.principal.name, "end": more(),
        });
        self.bus.publish(Event {
            name,
            subject: submission.principal.tenant.as_str().into(),
            priority: Priority::Critical,
            at_ms: self.ports.clock.now_ms(),
            data: Arc::new(data),
        });
    }
}
