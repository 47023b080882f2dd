//! What this face does by itself: it says that it is alive, gives the quarterly notice of old role names, and sweeps.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{AccessRole, Event, Fault, Priority};
use orchestr8_kernel::Kernel;
use orchestr8_kernel::health::Status;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::ports::store::{Batch, Error, Store};
use serde_json::{Value, json};

use crate::limits;
use crate::settings::Settings;
use crate::slo;
use crate::tables::{self, Age, Sweep};

/// The news that a name is old and still works.
pub const DEPRECATION: &str = "roles.deprecation";

/// The name we go by among our peers.
const OURSELVES: &str = "orchestr8";

/// Runs until the server stops.
pub async fn tend(kernel: Kernel, settings: Settings) {
    tokio::join!(rounds(&kernel, &settings), figures(&kernel, &settings));
}

/// Writes down what was counted, a last time when the server stops.
async fn figures(kernel: &Kernel, settings: &Settings) {
    loop {
        let stops = tokio::select! {
            biased;
            () = settings.shutdown.cancelled() => true,
            () = kernel.ports().clock.sleep(Duration::from_millis(limits::FIGURES_MS)) => false,
        };
        if let Err(fault) = slo::write(kernel, &settings.metrics).await {
            kernel.log().warn("figures could not be written down", json!({"error": fault.to_string()}));
        }
        if stops {
            return;
        }
    }
}

async fn rounds(kernel: &Kernel, settings: &Settings) {
    loop {
        let swept = match &settings.pubsub {
            Some(pubsub) => pubsub.broker.sweep().await,
            None => Ok(()),
        };
        if let Err(fault) = swept.and(round(kernel).await) {
            kernel
                .log()
                .error("the knowledge face could not do its round", json!({"error": fault.to_string()}));
        }
        tokio::select! {
            biased;
            () = settings.shutdown.cancelled() => return,
            () = kernel.ports().clock.sleep(Duration::from_millis(settings.heartbeat_ms)) => {}
        }
    }
}

/// Everything once.
pub(crate) async fn round(kernel: &Kernel) -> Result<(), Fault> {
    let (store, now_ms) = (&kernel.ports().store, kernel.ports().clock.now_ms());
    let revision = kernel.registry().table().revision.to_string();
    let mut batch = Batch::new();
    batch.then(tables::peer_seen(Tenant::local().as_str(), OURSELVES, condition(kernel), &revision, now_ms));
    store.commit(batch).await.map_err(store_fault)?;
    for kind in &tables::SWEEPS {
        sweep(&**store, kind, now_ms).await.map_err(store_fault)?;
    }
    for (alias, role) in AccessRole::ALIASES {
        give_notice(kernel, alias, role.as_str(), now_ms).await?;
    }
    Ok(())
}

/// Deletes what is too old in slices, so that nobody who writes waits long.
async fn sweep(store: &dyn Store, kind: &Sweep, now_ms: i64) -> Result<(), Error> {
    let until_ms = match kind.age {
        Age::Expired => now_ms,
        Age::Request => now_ms - limits::REQUEST_KEPT_MS,
        Age::Sequence => now_ms - limits::SEQUENCE_KEPT_MS,
    };
    for _ in 0..limits::SWEEP_SLICES {
        let rows = store.query(kind.due(until_ms, limits::SWEEP_ROWS)).await?;
        let due = rows.first().map_or(Ok(0), |row| row.int(0))?;
        if due > 0 {
            let mut batch = Batch::new();
            batch.then(kind.delete(until_ms, limits::SWEEP_ROWS));
            store.commit(batch).await?;
        }
        if due < limits::SWEEP_ROWS {
            break;
        }
    }
    Ok(())
}

/// Peers know two words for it (KNO-7).
fn condition(kernel: &Kernel) -> &'static str {
    let (running, max) = (kernel.running(), kernel.limits().concurrent_runs);
    let telemetry = kernel.health().telemetry(0, running, max);
    match kernel.health().status(&telemetry) {
        Status::Healthy => "healthy",
        Status::Degraded | Status::Unhealthy => "degraded",
    }
}

/// Once each quarter, also over restarts (KNO-3).
async fn give_notice(kernel: &Kernel, alias: &str, role: &str, now_ms: i64) -> Result<(), Fault> {
    let quarter = quarter(now_ms);
    let mut batch = Batch::new();
    batch.then_one(tables::notice_give(&format!("{DEPRECATION}:{alias}"), &quarter, now_ms));
    match kernel.ports().store.commit(batch).await {
        Ok(()) => {}
        Err(Error::Conflict { .. }) => return Ok(()),
        Err(error) => return Err(store_fault(error)),
    }
    kernel.log().info("an old name", || json!({"alias": alias, "role": role, "quarter": quarter}));
    kernel.bus().publish(Event {
        name: DEPRECATION,
        subject: alias.into(),
        priority: Priority::Normal,
        at_ms: now_ms,
        data: Arc::new(notice(alias, role, &quarter)),
    });
    Ok(())
}

