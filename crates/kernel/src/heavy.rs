//! CPU-bound work off the async workers: reading large JSON, checking large definitions, pure steps with large inputs. It runs on few
//! threads, in turns by tenant, within a budget of time and memory for each tenant and principal, so that one caller's work costs
//! others a turn and never the server.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::ports::Clock;
use crate::submission::Principal;

/// Smaller work runs where it is asked for: handing it over would cost more than it takes.
pub const INLINE_BYTES: usize = 65_536;

/// The span over which time is counted.
const SPAN_US: u64 = 60_000_000;

/// What one principal may use of its tenant's time, in tenths: others of the tenant find some left.
const PRINCIPAL_TENTHS: u64 = 8;

/// Work that waits for its turn, of one tenant. Its memory is bounded too; this bounds what costs none.
const WAITING: usize = 1_000;

/// How often work that must be done in the end asks whether its budget has room again.
const AGAIN_MS: u64 = 250;

/// Accounts of tenants with nothing to remember are dropped beyond this many.
const ACCOUNTS: usize = 1_024;

/// The bounds of heavy work.
#[derive(Debug, Clone, Copy)]
pub struct HeavyLimits {
    /// Threads that do it.
    pub workers: usize,
    /// Thread time of one tenant in a minute; 0 for any.
    pub ms_per_minute: u64,
    /// Input that one tenant may have waiting and under way.
    pub bytes_per_tenant: usize,
}

impl Default for HeavyLimits {
    fn default() -> Self {
        Self { workers: 1, ms_per_minute: 30_000, bytes_per_tenant: 33_554_432 }
    }
}

/// A handle to the threads for heavy work. Clones share them.
#[derive(Clone)]
pub struct HeavyWork(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    limits: HeavyLimits,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    running: usize,
    /// Tenants with work that waits, in the order of their turns.
    order: VecDeque<Tenant>,
    accounts: HashMap<Tenant, Account>,
}

#[derive(Default)]
struct Account {
    waiting: VecDeque<oneshot::Sender<Turn>>,
    /// Input that waits and is worked on.
    bytes: usize,
    spent: Spent,
    principals: HashMap<Arc<str>, Spent>,
}

/// Time that was used, which is forgotten evenly over a minute.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    us: u64,
    at_us: u64,
}

impl Spent {
    /// What is left of it now, if so much is forgotten in a minute.
    fn now(&mut self, now_us: u64, per_minute_us: u64) -> u64 {
        let passed_us = now_us.saturating_sub(self.at_us).min(SPAN_US);
        let forgotten = u128::from(passed_us) * u128::from(per_minute_us) / u128::from(SPAN_US);
        *self =
            Self { us: self.us.saturating_sub(u64::try_from(forgotten).unwrap_or(u64::MAX)), at_us: now_us };
        self.us
    }
}

/// What the budget of time means for a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Budget {
    /// Without any left it is refused.
    Binding,
    /// It is charged all the same, and others of the tenant wait for it. What asks for it is bounded where it is: one for an execution.
    Counted,
}

/// A thread to work on. Dropped, it goes to the next tenant.
struct Turn(Option<Arc<Shared>>);

/// The turn of one piece of work, which has a thread and is within its budgets. Dropped, it gives both back.
pub struct HeavyTurn {
    charge: Charge,
    turn: Turn,
}

impl HeavyTurn {
    /// Does the work on the thread, and charges the time that it takes.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
        let Self { mut charge, turn } = self;
        let done = tokio::task::spawn_blocking(move || {
            charge.began_us = Some(charge.shared.clock.elapsed_us());
            let result = work();
            drop((charge, turn));
            result
        });
        done.await.map_err(|error| Fault::internal("heavy work broke down").because(error))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.lines.lock().running -= 1;
            shared.hand_out();
        }
    }
}

/// The memory and time of one piece of work, given back and charged at its end.
struct Charge {
    shared: Arc<Shared>,
    tenant: Tenant,
    principal: Arc<str>,
    bytes: usize,
    began_us: Option<u64>,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let now_us = self.shared.clock.elapsed_us();
        let used_us = self.began_us.map_or(0, |began_us| now_us.saturating_sub(began_us));
        let (own, rate) = (self.principal.clone(), self.shared.per_minute_us());
        let mut lines = self.shared.lines.lock();
        let account = lines.accounts.entry(self.tenant.clone()).or_default();
        account.bytes = account.bytes.saturating_sub(self.bytes);
        if used_us > 0 && rate > 0 {
            let spent = [(&mut account.spent, rate)];
            let of_principal = account.principals.entry(own).or_default();
            for (spent, rate) in spent.into_iter().chain([(of_principal, rate * PRINCIPAL_TENTHS / 10)]) {
                spent.now(now_us, rate);
                spent.us += used_us;
            }
        }
        lines.prune(now_us, rate);
    }
}

impl HeavyWork {
    pub fn new(clock: Arc<dyn Clock>, limits: HeavyLimits) -> Self {
        let limits = HeavyLimits { workers: limits.workers.max(1), ..limits };
        Self(Arc::new(Shared { clock, limits, lines: Mutex::default() }))
    }

