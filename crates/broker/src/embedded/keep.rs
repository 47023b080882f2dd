//! What is kept to be looked at: replies in their inboxes, dead letters, and how much of everything there is.

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Error, Link, Statement};

use super::{Shared, rows};
use crate::port::{DeadLetter, Page, Redriven, Reply, Reported};
use crate::subject::Subject;
use crate::{limits, tables};

impl Shared {
    pub(super) async fn replies(
        &self,
        tenant: &Tenant,
        inbox: &Subject,
        principal: Option<String>,
        (after, most): (i64, usize),
    ) -> Result<Page<Reply>, Fault> {
        let most = most.clamp(1, limits::PAGE);
        let asked = tables::replies(tenant.as_str(), inbox.as_str(), principal, after, one_more(most));
        let rows = self.store.query(asked).await.map_err(store_fault)?;
        let mut page = Page { items: Vec::new(), more: false };
        let mut bytes = 0;
        for row in &rows {
            if page.items.len() == most || bytes > limits::PAGE_BYTES {
                page.more = true;
                break;
            }
            let reply = rows::reply(row).map_err(store_fault)?;
            bytes += reply.body.len();
            page.items.push(reply);
        }
        Ok(page)
    }

    pub(super) async fn dead(
        &self,
        tenant: Option<&Tenant>,
        after: i64,
        most: usize,
    ) -> Result<Page<DeadLetter>, Fault> {
        let most = most.clamp(1, limits::PAGE);
        let tenant = tenant.map(|tenant| tenant.as_str().to_owned());
        let rows =
            self.store.query(tables::dead(tenant, after, one_more(most))).await.map_err(store_fault)?;
        let letters = rows.iter().take(most).map(rows::dead_letter).collect::<Result<_, _>>();
        Ok(Page { items: letters.map_err(store_fault)?, more: rows.len() > most })
    }

    pub(super) async fn find_dead(
        &self,
        tenant: Option<&Tenant>,
        seq: i64,
    ) -> Result<Option<DeadLetter>, Fault> {
        let page = self.dead(tenant, seq.saturating_sub(1), 1).await?;
        Ok(page.items.into_iter().next().filter(|letter| letter.seq == seq))
    }

    pub(super) async fn redrive(
        &self,
        tenant: Option<&Tenant>,
        seq: i64,
        audit: Link,
    ) -> Result<Redriven, Fault> {
        let Some(letter) = self.find_dead(tenant, seq).await? else { return Ok(Redriven::Unknown) };
        let (tenant, bytes) = (&letter.message.tenant, letter.message.body.len());
        self.lines.lock().admit(tenant, bytes, &self.settings)?;
        let mut batch = Batch::new();
        batch.then_one(tables::redrive(tenant.as_str(), seq, self.clock.now_ms()));
        batch.then_one(tables::discard(tenant.as_str(), seq));
        batch.link(audit);
        match self.store.commit(batch).await {
            Ok(()) => {
                self.stir(tenant);
                Ok(Redriven::OnItsWay)
            }
            Err(error) => {
                self.lines.lock().leave(tenant, bytes);
                match error {
                    // Somebody else was faster.
                    Error::Conflict { .. } => Ok(Redriven::Unknown),
                    other => Err(store_fault(other)),
                }
            }
        }
    }

    pub(super) async fn discard(
        &self,
        tenant: Option<&Tenant>,
        seq: i64,
        audit: Link,
    ) -> Result<bool, Fault> {
        let Some(letter) = self.find_dead(tenant, seq).await? else { return Ok(false) };
        let mut batch = Batch::new();
        batch.then_one(tables::discard(letter.message.tenant.as_str(), seq));
        batch.link(audit);
        match self.store.commit(batch).await {
            Ok(()) => Ok(true),
            Err(Error::Conflict { .. }) => Ok(false),
            Err(error) => Err(store_fault(error)),
        }
    }

    pub(super) async fn report(&self) -> Result<Vec<Reported>, Fault> {
        let dead = self.counted(tables::dead_counts()).await?;
        let lines = self.lines.lock().report();
        let mut report: Vec<Reported> = lines
            .into_iter()
            .map(|(tenant, queued, in_flight)| Reported { tenant, queued, in_flight, dead: 0 })
            .collect();
        for (tenant, count) in dead {
            match report.iter_mut().find(|line| line.tenant == tenant) {
                Some(line) => line.dead = count,
                None => report.push(Reported { tenant, queued: 0, in_flight: 0, dead: count }),
            }
        }
        report.sort_by(|one, other| one.tenant.cmp(&other.tenant));
        Ok(report)
    }

    /// In slices, so that nobody who writes waits long.
    pub(super) async fn sweep(&self) -> Result<(), Fault> {
        let now_ms = self.clock.now_ms();
        for sweep in &tables::SWEEPS {
            let until_ms = now_ms.saturating_sub(sweep.kept_ms);
            for _ in 0..limits::SWEEP_SLICES {
                let due =
                    self.store.query(sweep.due(until_ms, limits::SWEEP_ROWS)).await.map_err(store_fault)?;
                let due = due.first().map_or(Ok(0), |row| row.int(0)).map_err(store_fault)?;
                if due > 0 {
                    self.delete(sweep.delete(until_ms, limits::SWEEP_ROWS)).await?;
                }
                if due < limits::SWEEP_ROWS {
                    break;
                }
            }
        }
        self.thin(tables::reply_counts(), limits::TENANT_REPLIES, tables::forget_replies).await?;
        self.thin(tables::dead_counts(), limits::TENANT_DEAD, tables::forget_dead).await
    }

    /// Leaves each tenant so many rows, the newest.
    async fn thin(
        &self,
        counts: Statement,
        kept: i64,
        forget: fn(&str, i64) -> Statement,
    ) -> Result<(), Fault> {
        for (tenant, count) in self.counted(counts).await? {
            let mut over = i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(kept);
            while over > 0 {
                self.delete(forget(tenant.as_str(), over.min(limits::SWEEP_ROWS))).await?;
                over -= limits::SWEEP_ROWS;
            }
        }
        Ok(())
    }

    async fn delete(&self, statement: Statement) -> Result<(), Fault> {
        let mut batch = Batch::new();
        batch.then(statement);
        self.store.commit(batch).await.map_err(store_fault)
    }

    async fn counted(&self, statement: Statement) -> Result<Vec<(Tenant, usize)>, Fault> {
        let rows = self.store.query(statement).await.map_err(store_fault)?;
        rows.iter().map(rows::tenant_count).collect::<Result<_, _>>().map_err(store_fault)
    }
}

/// One row more than asked for says that there are more.
fn one_more(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1)
}
