//! `executions.get`: an execution as it is, as it becomes, or as it was.

use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_kernel::grant::token_ended;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{answer, execution, execution_id, hidden, number, object, reading};
use crate::engine::view;
use crate::runtime::{Hub, Loaded, Row, load};

/// The longest a caller may wait.
pub const LONGEST_WAIT_MS: u64 = 60_000;

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "executionId": execution_id(),
            "waitMs": {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT_MS},
            "until": {"enum": ["final", "change"]},
            "after": {"type": "integer", "minimum": 0, "description": "With until change: the last sequence the caller has seen."},
            "at": {"type": "integer", "minimum": 0, "description": "The state after this entry of the journal."},
            "show": {"enum": ["all", "result"], "description": "Only the result: status, outputs, errors and times."}
        }),
        &["executionId"],
    );
    hidden("executions.get", "Shows an execution.", input, reading(), hub, get)
}

async fn get(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let up_to = number(&args, "at").unwrap_or(u64::MAX);
    if up_to != u64::MAX {
        let row = execution(&hub, &args, &context).await?;
        return answer(load::whole(&hub, row, up_to).await?.resource(hub.ports().clock.now_ms()));
    }
    let wait = Wait {
        ms: number(&args, "waitMs").unwrap_or(0).min(LONGEST_WAIT_MS),
        until_change: args.text("until") == Some("change"),
        after: number(&args, "after"),
    };
    answer(look(&hub, &args, &wait, &context).await?)
}

pub struct Wait {
    pub ms: u64,
    /// Until anything changes, instead of until the end.
    pub until_change: bool,
    pub after: Option<u64>,
}

/// The execution the arguments name: at once, once it has ended, once it has changed, or once the wait is over.
pub async fn look(hub: &Hub, args: &Args, wait: &Wait, context: &Context) -> Result<Value, Fault> {
    if wait.ms == 0 {
        return find(hub, args, wait, context).await;
    }
    tokio::select! {
        biased;
        () = context.principal.token_ended() => Err(token_ended()),
        found = find(hub, args, wait, context) => found,
    }
}

async fn find(hub: &Hub, args: &Args, wait: &Wait, context: &Context) -> Result<Value, Fault> {
    let (tenant, id) = (context.principal.tenant.as_str(), args.text("executionId").unwrap_or_default());
    let clock = &hub.ports().clock;
    let began_us = clock.elapsed_us();
    let left_ms = || wait.ms.saturating_sub(clock.elapsed_us().saturating_sub(began_us) / 1000);
    // Who waits for the end of what runs here, or asks right after it, needs nothing of the store.
    if !wait.until_change {
        if wait.ms > 0
            && let Some(end) = hub.end_of(tenant, id)
        {
            wait_for_end(hub, end, wait.ms, context).await;
        }
        if let Some(ended) = hub.recent(tenant, id) {
            if args.text("show") == Some("result") {
                return Ok(view::result(&ended.state));
            }
            return Ok(view::resource(&ended.state, &ended.facts, hub.ports().clock.now_ms()));
        }
    }
    let row = execution(hub, args, context).await?;
    let loaded = match wait.until_change {
        true => wait_for_change(hub, row, wait, context).await?,
        false => loaded_at_end(hub, args, row, left_ms, context).await?,
    };
    Ok(loaded.resource(hub.ports().clock.now_ms()))
}

/// The execution once it has ended, or once the wait is over. One that was taken up again between two looks is waited for again.
async fn loaded_at_end(
    hub: &Hub,
    args: &Args,
    mut row: Row,
    left_ms: impl Fn() -> u64,
    context: &Context,
) -> Result<Loaded, Fault> {
    loop {
        let mut may_wait = left_ms() > 0;
        if may_wait && !row.status.is_final() {
            let end = hub.end_of_stored(&row);
            // It may have ended before the caller listened.
            let ended = execution(hub, args, context).await?.status.is_final();
            if let Some(end) = end.filter(|_| !ended) {
                may_wait = wait_for_end(hub, end, left_ms(), context).await;
            }
            hub.unwatch(&row.id);
            row = execution(hub, args, context).await?;
        }
        let loaded = load::whole(hub, row, u64::MAX).await?;
        if !may_wait || loaded.state.status.is_final() {
            return Ok(loaded);
        }
        row = execution(hub, args, context).await?;
    }
}

/// True: it has ended; false: the wait is over.
async fn wait_for_end(hub: &Hub, mut end: watch::Receiver<()>, ms: u64, context: &Context) -> bool {
    tokio::select! {
        // Nothing is ever sent: the sender is dropped at the end.
        _ = end.changed() => true,
        () = hub.ports().clock.sleep(Duration::from_millis(ms)) => false,
        () = context.cancel.fired() => false,
        () = hub.closing() => false,
    }
}

async fn wait_for_change(hub: &Hub, row: Row, wait: &Wait, context: &Context) -> Result<Loaded, Fault> {
    let (num, tenant, id) = (row.num, row.tenant.clone(), row.id.clone());
    let mut row = row;
    let over = hub.ports().clock.sleep(Duration::from_millis(wait.ms));
    tokio::pin!(over);
    loop {
        let follow = hub.follow(num);
        let loaded = load::whole(hub, row, u64::MAX).await?;
        let changed = wait.after.is_none_or(|after| loaded.tail.seq > after);
        if wait.ms == 0 || loaded.state.status.is_final() || changed {
            return Ok(loaded);
        }
        let seq = loaded.tail.seq;
        let woken = async {
            match follow {
                Some(mut seen) => {
                    // A closed channel means that its actor has gone: the end, or a long wait.
                    let _ = seen.wait_for(|now| *now > seq).await;
                }
                None => hub.ports().clock.sleep(IDLE_LOOK).await,
            }
        };
        tokio::select! {
            () = woken => {}
            () = &mut over => return Ok(loaded),
            () = context.cancel.fired() => return Ok(loaded),
            () = hub.closing() => return Ok(loaded),
        }
        row = load::find(hub, tenant.as_str(), &id).await?.ok_or_else(|| super::unknown_execution(&id))?;
    }
}

/// An execution that only waits has nobody to tell of it; it is looked at this often.
const IDLE_LOOK: Duration = Duration::from_millis(100);
