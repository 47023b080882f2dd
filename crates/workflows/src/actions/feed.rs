//! `executions.events`: the live feed of all journals. Ids grow, so a reader goes on where it stopped.

use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::get::LONGEST_WAIT_MS;
use super::{answer, hidden, number, object, page, reading};
use crate::runtime::{FEED, Hub, fault, tables};

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "after": {"type": "integer", "minimum": 0, "description": "The last id seen; the newest if absent."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
            "executionId": {"type": "string"},
            "waitMs": {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT_MS}
        }),
        &[],
    );
    hidden("executions.events", "Follows what happens in executions.", input, reading(), hub, follow)
}

async fn follow(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let store = &hub.ports().store;
    let mut watch = store.watch(FEED);
    let after = match number(&args, "after") {
        Some(after) => i64::try_from(after).unwrap_or(i64::MAX),
        None => {
            let end = store.query(tables::feed_end()).await.map_err(fault)?;
            end.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)?
        }
    };
    let (tenant, limit) = (context.principal.tenant.as_str(), page(&args, 200, 1000));
    let over = hub.ports().clock.sleep(Duration::from_millis(number(&args, "waitMs").unwrap_or(0)));
    tokio::pin!(over);
    loop {
        watch.borrow_and_update();
        let rows =
            store.query(tables::feed(tenant, after, args.text("executionId"), limit)).await.map_err(fault)?;
        let waits = number(&args, "waitMs").unwrap_or(0) > 0;
        if !rows.is_empty() || !waits {
            let events: Vec<Value> = rows.iter().map(event).collect::<Result<_, Fault>>()?;
            let last = events.last().map_or(json!(after), |event| event["id"].clone());
            return answer(json!({"events": events, "last": last}));
        }
        tokio::select! {
            changed = watch.changed() => {
                if changed.is_err() {
                    return answer(json!({"events": [], "last": after}));
                }
            }
            () = &mut over => return answer(json!({"events": [], "last": after})),
            () = context.cancel.fired() => return answer(json!({"events": [], "last": after})),
            () = hub.closing() => return answer(json!({"events": [], "last": after})),
        }
    }
}

/// An entry of a journal as an event.
pub fn event(row: &store::Row) -> Result<Value, Fault> {
    let kind = row.text(1).map_err(fault)?;
    let data: Value = serde_json::from_str(row.text(4).map_err(fault)?).unwrap_or(Value::Null);
    let cancelled = data["status"] == "cancelled";
    let mut event = json!({
        "id": row.int(0).map_err(fault)?, "type": word(kind, cancelled), "executionId": row.text(6).map_err(fault)?,
        "workflowId": row.text(7).map_err(fault)?, "timestamp": iso(row.int(5).map_err(fault)?), "data": data,
        "level": row.text(3).map_err(fault)?, "entry": kind,
    });
    if let Some(step) = row.optional_text(2).map_err(fault)? {
        event["stepId"] = step.into();
    }
    Ok(event)
}

/// The word of the contract for an entry of the journal.
fn word(kind: &str, cancelled: bool) -> &'static str {
    match kind {
        "execution-start" => "workflow.started",
        "execution-complete" => "workflow.completed",
        "execution-failed" if cancelled => "workflow.cancelled",
        "execution-failed" => "workflow.failed",
        "cancellation-complete" | "cancellation-forced" => "workflow.cancelled",
        "compensation" => "workflow.compensating",
        "execution-compensated" => "workflow.compensated",
        "execution-paused" => "workflow.paused",
        "execution-resumed" | "execution-retried" => "workflow.resumed",
        "step-start" => "step.started",
        "step-complete" => "step.completed",
        "step-failed" | "timeout" => "step.failed",
        "step-retry" => "step.retrying",
        "step-skipped" => "step.skipped",
        "step-compensating" => "step.compensating",
        "step-compensated" => "step.compensated",
        "step-compensation-failed" => "step.compensation_failed",
        _ => "log.entry",
    }
}

#[cfg(test)]
mod tests {
    use orchestr8_testing::Table;

    use super::word;

    #[test]
    fn the_table_of_live_events() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/workflows/tables/live-events.md");
        Table::read(file, "Names").holds(&["event"], |row| vec![word(row.get("entry"), false).to_owned()]);
        assert_eq!(
            word("execution-failed", true),
            "workflow.cancelled",
            "its status says that it was cancelled"
        );
    }
}
