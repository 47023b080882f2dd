//! What goes on in the background: deleting what is old, and measuring how late tasks run.

use std::time::Duration;

use orchestr8_kernel::Kernel;
use orchestr8_stores::Sqlite;
use orchestr8_stores::retention::{Sweep, sweep};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Expiry is counted in hours at least, so nothing is late by much.
const EVERY: Duration = Duration::from_secs(600);

/// Not while a client waits for its first answer.
const FIRST: Duration = Duration::from_secs(60);

/// Pages given back to the file system after a sweep, some ten milliseconds of the writer's time.
const SHRINK_PAGES: u32 = 256;

/// Starts both. Deterministic mode has neither: their waits would move its clock.
pub fn start(kernel: &Kernel, store: &Sqlite, sweeps: Vec<Sweep>, stop: &CancellationToken) {
    let clock = kernel.ports().clock.clone();
    tokio::spawn(kernel.health().clone().sample(clock, stop.clone()));
    tokio::spawn(keep_short(kernel.clone(), store.clone(), sweeps, stop.clone()));
}

async fn keep_short(kernel: Kernel, store: Sqlite, sweeps: Vec<Sweep>, stop: CancellationToken) {
    let mut wait = FIRST;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = kernel.ports().clock.sleep(wait) => {}
        }
        wait = EVERY;
        match sweep(&store, &sweeps, kernel.ports().clock.now_ms()).await {
            Err(error) => {
                kernel.log().warn("old records could not be deleted", json!({"cause": error.to_string()}))
            }
            Ok(swept) if swept.iter().all(|swept| swept.rows == 0) => {}
            Ok(swept) => {
                let rows = |name| swept.iter().find(|swept| swept.name == name).map(|swept| swept.rows);
                let rows = json!({"ledger": rows("ledger"), "journal": rows("journal"), "tasks": rows("tasks"), "results": rows("results")});
                kernel.log().info("old records were deleted", json!({"rows": rows}));
                if let Err(error) = store.shrink(SHRINK_PAGES).await {
                    kernel
                        .log()
                        .warn("the data file could not be made smaller", json!({"cause": error.to_string()}));
                }
            }
        }
    }
}
