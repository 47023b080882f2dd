//! `plans.list` and `plans.get`: the plans of a tenant.

use orchestr8_contract::Code;
use orchestr8_kernel::{Args, Context};
use serde_json::{Value, json};

use crate::approvals::PlanRecord;
use crate::hub::Hub;
use crate::limits;
use crate::refusal::Refusal;
use crate::tables;

pub async fn list(hub: Hub, args: Args, context: Context) -> Result<Value, Refusal> {
    let limit = args.get("limit").and_then(Value::as_i64).unwrap_or(limits::PLANS_PAGE);
    let (status, path) =
        (args.text("status").unwrap_or_default(), args.text("workspace").unwrap_or_default());
    let statement = tables::plans_page(context.principal.tenant.as_str(), status, path, limit);
    let rows = hub.ports().store.query(statement).await.map_err(Refusal::of_store)?;
    let plans: Result<Vec<Value>, _> =
        rows.iter().map(|row| PlanRecord::read(row).map(|plan| plan.to_json(false))).collect();
    Ok(json!({"plans": plans.map_err(Refusal::of_store)?}))
}

pub async fn get(hub: Hub, args: Args, context: Context) -> Result<Value, Refusal> {
    let hash = args.text("id").unwrap_or_default();
    let plan = find(&hub, &context, hash, args.text("workspace")).await?;
    plan.map(|plan| plan.to_json(true)).ok_or_else(|| missing(hash))
}

/// The plan of the caller's tenant under a hash: in a workspace, or in the only one that has it.
pub async fn find(
    hub: &Hub,
    context: &Context,
    hash: &str,
    workspace: Option<&str>,
) -> Result<Option<PlanRecord>, Refusal> {
    let tenant = context.principal.tenant.as_str();
    let rows =
        hub.ports().store.query(tables::plans_by_hash(tenant, hash)).await.map_err(Refusal::of_store)?;
    let found: Result<Vec<PlanRecord>, _> = rows.iter().map(PlanRecord::read).collect();
    let mut found = found.map_err(Refusal::of_store)?;
    if let Some(workspace) = workspace {
        found.retain(|plan| plan.path == workspace);
    }
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => {
            let workspaces: Vec<&str> = found.iter().map(|plan| plan.path.as_str()).collect();
            let message = format!("several workspaces have plan {hash}; say which one");
            Err(Refusal::new(Code::InvalidArgument, message)
                .with("field", "workspace")
                .with("workspaces", workspaces))
        }
    }
}

pub fn missing(hash: &str) -> Refusal {
    Refusal::new(Code::PlanNotFound, format!("there is no plan {hash}"))
        .with("hint", "`orchestr8 plans list` shows those there are")
}