    /// Runs work over an input of this size: here if it is small, else on a thread for it when its tenant's turn comes. Refused if
    /// the tenant or principal has used up its time, or has too much waiting already.
    pub async fn run<T: Send + 'static>(
        &self,
        principal: &Principal,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        if bytes < INLINE_BYTES {
            return Ok(work());
        }
        self.reserve(principal, bytes).await?.run(work).await
    }

    /// Waits for a turn for work that is heavy whatever the size of its input. Refused as `run` is; what the work needs stays with the
    /// caller until it has the turn.
    pub async fn reserve(&self, principal: &Principal, bytes: usize) -> Result<HeavyTurn, Fault> {
        let charge = self.admit(principal, bytes, Budget::Binding)?;
        let turn = self.turn(&principal.tenant).await?;
        Ok(HeavyTurn { charge, turn })
    }

    /// The same for work that a cancellation or a start of the server waits for: it takes its turn and counts, also beyond the budget.
    pub async fn reserve_beyond_budget(&self, principal: &Principal) -> Result<HeavyTurn, Fault> {
        let charge = self.admit(principal, 0, Budget::Counted)?;
        let turn = self.turn(&principal.tenant).await?;
        Ok(HeavyTurn { charge, turn })
    }

    /// The same for work that must be done in the end: it waits until the budget has room for it again.
    pub async fn reserve_patiently(&self, principal: &Principal, bytes: usize) -> Result<HeavyTurn, Fault> {
        loop {
            match self.reserve(principal, bytes).await {
                Ok(turn) => return Ok(turn),
                Err(fault) if fault.code == Code::ResourceExhausted => {
                    self.0.clock.sleep(Duration::from_millis(AGAIN_MS)).await;
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    fn admit(&self, principal: &Principal, bytes: usize, budget: Budget) -> Result<Charge, Fault> {
        let shared = &self.0;
        let (now_us, rate) = (shared.clock.elapsed_us(), shared.per_minute_us());
        let mut lines = shared.lines.lock();
        let account = lines.accounts.entry(principal.tenant.clone()).or_default();
        if rate > 0 && budget == Budget::Binding {
            let own_rate = rate * PRINCIPAL_TENTHS / 10;
            let own = account.principals.get_mut(&principal.name).map_or(0, |own| own.now(now_us, own_rate));
            let over = account.spent.now(now_us, rate).saturating_sub(rate).max(own.saturating_sub(own_rate));
            let is_spent = account.spent.us >= rate || own >= own_rate;
            if is_spent {
                let wait_ms =
                    (u128::from(over.max(1)) * u128::from(SPAN_US) / u128::from(rate) / 1000).max(1000);
                return Err(shared.out_of_time(wait_ms));
            }
        }
        let is_crowded = account.waiting.len() >= WAITING && budget == Budget::Binding;
        if account.bytes + bytes > shared.limits.bytes_per_tenant || is_crowded {
            return Err(shared.out_of_memory());
        }
        account.bytes += bytes;
        let (tenant, principal) = (principal.tenant.clone(), principal.name.clone());
        Ok(Charge { shared: shared.clone(), tenant, principal, bytes, began_us: None })
    }

    /// A thread: at once if one is free and no one waits, else in turns by tenant.
    async fn turn(&self, tenant: &Tenant) -> Result<Turn, Fault> {
        let receiver = {
            let mut lines = self.0.lines.lock();
            if lines.running < self.0.limits.workers && lines.order.is_empty() {
                lines.running += 1;
                return Ok(Turn(Some(self.0.clone())));
            }
            let (sender, receiver) = oneshot::channel();
            let waiting = &mut lines.accounts.entry(tenant.clone()).or_default().waiting;
            waiting.push_back(sender);
            if waiting.len() == 1 {
                lines.order.push_back(tenant.clone());
            }
            receiver
        };
        self.0.hand_out();
        receiver.await.map_err(|_| Fault::internal("a turn was lost"))
    }
}

impl Shared {
    fn per_minute_us(&self) -> u64 {
        self.limits.ms_per_minute.saturating_mul(1000)
    }

    /// Assigns free threads to the next jobs in line.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let sender = {
                let mut lines = self.lines.lock();
                if lines.running >= self.limits.workers {
                    return;
                }
                let Some(sender) = lines.next() else { return };
                lines.running += 1;
                sender
            };
            // A job that is no longer awaited returns its thread; the next job gets it in the next round.
            if let Err(mut turn) = sender.send(Turn(Some(self.clone()))) {
                turn.0 = None;
                self.lines.lock().running -= 1;
            }
        }
    }

    fn out_of_time(&self, wait_ms: u128) -> Fault {
        let limit = self.limits.ms_per_minute;
        Fault::new(
            Code::ResourceExhausted,
            format!("the {limit} ms of CPU time a minute for large inputs are used up"),
        )
        .with("reason", "cpu_quota")
        .with("msPerMinute", limit)
        .with("retryAfterMs", u64::try_from(wait_ms).unwrap_or(u64::MAX))
    }

    fn out_of_memory(&self) -> Fault {
        let limit = self.limits.bytes_per_tenant;
        Fault::new(Code::ResourceExhausted, "too much is being worked on for this tenant; send again later")
            .with("reason", "memory_quota")
            .with("bytesPerTenant", limit)
    }
}

impl Lines {
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let tenant = self.order.pop_front()?;
        let waiting = &mut self.accounts.get_mut(&tenant)?.waiting;
        let sender = waiting.pop_front();
        if !waiting.is_empty() {
            self.order.push_back(tenant);
        }
        sender
    }

    /// Drops what need not be remembered, once there is much.
    fn prune(&mut self, now_us: u64, rate: u64) {
        for account in self.accounts.values_mut().filter(|account| account.principals.len() > ACCOUNTS) {
            account.principals.retain(|_, spent| spent.now(now_us, rate * PRINCIPAL_TENTHS / 10) > 0);
        }
        if self.accounts.len() > ACCOUNTS {
            self.accounts.retain(|_, account| {
                account.bytes > 0 || !account.waiting.is_empty() || account.spent.now(now_us, rate) > 0
            });
        }
    }
}

#[cfg(test)]
mod tests;
