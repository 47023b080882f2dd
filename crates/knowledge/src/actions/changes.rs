//! The feed of changes: every revision of every document of a tenant in the order of their commits, for those who follow them.

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Row;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::page;
use crate::hub::{Hub, tenant};
use crate::limits::{PAGE, PAGE_MAX};
use crate::outbox;
use crate::reading::tables;
use crate::record::{Op, read};

/// Without `after` it lists nothing and says where the feed ends.
pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let tenant = tenant(&context);
    let Some(after) = args.get("after").and_then(Value::as_i64) else {
        let end = hub.rows(tables::feed_end(tenant)).await?;
        let last = end.first().map_or(Ok(0), |row| row.int(0)).map_err(read)?;
        return Ok(Output::json(json!({"changes": [], "last": last})).into());
    };
    let rows = hub.rows(tables::feed(tenant, after, page(&args, PAGE, PAGE_MAX))).await?;
    let changes = rows.iter().map(change).collect::<Result<Vec<_>, Fault>>()?;
    let last = changes.last().map_or(json!(after), |change| change["position"].clone());
    Ok(Output::json(json!({"changes": changes, "last": last})).into())
}

fn change(row: &Row) -> Result<Value, Fault> {
    let shown = || {
        let op = row.text(5)?;
        let event = Op::ALL.into_iter().find(|one| one.as_str() == op).map(outbox::event_of);
        Ok(
            json!({"position": row.int(0)?, "event": event, "document_id": row.text(1)?, "revision": row.int(2)?,
                  "at": iso(row.int(3)?), "by": row.text(4)?, "op": op, "title": row.text(6)?, "parent_id": row.text(7)?,
                  "correlation_id": row.optional_text(8)?}),
        )
    };
    shown().map_err(read)
}
