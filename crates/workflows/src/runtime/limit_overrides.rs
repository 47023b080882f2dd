//! Limits that an admin changes while the server runs: durable, and in effect at once. The setting holds where there is none.

use std::collections::HashMap;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;

use super::remote_limits::RemoteKey;
use super::{Hub, fault, tables};
use crate::agents::WorkLocation;
use crate::limits;

/// What is limited.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LimitSubject {
    /// The attempts that are with a remote agent or the workers of a queue at once.
    Remote(RemoteKey),
    /// The steps of a tenant that this process works on at once.
    StepSlots(Tenant),
    /// The executions of a tenant that run or wait for their turn.
    Executions(Tenant),
    /// The executions that a tenant starts in a minute.
    StartsPerMinute(Tenant),
}

/// The limits that were changed, and the starts that count against a rate.
#[derive(Default)]
pub struct LimitOverrides {
    values: Mutex<HashMap<LimitSubject, usize>>,
    /// For each tenant with a rate, when its allowance is full again (generic cell rate algorithm, in microseconds).
    full_at_us: Mutex<HashMap<Tenant, i64>>,
}

impl LimitOverrides {
    pub fn get(&self, subject: &LimitSubject) -> Option<usize> {
        self.values.lock().get(subject).copied()
    }

    fn put(&self, subject: LimitSubject, value: Option<usize>) {
        let mut values = self.values.lock();
        match value {
            Some(value) => values.insert(subject, value),
            None => values.remove(&subject),
        };
    }

    /// Counts a start of a tenant, or refuses it if its rate is used up.
    pub fn count_start(&self, tenant: &Tenant, now_ms: i64) -> Result<(), Fault> {
        let Some(limit) = self.get(&LimitSubject::StartsPerMinute(tenant.clone())) else { return Ok(()) };
        const MINUTE_US: i64 = 60_000_000;
        let now_us = now_ms.saturating_mul(1000);
        let each_us = MINUTE_US / i64::try_from(limit).unwrap_or(i64::MAX).max(1);
        let mut full_at_us = self.full_at_us.lock();
        let full_at = full_at_us.entry(tenant.clone()).or_insert(now_us);
        let next = (*full_at).max(now_us).saturating_add(each_us);
        if next - now_us > MINUTE_US {
            let wait_ms = (next - now_us - MINUTE_US) / 1000 + 1;
            let text = format!("this tenant starts {limit} executions in a minute at most; send again later");
            return Err(Fault::new(Code::ResourceExhausted, text)
                .with("reason", "tenant_rate")
                .with("limit", limit)
                .with("retryAfterMs", wait_ms));
        }
        *full_at = next;
        Ok(())
    }
}

/// A limit as it can be changed: what it is, the value of its setting, and the most it can be set to.
pub struct ChangeableLimit {
    pub subject: LimitSubject,
    /// None: there is no limit without a change.
    pub setting: Option<usize>,
    pub maximum: usize,
}

/// The limits of a tenant, by name.
pub const TENANT_LIMITS: [&str; 3] = ["executions", "startsPerMinute", "stepSlots"];

impl Hub {
    /// The limit that a scope and a name mean for a tenant.
    pub fn changeable_limit(
        &self,
        tenant: &Tenant,
        scope: &str,
        name: &str,
    ) -> Result<ChangeableLimit, Fault> {
        let settings = &self.0.settings;
        match (scope, name) {
            ("tenant", "executions") => Ok(ChangeableLimit {
                subject: LimitSubject::Executions(tenant.clone()),
                setting: Some(settings.executions_per_tenant),
                maximum: settings.executions_per_tenant,
            }),
            ("tenant", "stepSlots") => Ok(ChangeableLimit {
                subject: LimitSubject::StepSlots(tenant.clone()),
                setting: Some(settings.running_steps),
                maximum: settings.running_steps,
            }),
            ("tenant", "startsPerMinute") => Ok(ChangeableLimit {
                subject: LimitSubject::StartsPerMinute(tenant.clone()),
                setting: None,
                maximum: limits::STARTS_PER_MINUTE,
            }),
            ("tenant", _) => {
                Err(unknown(format!("a tenant has no limit '{name}'; it has {}", TENANT_LIMITS.join(", "))))
            }
            ("agent", name) if name.starts_with("@worker/") => Err(Fault::invalid(
                "/name: a worker queue has the scope queue, and the name without @worker/",
            )
            .with("path", "/name")),
            ("queue", queue) => self.remote_limit(tenant, &format!("@worker/{queue}")),
            (_, agent) => self.remote_limit(tenant, agent),
        }
    }

