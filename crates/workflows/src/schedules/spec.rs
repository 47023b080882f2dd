//! What a schedule says: which workflow it starts, when and on whose behalf.

use std::str::FromStr;

use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Fault, RoleSet};
use orchestr8_kernel::Principal;
use orchestr8_kernel::grant::TokenGrant;
use orchestr8_kernel::tool_limit::ToolLimit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tags::ExecutionTags;

/// What to do when the execution before has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// Leave this time out.
    #[default]
    Skip,
    /// Start when the one before has ended, each time in its order.
    Queue,
    /// Cancel the one before, and leave out times that wait.
    Cancel,
    /// Start beside it.
    Allow,
}

/// What to do about times that were missed while the server was down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backfill {
    None,
    /// Start once for all of them: for the last one.
    #[default]
    One,
    /// Start once for each of them, in their order.
    All,
}

/// What a schedule says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    pub workflow_id: String,
    pub cron: String,
    #[serde(default = "utc")]
    pub time_zone: String,
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// The tags of what it starts.
    #[serde(default, skip_serializing_if = "ExecutionTags::is_empty")]
    pub tags: ExecutionTags,
    #[serde(default)]
    pub overlap: Overlap,
    #[serde(default)]
    pub backfill: Backfill,
    /// The revision of the workflow that it starts; none in schedules of earlier versions, which start the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Its author, on whose behalf it starts.
    #[serde(default)]
    pub principal: String,
    #[serde(default)]
    pub roles: RoleSet,
    /// The scope of the API token that stored it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// The tools that what it starts may use, if those of its author are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolLimit>,
}

fn utc() -> String {
    String::from("UTC")
}

impl Spec {
    /// Records on whose behalf it starts, and with which rights.
    pub fn set_author(&mut self, principal: &Principal) {
        self.principal = principal.name.to_string();
        self.roles = principal.roles;
        self.scope = principal.scope_entries();
        self.tools = principal.tools.clone();
    }

    pub(super) fn author(&self, tenant: Tenant) -> Principal {
        let grant = TokenGrant::recorded(&self.principal, tenant.clone(), &self.scope);
        Principal::new(self.principal.as_str(), tenant, self.roles)
            .granted(grant)
            .limited(self.tools.as_ref())
    }

    /// Refuses what would never start.
    pub fn check(&self, now_ms: i64) -> Result<(), Fault> {
        match self.next_after(now_ms)? {
            Some(_) => Ok(()),
            None => Err(Fault::invalid(format!("/cron: '{}' never comes", self.cron))
                .with("path", "/cron")
                .with("hint", "no day matches all of its fields, such as 31 February")),
        }
    }

    /// The times it names.
    pub fn moments(&self) -> Result<Moments, Fault> {
        let cron = Cron::from_str(&self.cron).map_err(|error| {
            Fault::invalid(format!("/cron: '{}' is no cron expression: {error}", self.cron))
                .with("path", "/cron")
                .with("hint", "five fields: minute hour day month weekday, for example 0 8 * * 1-5")
        })?;
        let zone = TimeZone::get(&self.time_zone).map_err(|_| {
            Fault::invalid(format!("/timeZone: '{}' is no time zone", self.time_zone))
                .with("path", "/timeZone")
                .with("hint", "a name such as UTC or Europe/Zurich")
        })?;
        Ok(Moments { cron, zone })
    }

    /// The first time after this one.
    pub fn next_after(&self, after_ms: i64) -> Result<Option<i64>, Fault> {
        Ok(self.moments()?.next_after(after_ms))
    }
}

/// The times that a cron expression names. Times that a change of clocks leaves out run after it; doubled ones run once.
pub struct Moments {
    cron: Cron,
    zone: TimeZone,
}

impl Moments {
    pub fn next_after(&self, after_ms: i64) -> Option<i64> {
        let after = Timestamp::from_millisecond(after_ms).ok()?.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&after, false).ok()?;
        Some(next.timestamp().as_millisecond())
    }

    /// From this one on, those before the end, so many at most.
    pub fn between(&self, first_ms: Option<i64>, end_ms: i64, limit: usize) -> Vec<i64> {
        let within = |moment_ms: &i64| *moment_ms < end_ms;
        let after = |moment_ms: &i64| self.next_after(*moment_ms).filter(within);
        std::iter::successors(first_ms.filter(within), after).take(limit).collect()
    }

    /// The newest of those from the first one to the end, in their order. Looks back from the end, further each time, since
    /// there may be millions of them.
    pub fn newest(&self, first_ms: i64, end_ms: i64, count: usize) -> Vec<i64> {
        if count == 0 || first_ms >= end_ms {
            return Vec::new();
        }
        let mut back_ms = 1000;
        loop {
            let start_ms = end_ms.saturating_sub(back_ms).max(first_ms);
            let start = if start_ms == first_ms { Some(first_ms) } else { self.next_after(start_ms - 1) };
            let found = self.between(start, end_ms, LISTED);
            if found.len() >= count || start_ms == first_ms {
                return found[found.len().saturating_sub(count)..].to_vec();
            }
            back_ms = back_ms.saturating_mul(2);
        }
    }
}

/// Times listed at once while the newest are looked for: a day of seconds.
const LISTED: usize = 86_400;
