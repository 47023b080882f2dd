//! `executions.artifact`: the result of a step that was kept as an artifact.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::json;

use super::{answer, execution, execution_id, hidden, object, reading};
use crate::runtime::{Hub, fault, tables};

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let artifact = json!({"type": "string", "minLength": 1, "maxLength": 64});
    let input = object(
        json!({"executionId": execution_id(), "artifactId": artifact}),
        &["executionId", "artifactId"],
    );
    hidden("executions.artifact", "Shows a result that was kept as an artifact.", input, reading(), hub, show)
}

async fn show(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    let id = args.text("artifactId").unwrap_or_default();
    let find = tables::artifact_find(row.tenant.as_str(), row.num, id);
    let rows = hub.ports().store.query(find).await.map_err(fault)?;
    let Some(found) = rows.first() else {
        return Err(Fault::new(Code::NotFound, format!("the execution has no artifact named '{id}'"))
            .with("artifactId", id)
            .into());
    };
    let text = |column| found.text(column).map_err(fault);
    answer(json!({"contentType": text(0)?, "sha256": text(1)?, "body": text(2)?}))
}