    fn remote_limit(&self, tenant: &Tenant, agent: &str) -> Result<ChangeableLimit, Fault> {
        match self.0.agents.find(agent).map(|found| found.location()) {
            None => Err(unknown(format!("there is no agent '{agent}'"))),
            Some(WorkLocation::ThisProcess) => Err(Fault::invalid(format!(
                "/name: '{agent}' works in this process: it takes step slots and has no limit of its own"
            ))
            .with("path", "/name")),
            Some(WorkLocation::Remote { limit, is_per_tenant }) => {
                let key = RemoteKey { agent: agent.into(), tenant: is_per_tenant.then(|| tenant.clone()) };
                // Those of a tenant are kept small so that others find room; those of an agent are the operator's own.
                let maximum = if is_per_tenant { limit } else { limits::REMOTE_AGENT_CALLS_MAX };
                Ok(ChangeableLimit { subject: LimitSubject::Remote(key), setting: Some(limit), maximum })
            }
        }
    }

    /// Puts a limit into effect; without a value, that of the setting.
    pub fn apply_limit(&self, limit: &ChangeableLimit, value: Option<usize>) {
        let shared = &self.0;
        let value = value.map(|value| value.clamp(1, limit.maximum));
        shared.limit_overrides.put(limit.subject.clone(), value);
        match &limit.subject {
            LimitSubject::Remote(key) => {
                if let Some(holds) = value.or(limit.setting) {
                    shared.remote_limits.change(key, holds);
                }
            }
            LimitSubject::StepSlots(tenant) => shared.scheduler.limit_tenant(tenant, value),
            LimitSubject::Executions(_) | LimitSubject::StartsPerMinute(_) => {}
        }
    }

    pub fn limit_override(&self, subject: &LimitSubject) -> Option<usize> {
        self.0.limit_overrides.get(subject)
    }
}

fn unknown(text: String) -> Fault {
    Fault::new(Code::NotFound, text)
}

/// Puts the limits into effect that were changed before this start. One whose agent is gone waits for it.
pub async fn restore(hub: &Hub) -> Result<(), Fault> {
    let rows = hub.0.ports.store.query(tables::limit_overrides_all()).await.map_err(fault)?;
    for row in &rows {
        let (scope, name) = (row.text(1).map_err(fault)?, row.text(2).map_err(fault)?);
        let value = usize::try_from(row.int(3).map_err(fault)?).unwrap_or(1);
        let Ok(tenant) = Tenant::parse(row.text(0).map_err(fault)?) else { continue };
        if let Ok(limit) = hub.changeable_limit(&tenant, scope, name) {
            hub.apply_limit(&limit, Some(value));
        }
    }
    Ok(())
}

/// The limit of the executions of a tenant.
pub fn executions_of(hub: &Hub, tenant: &Tenant) -> usize {
    let set = hub.limit_override(&LimitSubject::Executions(tenant.clone()));
    set.unwrap_or(hub.0.settings.executions_per_tenant)
}

/// The limit of a remote party, whose setting is given.
pub fn remote_of(hub: &Hub, key: &RemoteKey, setting: usize) -> usize {
    hub.limit_override(&LimitSubject::Remote(key.clone())).unwrap_or(setting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lets_its_number_through_and_refills_evenly() {
        let overrides = LimitOverrides::default();
        let (acme, rival) = (Tenant::parse("acme").unwrap(), Tenant::parse("rival").unwrap());
        overrides.put(LimitSubject::StartsPerMinute(acme.clone()), Some(3));
        let start = |now_ms| overrides.count_start(&acme, now_ms);
        for _ in 0..3 {
            start(0).unwrap();
        }
        let refused = start(0).unwrap_err();
        assert_eq!(refused.code, Code::ResourceExhausted);
        overrides.count_start(&rival, 0).unwrap();
        assert!(start(19_000).is_err(), "a third of a minute gives one back");
        start(20_000).unwrap();
        assert!(start(20_000).is_err());
        for _ in 0..3 {
            start(200_000).unwrap();
        }
        assert!(start(200_000).is_err(), "what was not used is not saved up");
        overrides.put(LimitSubject::StartsPerMinute(acme.clone()), None);
        start(200_000).unwrap();
    }
}
