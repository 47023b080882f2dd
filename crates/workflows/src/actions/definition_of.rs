//! `executions.definition`: the workflow as it was written when the execution began, stored by name or not.

use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::json;

use super::{answer, execution, execution_id, hidden, object, reading};
use crate::runtime::{Hub, load};

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(json!({"executionId": execution_id()}), &["executionId"]);
    hidden(
        "executions.definition",
        "Shows the workflow that an execution runs.",
        input,
        reading(),
        hub,
        definition,
    )
}

async fn definition(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    let seed = load::seed(&hub, &row).await?;
    answer(json!({"executionId": &*row.id, "hash": row.hash, "workflow": &*seed.identity.workflow.source}))
}
