//! What goes on in the background: deleting what is old, and measuring how late tasks run.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestr8_contract::id::Tenant;
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ports::store::Error;
use orchestr8_kernel::{Kernel, audit};
use orchestr8_stores::Sqlite;
use orchestr8_stores::merkle::AUDIT_LOG;
use orchestr8_stores::pruning::{PruneRule, prune};
use orchestr8_stores::retention::{Sweep, sweep};
use orchestr8_tlog::HeadRecorder;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::log_retention;
use crate::{settings, tables};

/// Expiry is counted in hours at least, so nothing is late by much.
const EVERY: Duration = Duration::from_secs(600);

/// Not while a client waits for its first answer.
const FIRST: Duration = Duration::from_secs(60);

/// Pages given back to the file system after a sweep, some ten milliseconds of the writer's time.
const SHRINK_PAGES: u32 = 256;

/// Retention periods.
pub struct Kept {
    sweeps: Vec<Sweep>,
    journal_ms: i64,
    audit_ms: i64,
}

impl Kept {
    pub fn of(store: &settings::Store) -> Self {
        let ms = |kept: Duration| i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
        let (journal_ms, audit_ms) = (ms(store.journal_kept), ms(store.audit_kept));
        Self { sweeps: tables::sweeps(journal_ms).to_vec(), journal_ms, audit_ms }
    }
}

/// Starts both. Deterministic mode has neither: their waits would move its clock.
pub fn start(
    kernel: &Kernel,
    store: &Sqlite,
    kept: Kept,
    heads: Option<HeadRecorder>,
    stop: &CancellationToken,
) {
    let clock = kernel.ports().clock.clone();
    tokio::spawn(kernel.health().clone().sample(clock, stop.clone()));
    tokio::spawn(keep_short(kernel.clone(), store.clone(), kept, heads, stop.clone()));
}

async fn keep_short(
    kernel: Kernel,
    store: Sqlite,
    kept: Kept,
    heads: Option<HeadRecorder>,
    stop: CancellationToken,
) {
    let mut wait = FIRST;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = kernel.ports().clock.sleep(wait) => {}
        }
        wait = EVERY;
        delete_expired(&kernel, &store, &kept, heads.as_ref()).await;
    }
}

/// Deletes what is old, and puts on record how many rows of what went.
async fn delete_expired(kernel: &Kernel, store: &Sqlite, kept: &Kept, heads: Option<&HeadRecorder>) {
    let rows = match clear(store, kept, heads, kernel.ports().clock.now_ms()).await {
        Err(error) => {
            kernel.log().warn("old records could not be deleted", json!({"cause": error.to_string()}));
            return;
        }
        Ok(deleted) if deleted.values().all(|rows| *rows == 0) => return,
        Ok(deleted) => deleted,
    };
    kernel.log().info("old records were deleted", json!({"rows": rows}));
    let tenant = Tenant::local();
    let change = StateChange {
        detail: json!({"rows": rows}),
        ..StateChange::by_server("retention.delete", tenant.as_str(), None)
    };
    if let Err(fault) = kernel.record_change(&change).await {
        kernel.log().warn("a deletion could not be audited", json!({"cause": fault.message}));
    }
    if let Err(error) = store.shrink(SHRINK_PAGES).await {
        kernel.log().warn("the data file could not be made smaller", json!({"cause": error.to_string()}));
    }
}

