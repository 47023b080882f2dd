//! `aacp.pairs`: between whom messages go, how far each side has them, and what was not acknowledged.

use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::{Cell, Error, Row};
use orchestr8_kernel::{Action, schema};
use serde_json::{Value, json};

use super::{agent_schema, answer, object, reading, working};
use crate::aacp::{Hub, rows};
use crate::limits;
use crate::tables;

pub fn list(hub: &Hub) -> Result<Action, schema::Error> {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": limits::PAGE});
    let input = object(json!({"agentId": agent_schema(), "limit": limit}), &[]);
    let about = "Lists pairs of agents that messages go between, with what the receiver has not acknowledged (AACP-ACK).";
    let action = working(("aacp.pairs", about), input, reading(), hub, |hub, args, context| async move {
        let limit = args.get("limit").and_then(Value::as_i64).unwrap_or(100).clamp(1, limits::PAGE);
        let tenant = context.principal.tenant.as_str();
        let found = hub.query(tables::pair_list(tenant, args.text("agentId"), hub.now_ms(), limit)).await?;
        let pairs = found.iter().map(shown).collect::<Result<Vec<_>, _>>().map_err(store_fault)?;
        answer(json!({"pairs": pairs}))
    })?;
    Ok(action.titled("List pairs of agents").hidden())
}

fn shown(row: &Row) -> Result<Value, Error> {
    let mut told = json!({
        "sourceAgentId": row.text(0)?, "targetAgentId": row.text(1)?, "seq": rows::number(row, 2)?, "ack": rows::number(row, 3)?,
        "unacknowledged": rows::number(row, 4)?, "held": rows::number(row, 5)?,
    });
    if !matches!(row.0.get(6), None | Some(Cell::Null)) {
        told["waitingSince"] = iso(row.int(6)?).into();
    }
    Ok(told)
}