fn notice(alias: &str, role: &str, quarter: &str) -> Value {
    let message = format!("the role '{alias}' is called '{role}'; the old name keeps working without an end");
    json!({"alias": alias, "role": role, "quarter": quarter, "eol": null, "message": message})
}

/// The notices that were given this quarter, each with when. The bus forgets them; this is for whoever was not there.
pub(crate) async fn notices(kernel: &Kernel) -> Result<Vec<Value>, Fault> {
    let (store, quarter) = (&kernel.ports().store, quarter(kernel.ports().clock.now_ms()));
    let rows = store.query(tables::notices(&quarter)).await.map_err(store_fault)?;
    let mut notices = Vec::new();
    for row in &rows {
        let (name, at_ms) = (row.text(0).map_err(store_fault)?, row.int(1).map_err(store_fault)?);
        let Some((event, given)) = name.split_once(':') else { continue };
        let Some((alias, role)) = AccessRole::ALIASES.into_iter().find(|(alias, _)| *alias == given) else {
            continue;
        };
        let mut told = notice(alias, role.as_str(), &quarter);
        (told["event"], told["at"]) = (event.into(), clock::iso(at_ms).into());
        notices.push(told);
    }
    Ok(notices)
}

/// `2026-Q1`
fn quarter(ms: i64) -> String {
    let date = Timestamp::from_millisecond(ms).unwrap_or_default().to_zoned(TimeZone::UTC);
    format!("{}-Q{}", date.year(), (date.month() + 2) / 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::bus::Filter;
    use orchestr8_kernel::ports::clock::Simulated;
    use orchestr8_testing::{Parts, memory};

    #[test]
    fn quarters_begin_in_january() {
        for (ms, name) in [(Simulated::START_MS, "2026-Q1"), (Simulated::START_MS - 1, "2025-Q4")] {
            assert_eq!(quarter(ms), name);
        }
    }

    #[tokio::test]
    async fn what_is_too_old_goes_and_the_rest_stays() {
        let store = memory(&[tables::MIGRATIONS]);
        let now_ms = Simulated::START_MS;
        let mut batch = Batch::new();
        let many = 2 * limits::SWEEP_ROWS + 1;
        for number in 0..many {
            batch.then(tables::nonce_use("k", &number.to_string(), now_ms));
        }
        batch.then(tables::nonce_use("k", "later", now_ms + 1));
        batch.then(tables::sequence_advance("acme", "a", "old", 1, now_ms - limits::SEQUENCE_KEPT_MS));
        batch.then(tables::sequence_advance("acme", "a", "new", 1, now_ms));
        store.commit(batch).await.unwrap();
        let clock = Arc::new(Simulated::new());
        let kernel = Parts { clock, ..Parts::on(Arc::new(store.clone())) }.kernel();
        round(&kernel).await.unwrap();
        let left = store.query(tables::SWEEPS[0].due(i64::MAX, 10)).await.unwrap();
        assert_eq!(left[0].int(0).unwrap(), 1);
        for (subject, there) in [("old", 0), ("new", 1)] {
            assert_eq!(store.query(tables::sequence_find("acme", "a", subject)).await.unwrap().len(), there);
        }
        let peers = store.query(tables::peers("local", 10)).await.unwrap();
        assert_eq!((peers[0].text(0).unwrap(), peers[0].text(1).unwrap()), ("orchestr8", "healthy"));
    }

    #[tokio::test]
    async fn kno_3_old_names_are_told_of_once_each_quarter_also_over_restarts() {
        let store = Arc::new(memory(&[tables::MIGRATIONS]));
        let clock = Arc::new(Simulated::new());
        let mut told = Vec::new();
        for days in [0, 1, 90, 0] {
            clock.advance(Duration::from_secs(days * 86_400));
            let parts = Parts::on(store.clone());
            let kernel = Parts { clock: clock.clone(), ..parts }.kernel();
            let mut listener = kernel.bus().subscribe(&Filter::names([DEPRECATION])).unwrap();
            round(&kernel).await.unwrap();
            let kept: Vec<String> = notices(&kernel)
                .await
                .unwrap()
                .iter()
                .map(|notice| format!("{} {} {}", notice["event"], notice["alias"], notice["eol"]))
                .collect();
            let wanted = ["codex", "cursor"].map(|alias| format!("\"roles.deprecation\" \"{alias}\" null"));
            assert_eq!(kept, wanted, "whoever comes later can still read of it");
            drop(kernel);
            while let Some(event) = listener.next().await {
                told.push(format!("{} {}", event.data["alias"], event.data["quarter"]));
            }
        }
        assert_eq!(
            told,
            [
                "\"cursor\" \"2026-Q1\"",
                "\"codex\" \"2026-Q1\"",
                "\"cursor\" \"2026-Q2\"",
                "\"codex\" \"2026-Q2\""
            ]
        );
    }
}