/// Deletes what is old, and gives how many rows of what went. Entries of the logs go only once a signed head covers them.
async fn clear(
    store: &Sqlite,
    kept: &Kept,
    heads: Option<&HeadRecorder>,
    now_ms: i64,
) -> Result<BTreeMap<&'static str, u64>, Error> {
    let swept = sweep(store, &kept.sweeps, now_ms).await?;
    let mut deleted: BTreeMap<&str, u64> = swept.iter().map(|swept| (swept.name, swept.rows)).collect();
    for (source, kept_ms) in [(tables::JOURNAL_LOG, kept.journal_ms), (AUDIT_LOG, kept.audit_ms)] {
        let covered = match heads {
            Some(heads) => heads.covered(source.name).await,
            None => u64::MAX,
        };
        let sign = |digest| heads.map(|heads| heads.sign_pruned(source.name, digest)).unwrap_or_default();
        let rule = PruneRule { before_ms: now_ms.saturating_sub(kept_ms), covered, sign: &sign };
        let (name, rows) = match source.chain {
            None => ("executions", log_retention::prune_executions(store, &source, &rule).await?),
            Some(_) => ("audit", prune(store, &source, &rule, |pruned| audit::pruned(pruned, now_ms)).await?),
        };
        deleted.insert(name, rows);
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use orchestr8_kernel::ports::store::{Batch, Link, Store as _};
    use orchestr8_stores::sqlite::{self, Options, Place};
    use orchestr8_testing::Parts;
    use serde_json::Value;

    use super::*;

    const DAY_MS: i64 = 86_400_000;

    #[tokio::test]
    async fn old_entries_of_the_audit_trail_go_and_the_rest_stays_provable() {
        let store = sqlite::open(Options::new(Place::Memory, tables::migrations())).unwrap();
        for day in [1, 2, 3, 450, 451] {
            let mut batch = Batch::new();
            batch.link(Link { chain: audit::CHAIN.into(), at_ms: day * DAY_MS, body: "{}".into() });
            store.commit(batch).await.unwrap();
        }
        let kept = Kept { sweeps: Vec::new(), journal_ms: DAY_MS, audit_ms: 400 * DAY_MS };
        assert_eq!(
            clear(&store, &kept, None, 401 * DAY_MS).await.unwrap()["audit"],
            0,
            "a day is not worth an entry"
        );
        assert_eq!(clear(&store, &kept, None, 452 * DAY_MS).await.unwrap()["audit"], 3);
        let verified = store.verify_chain(audit::CHAIN).await.unwrap();
        assert_eq!(
            (verified.entries, verified.pruned),
            (3, 3),
            "two that are young, and the word of the server"
        );
        assert_eq!(clear(&store, &kept, None, 453 * DAY_MS).await.unwrap()["audit"], 0);
        store.close().await;
    }

    /// The entries of the audit trail with this action.
    async fn recorded(store: &Sqlite, action: &str) -> Vec<Value> {
        let found = store.query(tables::recorded(action)).await;
        found.unwrap().iter().map(|row| serde_json::from_str(row.text(0).unwrap()).unwrap()).collect()
    }

    #[tokio::test]
    async fn a_deletion_is_on_record_and_a_sweep_that_deletes_nothing_is_not() {
        let store = sqlite::open(Options::new(Place::Memory, tables::migrations())).unwrap();
        let kernel = Parts::on(Arc::new(store.clone())).kernel();
        let mut batch = Batch::new();
        for _ in 0..3 {
            batch.link(Link { chain: audit::CHAIN.into(), at_ms: DAY_MS, body: "{}".into() });
        }
        let now_ms = kernel.ports().clock.now_ms();
        batch.link(Link { chain: audit::CHAIN.into(), at_ms: now_ms, body: "{}".into() });
        store.commit(batch).await.unwrap();
        let kept = Kept { sweeps: Vec::new(), journal_ms: DAY_MS, audit_ms: 400 * DAY_MS };
        delete_expired(&kernel, &store, &kept, None).await;
        delete_expired(&kernel, &store, &kept, None).await;
        let entries = recorded(&store, "retention.delete").await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        let entry = &entries[0];
        assert_eq!((&entry["principal"], &entry["result"]), (&json!("server"), &json!("success")), "{entry}");
        assert_eq!(entry["detail"]["rows"], json!({"audit": 3, "executions": 0}), "{entry}");
        store.close().await;
    }
}
