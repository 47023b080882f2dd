//! How hard steps try: what a step says, over what the workflow says, over the seed's defaults (WF-19.1).

use orchestr8_kernel::resilience::Resilience;
use orchestr8_kernel::resilience::breaker::Policy;
use orchestr8_kernel::resilience::retry::Jitter;
use serde_json::Value;

use super::fields::Fields;
use super::limits;

/// What somebody said; the rest stays as it was.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Wish {
    timeout_ms: Option<u64>,
    max_attempts: Option<u32>,
    base_delay_ms: Option<u64>,
    max_delay_ms: Option<u64>,
    total_budget_ms: Option<u64>,
    jitter: Option<Jitter>,
    breaker: Breaker,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Breaker {
    #[default]
    Unsaid,
    Off,
    On {
        failure_threshold: Option<u32>,
        open_duration_ms: Option<u64>,
    },
}

pub(super) const RETRY: &[&str] = &["maxAttempts", "baseDelayMs", "maxDelayMs", "totalBudgetMs", "jitter"];
pub(super) const BREAKER: &[&str] = &["failureThreshold", "openDurationMs"];
pub(super) const RESILIENCE: &[&str] = &[
    "timeout",
    "timeoutMs",
    "retry",
    "maxAttempts",
    "baseDelayMs",
    "maxDelayMs",
    "totalBudgetMs",
    "jitter",
    "circuitBreaker",
    "failureThreshold",
    "openDurationMs",
];

impl Wish {
    /// `timeout`, `retry` and `circuitBreaker`, as the policies of a canonical step have them.
    pub fn of_step_policies(fields: &Fields<'_>) -> Self {
        let mut wish = Self::of_workflow_policies(fields);
        wish.timeout_ms = timeout(fields, "timeout");
        wish
    }

    /// `retry` and `circuitBreaker`: what a workflow says for all its steps.
    pub fn of_workflow_policies(fields: &Fields<'_>) -> Self {
        let mut wish = Self::default();
        if let Some(retry) = fields.object("retry", RETRY) {
            wish.take_retry(&retry);
        }
        wish.breaker = breaker(fields);
        wish
    }

    /// `timeout`, `maxRetries` and `resilience` of a step in the engine form. `resilience` takes the flat names of the seed
    /// and the groups of the canonical form.
    pub fn of_engine_step(fields: &Fields<'_>) -> Self {
        let mut wish = Self::default();
        if let Some(resilience) = fields.object("resilience", RESILIENCE) {
            wish = Self::of_step_policies(&resilience);
            resilience.only_one("timeout", "timeoutMs");
            wish.timeout_ms = timeout(&resilience, "timeoutMs").or(wish.timeout_ms);
            for name in RETRY {
                resilience.only_one("retry", name);
            }
            for name in BREAKER {
                resilience.only_one("circuitBreaker", name);
            }
            if !resilience.has("retry") {
                wish.take_retry(&resilience);
            }
            if BREAKER.iter().any(|name| resilience.has(name)) {
                wish.breaker = breaker_limits(&resilience);
            }
            said_twice(fields, &resilience);
        }
        wish.timeout_ms = timeout(fields, "timeout").or(wish.timeout_ms);
        let retries = fields.whole("maxRetries", 0..=u64::from(limits::ATTEMPTS - 1));
        wish.max_attempts = retries.map(|retries| attempts(retries + 1)).or(wish.max_attempts);
        wish
    }

    /// The wish over what holds without it.
    pub fn over(&self, base: &Resilience) -> Resilience {
        let timeout_ms = self.timeout_ms.unwrap_or(base.timeout_ms);
        Resilience {
            max_attempts: self.max_attempts.unwrap_or(base.max_attempts),
            base_delay_ms: self.base_delay_ms.unwrap_or(base.base_delay_ms),
            max_delay_ms: self.max_delay_ms.unwrap_or(base.max_delay_ms),
            // Who asks for a long attempt means it: one whole attempt always fits, unless a budget is given too.
            total_budget_ms: self.total_budget_ms.unwrap_or(base.total_budget_ms.max(timeout_ms)),
            timeout_ms,
            jitter: self.jitter.unwrap_or(base.jitter),
            breaker: match self.breaker {
                Breaker::Unsaid => base.breaker,
                Breaker::Off => None,
                Breaker::On { failure_threshold, open_duration_ms } => {
                    let base = base.breaker.unwrap_or_default();
                    Some(Policy {
                        failure_threshold: failure_threshold.unwrap_or(base.failure_threshold),
                        open_duration_ms: open_duration_ms.unwrap_or(base.open_duration_ms),
                    })
                }
            },
        }
    }

    fn take_retry(&mut self, fields: &Fields<'_>) {
        self.max_attempts = fields.whole("maxAttempts", 1..=u64::from(limits::ATTEMPTS)).map(attempts);
        self.base_delay_ms = fields.ms("baseDelayMs", 0);
        self.max_delay_ms = fields.ms("maxDelayMs", 0);
        self.total_budget_ms = fields.ms("totalBudgetMs", 1);
        self.jitter = fields.choice("jitter", &[("full", Jitter::Full), ("equal", Jitter::Equal)]);
    }
}

pub(super) fn timeout(fields: &Fields<'_>, name: &str) -> Option<u64> {
    fields.ms(name, 1)
}

fn said_twice(step: &Fields<'_>, resilience: &Fields<'_>) {
    let says = |names: &[&str]| names.iter().any(|name| resilience.has(name));
    if step.has("timeout") && says(&["timeout", "timeoutMs"]) {
        step.wrong("timeout", "resilience says this already", "Keep one of timeout and resilience.timeout.");
    }
    let has_attempts = says(&["maxAttempts"])
        || resilience.get("retry").is_some_and(|retry| retry.get("maxAttempts").is_some());
    if step.has("maxRetries") && has_attempts {
        step.wrong("maxRetries", "resilience says this already", "Keep one of maxRetries and maxAttempts.");
    }
}

fn breaker(fields: &Fields<'_>) -> Breaker {
    match fields.get("circuitBreaker") {
        None => Breaker::Unsaid,
        Some(Value::Bool(false)) => Breaker::Off,
        Some(Value::Object(_)) => match fields.object("circuitBreaker", BREAKER) {
            Some(limits) => breaker_limits(&limits),
            None => Breaker::Unsaid,
        },
        Some(other) => {
            fields.out_of_range("circuitBreaker", "an object, or false for none", other);
            Breaker::Unsaid
        }
    }
}

fn breaker_limits(fields: &Fields<'_>) -> Breaker {
    Breaker::On {
        failure_threshold: fields.whole("failureThreshold", 1..=u64::from(u32::MAX)).map(attempts),
        open_duration_ms: fields.ms("openDurationMs", 1),
    }
}

fn attempts(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
