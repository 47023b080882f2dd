//! `retry(breaker(timeout(work)))`, exactly in that order (ADR-014, ADR-018, WF-19.1).
//!
//! What is decided is decided by plain functions of the state and the time: `retry` whether and when to try again,
//! `budget` how long, `breaker` whether to try at all. This file only drives them.
//!
//! An attempt that runs out of time has its token cancelled and its future dropped. That is right for what is called here:
//! work that is safe to drop at any await, or that goes on in a task of its own and only reports back. Work that must not be
//! cut off says so by detaching, and looks at the token.

pub mod breaker;
pub mod budget;
mod registry;
pub mod retry;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::time::Duration;

use orchestr8_contract::{Code, Fault};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::ports::{Clock, Random};
use budget::Budget;
pub use registry::{Breakers, Kept, Pass, Snapshot};
use retry::{Again, Jitter};

/// How hard to try. The defaults are the seed's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Resilience {
    /// The first attempt included; zero counts as one.
    pub max_attempts: u32,
    pub base_delay_ms: u64,
    pub max_delay_ms: u64,
    /// For all attempts and the waits between them.
    pub total_budget_ms: u64,
    /// For one attempt.
    pub timeout_ms: u64,
    pub jitter: Jitter,
    /// None: no breaker.
    pub breaker: Option<breaker::Policy>,
}

impl Default for Resilience {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            base_delay_ms: 1000,
            max_delay_ms: 30_000,
            total_budget_ms: 90_000,
            timeout_ms: 30_000,
            jitter: Jitter::Full,
            breaker: Some(breaker::Policy::default()),
        }
    }
}

/// One try.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Counted from one.
    pub number: u32,
    /// Fires when the whole is cancelled or this attempt is out of time.
    pub cancel: CancellationToken,
}

/// Runs the work under the policy. `key` names the breaker, see `breaker::key`.
///
/// The answer is the work's own success or last fault; TIMEOUT for an attempt that took too long; CIRCUIT_OPEN at once
/// when the breaker is open; CANCELLED at once when the token fires, past all layers.
pub async fn run<T, W>(
    policy: &Resilience,
    key: &str,
    mut work: impl FnMut(Attempt) -> W,
    cancel: &CancellationToken,
    breakers: &Breakers,
    clock: &dyn Clock,
    random: &dyn Random,
) -> Result<T, Fault>
where
    W: Future<Output = Result<T, Fault>>,
{
    let budget = Budget::begin(policy.total_budget_ms, clock.elapsed_us());
    let mut number = 1;
    loop {
        if cancel.is_cancelled() {
            return Err(cancelled(number - 1));
        }
        let timeout_ms = policy.timeout_ms.min(budget.remaining_ms(clock.elapsed_us()));
        let attempt = Attempt { number, cancel: cancel.child_token() };
        let attempted = timed(attempt, timeout_ms, &mut work, clock);
        let (result, _) = behind_breaker(policy.breaker, key, breakers, attempted).await;
        let fault = match result {
            Ok(done) => return Ok(done),
            Err(fault) => fault,
        };
        let remaining_ms = budget.remaining_ms(clock.elapsed_us());
        let wait_ms = match retry::decide(policy, number, remaining_ms, &fault, random.unit()) {
            Again::After { wait_ms } => wait_ms,
            Again::No => return Err(counted(fault, number)),
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled(number)),
            () = clock.sleep(Duration::from_millis(wait_ms)) => {}
        }
        if budget.remaining_ms(clock.elapsed_us()) == 0 {
            // Woken late: there is no time left to try in.
            return Err(counted(fault, number));
        }
        number += 1;
    }
}

/// One attempt behind its breaker, and whether its end opened or closed that. An attempt that is refused is not begun. For callers
/// that keep the waits between attempts themselves.
pub async fn behind_breaker<T>(
    policy: Option<breaker::Policy>,
    key: &str,
    breakers: &Breakers,
    attempt: impl Future<Output = Result<T, Fault>>,
) -> (Result<T, Fault>, Option<breaker::Change>) {
    let Some(policy) = policy else { return (attempt.await, None) };
    // Dropped without a word, for example with this future, the pass gives its place back.
    let pass = match breakers.admit(key, policy) {
        Ok(pass) => pass,
        Err(open) => return (Err(open), None),
    };
    let result = attempt.await;
    let change = match &result {
        Ok(_) => pass.succeeded(),
        Err(fault) if retry::counts(fault) => pass.failed(),
        Err(_) => None,
    };
    (result, change)
}

/// One attempt within its time.
async fn timed<T, W>(
    attempt: Attempt,
    timeout_ms: u64,
    work: &mut impl FnMut(Attempt) -> W,
    clock: &dyn Clock,
) -> Result<T, Fault>
where
    W: Future<Output = Result<T, Fault>>,
{
    let number = attempt.number;
    let token = attempt.cancel.clone();
    let working = work(attempt);
    tokio::select! {
        biased;
        // Asked before the work: whoever cancels gets no result any more, not even one that is just ready.
        () = token.cancelled() => Err(cancelled(number)),
        result = working => result,
        () = clock.sleep(Duration::from_millis(timeout_ms)) => {
            token.cancel();
            Err(Fault::new(Code::Timeout, format!("the attempt took longer than {timeout_ms} ms"))
                .with("timeoutMs", timeout_ms))
        }
    }
}

/// Says how often it was tried, if more than once.
fn counted(fault: Fault, attempts: u32) -> Fault {
    if attempts > 1 { fault.with("attempts", attempts) } else { fault }
}

fn cancelled(attempts: u32) -> Fault {
    Fault::new(Code::Cancelled, "it was cancelled").with("attempts", attempts)
}
