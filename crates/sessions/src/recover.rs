//! What a start finds: sessions as they were, messages that waited, and commands that were cut off in the middle.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ledger::{CutOff, store_fault};
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::record::Header;
use crate::session::Session;
use crate::tables::{self, Whose};

/// Ids and keys of session commands live in scopes that begin so.
pub const SCOPES: &str = "session-";

/// What is said of a command that was cut off, to whoever repeats it.
pub const REASON: &str =
    "Command did not finish before previous shutdown and was marked failed during recovery";

/// So many commands are named to clients; the rest is only counted.
const NAMED: usize = 100;

/// Sessions read from the store at once.
const PAGE: i64 = 500;

/// What the last start found.
#[derive(Debug, Clone, Default)]
pub struct Recovery {
    pub done: bool,
    pub sessions: usize,
    pub queued: usize,
    pub cut_off: Vec<CutOff>,
}

impl Hub {
    /// Takes up what was there before. Once, before the first command.
    pub async fn start(&self) -> Result<(), Fault> {
        let fault = |_: &CutOff| Fault::new(Code::OutcomeUnknown, REASON).with("recovered", true);
        let cut_off = self.kernel().settle_cut_off(SCOPES, fault).await?;
        let (sessions, queued) = self.take_up().await?;
        if !cut_off.is_empty() {
            let (count, names) =
                (cut_off.len(), cut_off.iter().take(NAMED).map(|found| &found.key).collect::<Vec<_>>());
            self.kernel().log().warn(
                "commands were cut off by the end of an earlier process",
                json!({"count": count, "ids": names}),
            );
        }
        self.recovered(Recovery { done: true, sessions, queued, cut_off });
        Ok(())
    }

    /// Takes up sessions and what waits in them, and leaves commands that were cut off to a start of which clients hear. For a
    /// process that is there for one thing.
    pub async fn start_alone(&self) -> Result<(), Fault> {
        self.take_up().await.map(drop)
    }

    async fn take_up(&self) -> Result<(usize, usize), Fault> {
        Ok((self.load_sessions().await?, self.load_queues().await?))
    }

    async fn load_sessions(&self) -> Result<usize, Fault> {
        let mut after = (String::new(), String::new());
        let mut count = 0;
        loop {
            let whose = Whose { tenant: &after.0, session: &after.1 };
            let rows = self.kernel().ports().store.query(tables::sessions_after(whose, PAGE)).await;
            let rows = rows.map_err(store_fault)?;
            let Some(last) = rows.last() else { return Ok(count) };
            after = (
                last.text(0).map_err(store_fault)?.to_owned(),
                last.text(1).map_err(store_fault)?.to_owned(),
            );
            for row in &rows {
                let id: Arc<str> = row.text(1).map_err(store_fault)?.into();
                let damaged = |what: &str| {
                    Fault::new(Code::StoreCorrupt, format!("session {id}: {what}")).with("sessionId", &*id)
                };
                let tenant = Tenant::parse(row.text(0).map_err(store_fault)?)
                    .map_err(|error| damaged("its tenant is no tenant").because(error))?;
                let header: Header = serde_json::from_str(row.text(4).map_err(store_fault)?)
                    .map_err(|error| damaged("its record cannot be read").because(error))?;
                let seq = u64::try_from(row.int(3).map_err(store_fault)?).unwrap_or(0);
                let created_ms = row.int(2).map_err(store_fault)?;
                self.put(Arc::new(Session::new(tenant, id, created_ms, seq, header)));
                count += 1;
            }
        }
    }

    async fn load_queues(&self) -> Result<usize, Fault> {
        let rows = self.kernel().ports().store.query(tables::queue_all()).await.map_err(store_fault)?;
        for row in &rows {
            let Ok(tenant) = Tenant::parse(row.text(0).map_err(store_fault)?) else { continue };
            let Ok(session) = self.find(&tenant, row.text(1).map_err(store_fault)?) else { continue };
            let place = u64::try_from(row.int(2).map_err(store_fault)?).unwrap_or(0);
            let queued = serde_json::from_str(row.text(3).map_err(store_fault)?).map_err(|error| {
                Fault::new(Code::StoreCorrupt, "a waiting message cannot be read").because(error)
            })?;
            session.queue.put(place, queued);
        }
        Ok(rows.len())
    }
}

impl Recovery {
    /// As clients of the protocol read it.
    pub fn told(&self) -> Value {
        let by_id: BTreeMap<&str, &CutOff> =
            self.cut_off.iter().map(|found| (found.key.as_str(), found)).collect();
        let named: Vec<Value> = by_id
            .values()
            .take(NAMED)
            .map(|found| {
                json!({"commandId": found.key, "commandType": command(&found.action), "laneKey": lane(found),
                       "lastPhase": "command_accepted", "reason": REASON})
            })
            .collect();
        json!({
            "enabled": true, "initialized": self.done, "initState": if self.done { "ready" } else { "pending" },
            "journalPath": "store", "schemaVersion": 1, "entriesScanned": self.sessions + self.queued,
            "malformedEntries": 0, "unsupportedVersionEntries": 0,
            "recoveredSessions": self.sessions, "recoveredQueuedMessages": self.queued,
            "recoveredOutcomes": self.cut_off.len(),
            "recoveredOutcomeIds": by_id.keys().take(NAMED).collect::<Vec<_>>(),
            "recoveredOutcomeIdsTruncated": self.cut_off.len() > NAMED,
            "recoveredInFlightFailures": self.cut_off.len(), "recoveredInFlight": named,
            "recoveredInFlightTruncated": self.cut_off.len() > NAMED, "maxItemsReturned": NAMED,
        })
    }
}

/// The command behind an action's name.
pub fn command(action: &str) -> &str {
    action.strip_prefix("session.").unwrap_or(action)
}

/// The lane as clients know it.
fn lane(found: &CutOff) -> &str {
    found.lane.as_deref().unwrap_or("server")
}
