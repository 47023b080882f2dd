//! The order in which one sender's envelopes count (KNO-9): one whose number is lower than the last seen has no effect.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::{Fault, canonical};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Store};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::limits::SEQUENCES;
use crate::tables;

/// Whose numbers are counted, and within what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Sender {
    pub tenant: String,
    pub principal: String,
    pub subject: String,
}

impl Sender {
    /// The lane its numbered envelopes run in.
    pub fn lane(&self) -> String {
        let mut hash = Sha256::new();
        for part in [&self.tenant, &self.principal, &self.subject] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        format!("a2a:{}", canonical::hex(&hash.finalize()))
    }
}

/// Whether an envelope comes in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    InOrder,
    /// A later one was seen before it.
    TooLate,
}

/// The last number of each sender: in the store before anything of it is done, and lately used ones in memory.
pub(crate) struct Order {
    store: Arc<dyn Store>,
    last: Mutex<HashMap<Sender, i64>>,
}

impl Order {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, last: Mutex::default() }
    }

    /// Notes a number. The decision falls in one step in memory, so two that come at once are still in order.
    pub async fn note(&self, sender: Sender, seq: i64, now_ms: i64) -> Result<Turn, Fault> {
        let step = loop {
            if let Some(step) = self.advance(&sender, seq) {
                break step;
            }
            let found = tables::sequence_find(&sender.tenant, &sender.principal, &sender.subject);
            let rows = self.store.query(found).await.map_err(store_fault)?;
            let seen = rows.first().map(|row| row.int(0)).transpose().map_err(store_fault)?;
            self.remember(sender.clone(), seen.unwrap_or(-1));
        };
        match step {
            Step::TooLate => Ok(Turn::TooLate),
            Step::Same => Ok(Turn::InOrder),
            Step::Ahead => {
                let mut batch = Batch::new();
                let (tenant, principal) = (&sender.tenant, &sender.principal);
                batch.then(tables::sequence_advance(tenant, principal, &sender.subject, seq, now_ms));
                let stored = self.store.commit(batch).await;
                if stored.is_err() {
                    // What is in memory must not say more than what is in the store.
                    self.last.lock().remove(&sender);
                }
                stored.map(|()| Turn::InOrder).map_err(store_fault)
            }
        }
    }

    /// None: the sender is not in memory.
    fn advance(&self, sender: &Sender, seq: i64) -> Option<Step> {
        let mut last = self.last.lock();
        let seen = last.get_mut(sender)?;
        Some(match seq.cmp(seen) {
            std::cmp::Ordering::Less => Step::TooLate,
            std::cmp::Ordering::Equal => Step::Same,
            std::cmp::Ordering::Greater => {
                *seen = seq;
                Step::Ahead
            }
        })
    }

    /// Somebody may have noted more meanwhile; what is in the store is never less than what was forgotten here.
    fn remember(&self, sender: Sender, seen: i64) {
        let mut last = self.last.lock();
        if last.len() >= SEQUENCES {
            last.clear();
        }
        let known = last.entry(sender).or_insert(seen);
        *known = (*known).max(seen);
    }
}

enum Step {
    TooLate,
    Same,
    Ahead,
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_testing::memory;

    fn sender(subject: &str) -> Sender {
        Sender { tenant: "acme".into(), principal: "svc:a".into(), subject: subject.into() }
    }

    #[tokio::test]
    async fn kno_9_a_lower_number_is_too_late_also_after_a_restart() {
        let store: Arc<dyn Store> = Arc::new(memory(&[tables::MIGRATIONS]));
        let order = Order::new(store.clone());
        let turns = |seqs: &'static [i64]| {
            let order = &order;
            async move {
                let mut turns = Vec::new();
                for seq in seqs {
                    turns.push(order.note(sender("a"), *seq, 1).await.unwrap() == Turn::InOrder);
                }
                turns
            }
        };
        assert_eq!(turns(&[0, 3, 3, 2, 4]).await, [true, true, true, false, true]);
        assert_eq!(
            order.note(sender("b"), 1, 1).await.unwrap(),
            Turn::InOrder,
            "others count for themselves"
        );
        let reborn = Order::new(store);
        assert_eq!(reborn.note(sender("a"), 3, 1).await.unwrap(), Turn::TooLate);
        assert_eq!(reborn.note(sender("a"), 4, 1).await.unwrap(), Turn::InOrder);
    }
}
