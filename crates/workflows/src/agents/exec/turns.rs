//! One program at a time for each step: an attempt begins when what an earlier attempt started is gone.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Who is at work, by the key of the step.
#[derive(Default)]
pub struct StepTurns(Mutex<HashMap<Arc<str>, Arc<Turn<()>>>>);

impl StepTurns {
    /// Waits until nothing of an earlier attempt runs. The guard goes with the program.
    pub async fn take(&self, key: &Arc<str>) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock();
            // Those that are held or waited for have more than one owner.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            turns.entry(key.clone()).or_default().clone()
        };
        turn.lock_owned().await
    }
}
