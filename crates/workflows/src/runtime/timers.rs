//! The timers of all executions: they live in the store, and one loop waits for the next.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_kernel::log;
use serde_json::json;

use super::{Hub, fault, tables};
use crate::engine::event::Task;
use crate::schedules::{self, Look};
use crate::triggers;

/// Timers fired at once.
const PAGE: i64 = 500;

/// Timers looked at when most of them may belong to others.
const PAGE_ALONE: i64 = 10_000;

/// Looked at this often even if nothing is due, since the clock of the machine may be set.
const LONGEST: Duration = Duration::from_secs(30);

/// A fired timer is gone once its execution has recorded it; that is looked at this often.
const AGAIN: Duration = Duration::from_millis(50);

/// Nothing takes this long to record; a timer that is still there by then is fired once more.
const LOST_MS: i64 = 60_000;

/// Timers that were fired and are not gone yet, with the time of that. One that is set again is due at another time.
type Fired = HashMap<DueTimer, i64>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct DueTimer {
    execution: i64,
    task: String,
    due_ms: i64,
}

pub async fn run(hub: Hub) {
    let mut fired = Fired::new();
    let since_ms = hub.0.now_ms();
    loop {
        let wait = match fire(&hub, &mut fired, since_ms).await {
            Ok(wait) => wait,
            Err(fault) => {
                hub.0.log().error("timers could not be read", json!({"error": log::error(&fault)}));
                Duration::from_secs(1)
            }
        };
        tokio::select! {
            () = hub.0.stop.cancelled() => return,
            () = hub.0.timers.notified() => {}
            () = hub.0.ports.clock.sleep(wait.min(LONGEST)) => {}
        }
    }
}

/// Fires what is due and says how long to wait for the next.
async fn fire(hub: &Hub, fired: &mut Fired, since_ms: i64) -> Result<Duration, Fault> {
    let now_ms = hub.0.now_ms();
    let store = &hub.0.ports.store;
    let is_alone = hub.0.own.get().is_some();
    let page = if is_alone { PAGE_ALONE } else { PAGE };
    let rows = store.query(tables::timers_due(now_ms, page)).await.map_err(fault)?;
    let mut due = HashSet::new();
    for row in &rows {
        let timer = DueTimer {
            execution: row.int(0).map_err(fault)?,
            task: row.text(1).map_err(fault)?.to_owned(),
            due_ms: row.int(2).map_err(fault)?,
        };
        if !hub.0.is_own(timer.execution) {
            continue;
        }
        let is_new = fired.get(&timer).is_none_or(|fired_ms| now_ms - fired_ms >= LOST_MS);
        if is_new {
            fired.insert(timer.clone(), now_ms);
        }
        let (own, told, at) = (hub.clone(), task(&timer.task), timer.execution);
        let wake = async move { own.wake_due(at, told).await };
        if is_new && let Err(fault) = hub.for_a_while(wake).await {
            fired.remove(&timer);
            hub.0.log().warn("a timer waits", json!({"error": log::error(&fault)}));
        }
        due.insert(timer);
    }
    // What is not due any more has been recorded, or was set again.
    fired.retain(|timer, _| due.contains(timer));
    let schedules = match is_alone {
        true => None,
        false => schedules::fire(hub, Look { now_ms, since_ms }).await?,
    };
    let triggers = match is_alone {
        true => None,
        false => triggers::pending::fire(hub, now_ms).await?,
    };
    if !due.is_empty() {
        return Ok(AGAIN);
    }
    let next = store.query(tables::timer_next(now_ms)).await.map_err(fault)?;
    let next_ms = next.first().and_then(|row| row.int(0).ok());
    let until = |moment: Option<i64>| {
        moment.map_or(LONGEST, |ms| Duration::from_millis(u64::try_from(ms - now_ms).unwrap_or(1).max(1)))
    };
    Ok(until(next_ms).min(until(schedules)).min(until(triggers)))
}

/// The task a timer names: `3`, `3.17`, `3u`; `all` is the whole execution.
fn task(name: &str) -> Option<Task> {
    let (rest, undo) = name.strip_suffix('u').map_or((name, false), |rest| (rest, true));
    let (step, part) = match rest.split_once('.') {
        Some((step, part)) => (step, part.parse().ok()),
        None => (rest, None),
    };
    Some(Task { step: step.parse().ok()?, part, undo })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_back_from_its_name() {
        for one in [Task::of(3), Task::part(3, 17), Task::undo(12)] {
            assert_eq!(task(&one.to_string()), Some(one));
        }
        assert_eq!(task("all"), None);
    }
}
