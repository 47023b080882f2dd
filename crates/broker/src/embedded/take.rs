//! Takes messages in fair turns, each under a lease that is on record before anybody sees the message.

use std::collections::VecDeque;
use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Error};

use super::{Shared, rows};
use crate::lines::deal;
use crate::port::{Delivery, Message, Taken};
use crate::tables;

/// Why a message died whose receivers never said a word: each of them crashed or hung.
const SILENT: &str = "nobody settled it before its ack deadline, as often as it was delivered";

impl Shared {
    /// Waits until there is something.
    pub(super) async fn take(&self, most: usize) -> Result<Taken, Fault> {
        loop {
            let stirred = self.stirred.notified();
            let taken = self.look(most.max(1)).await?;
            if !taken.deliveries.is_empty() || !taken.died.is_empty() {
                return Ok(taken);
            }
            let next_ms = self.lines.lock().next_ms(&self.settings);
            let pause = async {
                match next_ms {
                    Some(next_ms) => {
                        let wait_ms = next_ms.saturating_sub(self.clock.now_ms()).max(1);
                        self.clock.sleep(Duration::from_millis(wait_ms.unsigned_abs())).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stirred => {}
                () = pause => {}
            }
        }
    }

    /// What there is now.
    async fn look(&self, most: usize) -> Result<Taken, Fault> {
        let now_ms = self.clock.now_ms();
        let turns = {
            let mut lines = self.lines.lock();
            lines.expire(now_ms);
            lines.turns(now_ms, &self.settings)
        };
        let mut lists = Vec::new();
        for (tenant, room) in turns.into_iter().take(most) {
            lists.push(self.due(&tenant, now_ms, room.min(most)).await?);
        }
        let mut batch = Batch::new();
        let mut taken = Taken::default();
        for delivery in deal(lists, most) {
            if delivery.receipt.attempt > self.settings.attempts {
                taken.died.push(self.give_up(&mut batch, &delivery));
            } else {
                let until_ms = self.until_ms(self.settings.ack_deadline_ms);
                batch.then_one(tables::lease(&delivery.receipt, until_ms));
                taken.deliveries.push(delivery);
            }
        }
        if batch.is_empty() {
            return Ok(taken);
        }
        match self.store.commit(batch).await {
            Ok(()) => {}
            // Somebody settled one of them a moment ago, late; the next look sees what is left.
            Err(Error::Conflict { .. }) => return Ok(Taken::default()),
            Err(error) => return Err(store_fault(error)),
        }
        let mut lines = self.lines.lock();
        for Delivery { receipt, .. } in &taken.deliveries {
            let until_ms = self.until_ms(self.settings.ack_deadline_ms);
            lines.lease(&receipt.tenant, receipt.seq, receipt.attempt, until_ms);
        }
        for message in &taken.died {
            lines.leave(&message.tenant, message.body.len());
        }
        drop(lines);
        Ok(taken)
    }

    async fn due(&self, tenant: &Tenant, now_ms: i64, room: usize) -> Result<VecDeque<Delivery>, Fault> {
        let room = i64::try_from(room).unwrap_or(i64::MAX);
        let rows = self.store.query(tables::due(tenant.as_str(), now_ms, room)).await.map_err(store_fault)?;
        if rows.is_empty() {
            // Whoever publishes meanwhile is seen after this: then the line is due again.
            self.lines.lock().quiet_until(tenant, i64::MAX);
            let next = self.store.query(tables::next_due(tenant.as_str())).await.map_err(store_fault)?;
            let next_ms =
                next.first().map(|row| rows::optional_int(row, 0)).transpose().map_err(store_fault)?;
            self.lines.lock().due_at(tenant, next_ms.flatten().unwrap_or(i64::MAX));
        }
        rows.iter().map(rows::delivery).collect::<Result<_, _>>().map_err(store_fault)
    }

    fn give_up(&self, batch: &mut Batch, delivery: &Delivery) -> Message {
        let mut receipt = delivery.receipt.clone();
        receipt.attempt -= 1;
        self.bury(batch, &receipt, SILENT);
        self.move_up(batch, &delivery.message);
        delivery.message.clone()
    }
}
