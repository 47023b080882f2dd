//! The keys of work that goes on after its TIMEOUT: what it gives in the end takes the place of the timeout (ADR 65).

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_contract::id::RunId;
use tokio::sync::watch;

use super::{Claim, Ledger, Slip};
use crate::outcome::Stored;
use crate::ports::store::Batch;
use crate::tables;

/// The keys of one run, for the end of its work after its answer.
pub struct LateKeys {
    ledger: Arc<Ledger>,
    slips: Vec<Slip>,
    run: RunId,
    /// Open until the claim has been settled or given up.
    claimed: watch::Receiver<()>,
}

impl Claim {
    /// Its keys, should its work outlive its answer.
    pub fn late_keys(&mut self) -> LateKeys {
        let (sender, claimed) = watch::channel(());
        self.held = Some(sender);
        let slips = self.slips.iter().map(|(slip, _)| slip.clone()).collect();
        LateKeys { ledger: self.ledger.clone(), slips, run: self.run, claimed }
    }
}

impl LateKeys {
    /// Waits until the answer is on record, so that it cannot come after what replaces it.
    pub async fn answered(&mut self) {
        while self.claimed.changed().await.is_ok() {}
    }

    /// What to commit so that repeats get this outcome from now on. A key that meanwhile expired or is another run's stays as it is.
    pub fn replacing(&self, stored: &Stored) -> Result<Batch, Fault> {
        let outcome = serde_json::to_string(stored)
            .map_err(|error| Fault::internal("the outcome cannot be stored").because(error))?;
        let (mut batch, run) = (Batch::new(), self.run.to_string());
        for slip in &self.slips {
            let Slip { tenant, scope, key } = slip;
            batch.then(tables::ledger_replace(tenant.as_str(), scope, key, &run, &outcome));
        }
        Ok(batch)
    }

    /// The commit is durable.
    pub fn replaced(&self, stored: &Arc<Stored>) {
        for slip in &self.slips {
            self.ledger.memory.replace(slip, stored);
        }
    }
}
