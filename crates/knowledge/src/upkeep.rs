//! What goes on beside the calls: deletions whose time has come, the end of what was deleted long ago, and deliveries.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, join3, select};
use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{AccessRole, Code, Fault, RoleSet};
use orchestr8_kernel::ports::store::{Batch, Row};
use orchestr8_kernel::{Args, Cancel, Principal, Submission};
use serde_json::{Map, json};

use crate::hub::Hub;
use crate::limits::{DUE, DUE_ROUNDS};
use crate::record::read;
use crate::tables::{self, Whose};
use crate::write::{CHANGES, DELIVERIES};

/// How often is looked whether the time of something has come.
const EVERY_MS: u64 = 60_000;

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Documents deleted because their time had come.
    pub deleted: usize,
    /// Deleted documents that are gone for good, without those below them.
    pub purged: usize,
}

impl Hub {
    /// Works until it is told to stop. The app runs it once, for as long as the program serves.
    pub async fn run(&self, cancel: Cancel) {
        join3(self.tend(cancel.clone()), self.follow_words(&cancel), self.follow(cancel.clone())).await;
    }

    async fn tend(&self, cancel: Cancel) {
        let mut news = self.store().watch(DELIVERIES);
        let (clock, mut looked_us) = (self.kernel().ports().clock.clone(), None);
        while !cancel.is_fired() {
            let now_us = clock.elapsed_us();
            if looked_us.is_none_or(|at: u64| now_us.saturating_sub(at) >= EVERY_MS * 1000) {
                looked_us = Some(now_us);
                self.note("upkeep of knowledge failed", self.keep().await.map(drop));
            }
            let delivered = self.deliver_due().await;
            let more = matches!(delivered, Ok(taken) if taken > 0);
            self.note("deliveries failed", delivered.map(drop));
            if more {
                continue;
            }
            let wait_ms = self.due_in_ms().await.ok().flatten().unwrap_or(EVERY_MS).clamp(1, EVERY_MS);
            let woken = Box::pin(async {
                // A store that has stopped tells nothing more; then time alone decides.
                if news.changed().await.is_err() {
                    futures::future::pending::<()>().await;
                }
            });
            let passed = select(woken, clock.sleep(Duration::from_millis(wait_ms)));
            if let Either::Right(_) = select(Box::pin(passed), Box::pin(cancel.fired())).await {
                break;
            }
        }
    }

    /// Deletes what is to be deleted by now, and purges what was deleted long enough ago (KNO-8.3).
    pub async fn keep(&self) -> Result<Kept, Fault> {
        let kept = Kept { deleted: self.delete_due().await?, purged: self.purge_due().await? };
        self.forget_deliveries().await?;
        Ok(kept)
    }

    async fn delete_due(&self) -> Result<usize, Fault> {
        let mut deleted = 0;
        for _ in 0..DUE_ROUNDS {
            let rows = self.rows(tables::deletions_due(self.now_ms(), DUE)).await?;
            let mut done = 0;
            for row in &rows {
                done += usize::from(self.delete(row).await?);
            }
            deleted += done;
            if done == 0 {
                break;
            }
        }
        Ok(deleted)
    }

    /// Through the kernel, so that it is journalled and audited like any other.
    async fn delete(&self, row: &Row) -> Result<bool, Fault> {
        let (tenant, id) = (row.text(0).map_err(read)?, row.text(1).map_err(read)?);
        let Ok(tenant) = Tenant::parse(tenant) else { return Ok(false) };
        let args = Map::from_iter([(String::from("document_id"), json!(id))]);
        let principal =
            Principal::new("schedule", tenant, RoleSet::of(&[AccessRole::Owner])).with_document_proof();
        let correlation = CorrelationId::from_uuid(self.fresh());
        let wish = Submission::new("knowledge.delete_due", Args::new(args), Arc::new(principal), correlation);
        let ended = self.kernel().submit(wish).await;
        match ended.code() {
            None => Ok(true),
            // Somebody has deleted it meanwhile, or put it off.
            Some(Code::NotFound | Code::VersionMismatch) => Ok(false),
            Some(code) => Err(Fault::new(code, "a document could not be deleted when its time had come")),
        }
    }

    async fn purge_due(&self) -> Result<usize, Fault> {
        let mut purged = 0;
        for _ in 0..DUE_ROUNDS {
            let now_ms = self.now_ms();
            let rows = self.rows(tables::purges_due(now_ms, DUE)).await?;
            for row in &rows {
                let (tenant, id) = (row.text(0).map_err(read)?, row.text(1).map_err(read)?);
                let turn = self.turns().in_tree(tenant, id).await;
                let mut batch = Batch::new();
                batch.then_one(tables::tree_bump(tenant));
                for statement in tables::purge(Whose { tenant, id }, now_ms) {
                    batch.then(statement);
                }
                batch.wake(CHANGES);
                self.store().commit(batch).await.map_err(read)?;
                drop(turn);
            }
            purged += rows.len();
            if rows.is_empty() {
                break;
            }
        }
        Ok(purged)
    }

    fn note(&self, message: &'static str, ended: Result<(), Fault>) {
        if let Err(fault) = ended {
            self.kernel().log().error(message, json!({"error": orchestr8_kernel::log::error(&fault)}));
        }
    }
}
