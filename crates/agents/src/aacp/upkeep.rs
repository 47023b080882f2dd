//! What goes on by itself: taking up what was left, what is due, deleting what has expired.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_contract::id::{AgentId, MessageId, RequestId, Tenant};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Cancel, log};
use serde_json::json;

use super::audit::{self, Actor, AuditRecord, MessageEvent};
use super::desk::Wish;
use super::hub::Hub;
use super::record::Address;
use super::rows;
use crate::limits;
use crate::tables;

/// How long until a store that failed is asked again.
const RETRY_MS: u64 = 1_000;

impl Hub {
    /// Takes up what an earlier process has left, and looks after what is due until the cancel fires.
    pub async fn run(&self, stop: Cancel) {
        let own = self.0.kernel.log().clone();
        if let Err(fault) = self.resume().await {
            own.error("messages could not be taken up", json!({"error": log::error(&fault)}));
        }
        let mut purged_us = None;
        loop {
            let now_us = self.0.kernel.ports().clock.elapsed_us();
            if purged_us.is_none_or(|at| now_us.saturating_sub(at) / 1000 >= limits::PURGE_EVERY_MS) {
                purged_us = Some(now_us);
                if let Err(fault) = self.purge_expired(self.now_ms(), None).await {
                    own.warn("old messages could not be deleted", json!({"error": log::error(&fault)}));
                }
            }
            let wait_ms = self.take_up_due().await.unwrap_or(RETRY_MS).min(limits::PURGE_EVERY_MS);
            tokio::select! {
                () = stop.fired() => return,
                () = self.0.sooner.notified() => {}
                () = self.0.kernel.ports().clock.sleep(Duration::from_millis(wait_ms)) => {}
            }
        }
    }

    /// Delivers what was not acknowledged before the process began (AACP-RESUME).
    pub async fn resume(&self) -> Result<(), Fault> {
        self.ready().await?;
        let rows = self.query(tables::inboxes_open()).await?;
        for row in rows {
            let (tenant, agent) = (row.text(0).map_err(store_fault)?, row.text(1).map_err(store_fault)?);
            if let (Ok(tenant), Ok(agent)) = (Tenant::parse(tenant), AgentId::parse(agent)) {
                self.dispatch(&Address { tenant, agent }, 0, None);
            }
        }
        Ok(())
    }

    /// Deletes what has expired, of one tenant or of all, and says how much that was (AACP-PURGE).
    pub async fn purge_expired(&self, now_ms: i64, tenant: Option<&Tenant>) -> Result<usize, Fault> {
        let store = &self.0.kernel.ports().store;
        let of = tenant.map(Tenant::as_str);
        let mut purged = 0;
        loop {
            let messages = self.query(tables::messages_expired(of, now_ms, limits::PURGE_ROWS)).await?;
            let requests = self.query(tables::requests_expired(of, now_ms, limits::PURGE_ROWS)).await?;
            if messages.is_empty() && requests.is_empty() {
                return Ok(purged);
            }
            purged += messages.len() + requests.len();
            let (mut batch, mut gone, mut ended) = (Batch::new(), Vec::new(), Vec::new());
            let mut expired: BTreeMap<Tenant, Vec<MessageId>> = BTreeMap::new();
            for row in &messages {
                batch.then(tables::message_delete(row.int(0).map_err(store_fault)?, now_ms));
                let (tenant, agent) = (row.text(1).map_err(store_fault)?, row.text(2).map_err(store_fault)?);
                if let (Ok(tenant), Ok(agent), Ok(position)) =
                    (Tenant::parse(tenant), AgentId::parse(agent), rows::number(row, 3))
                {
                    gone.push((Address { tenant, agent }, position));
                }
                let (tenant, id) = (row.text(1).map_err(store_fault)?, row.text(4).map_err(store_fault)?);
                if let (Ok(tenant), Ok(id)) = (Tenant::parse(tenant), MessageId::parse(id)) {
                    expired.entry(tenant).or_default().push(id);
                }
            }
            batch.links.extend(audit::links(&expired_records(expired, now_ms), now_ms));
            for row in &requests {
                let (tenant, id) = (row.text(0).map_err(store_fault)?, row.text(1).map_err(store_fault)?);
                batch.then(tables::request_delete(tenant, id, now_ms));
                if let (Ok(tenant), Ok(id)) = (Tenant::parse(tenant), RequestId::parse(id)) {
                    ended.push((tenant, id));
                }
            }
            store.commit(batch).await.map_err(store_fault)?;
            self.wish(Wish::Forget { messages: gone, requests: ended }).await?;
        }
    }

    /// Lets the ledger decide about what is due; says how long until the next is.
    pub async fn take_up_due(&self) -> Result<u64, Fault> {
        loop {
            let rows = self.query(tables::request_due(self.now_ms(), limits::DUE_ROWS)).await?;
            if rows.is_empty() {
                break;
            }
            let mut wishes = Vec::new();
            for row in &rows {
                let entry = rows::entry(row).map_err(store_fault)?;
                let tenant = Tenant::parse(row.text(14).map_err(store_fault)?)
                    .map_err(|wrong| Fault::internal("a stored tenant is none").because(wrong))?;
                wishes.push(self.wish(Wish::Due { tenant, request: entry.request }));
            }
            futures::future::try_join_all(wishes).await?;
        }
        // Before the look, so that what comes between is not overlooked.
        self.0.next_due_ms.store(i64::MAX, Ordering::SeqCst);
        let rows = self.query(tables::request_next_due()).await?;
        let Some(due_ms) = rows.first().and_then(|row| row.int(0).ok()) else { return Ok(u64::MAX) };
        self.0.next_due_ms.fetch_min(due_ms, Ordering::SeqCst);
        Ok(u64::try_from(due_ms.saturating_sub(self.now_ms())).unwrap_or(0))
    }
}

/// The audit records of messages that are deleted for their age.
fn expired_records(expired: BTreeMap<Tenant, Vec<MessageId>>, now_ms: i64) -> Vec<AuditRecord> {
    let server = Actor::server();
    let record = |(tenant, objects): (Tenant, Vec<MessageId>)| AuditRecord {
        objects,
        ..AuditRecord::new(MessageEvent::Expired, &tenant, &server, now_ms)
    };
    expired.into_iter().map(record).collect()
}
