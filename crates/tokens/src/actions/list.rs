//! `tokens.list`: what tokens there are and when they were last used.

use std::sync::Arc;

use orchestr8_contract::Output;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::tenant_of;
use crate::limits::PAGE;
use crate::record::TokenRecord;
use crate::{Inner, tables};

pub(super) fn input() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "tenant": {"type": "string", "minLength": 1, "maxLength": 128},
            "cursor": {"type": "string", "pattern": "^[a-z0-9]{1,32}$"},
            "limit": {"type": "integer", "minimum": 1, "maximum": PAGE},
        },
    })
}

/// Without a tenant: the caller's own, or all for those who administer the machine.
pub(super) async fn run(tokens: Arc<Inner>, args: Args, context: Context) -> Result<Reply, Halt> {
    let asked = tenant_of(&args, &context.principal)?;
    let own = || (!context.principal.administers_machine()).then(|| context.principal.tenant.clone());
    let tenant = asked.or_else(own);
    let limit = args.get("limit").and_then(Value::as_i64).unwrap_or(PAGE).clamp(1, PAGE);
    let page = tables::page(
        tenant.as_ref().map(|tenant| tenant.as_str()),
        args.text("cursor").unwrap_or_default(),
        limit,
    );
    let ports = tokens.kernel.ports();
    let rows = ports.store.query(page).await.map_err(store_fault)?;
    let records = rows.iter().map(TokenRecord::read).collect::<Result<Vec<_>, _>>()?;
    let (used, now_ms) = (tokens.table.last_used(), ports.clock.now_ms());
    let shown: Vec<Value> =
        records.iter().map(|record| record.shown(used.get(record.id.as_str()).copied(), now_ms)).collect();
    let is_full = i64::try_from(records.len()).is_ok_and(|count| count == limit);
    let next = records.last().filter(|_| is_full).map(|record| record.id.clone());
    Ok(Output::json(json!({"tokens": shown, "nextCursor": next})).into())
}
