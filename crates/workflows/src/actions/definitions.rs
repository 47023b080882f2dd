//! Stored workflows, and what would be wrong with one.

use std::sync::Arc;

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::{answer, changing, hidden, object, page, reading};
use crate::definition::{Problem, Problems, lint};
use crate::limits::PAGE;
use crate::notifications;
use crate::runtime::Hub;
use crate::stored;

pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let id = json!({"type": "string", "minLength": 1, "maxLength": 128});
    let definition = json!({"type": "object", "description": "A definition."});
    Ok(vec![
        hidden(
            "workflows.validate",
            "Says everything that is wrong with a definition.",
            object(json!({"workflow": {}}), &["workflow"]),
            reading(),
            hub,
            validate,
        )?,
        hidden(
            "workflows.apply",
            "Stores a workflow under its id.",
            object(json!({"workflow": definition}), &["workflow"]),
            changing(),
            hub,
            apply,
        )?,
        hidden(
            "workflows.list",
            "Lists stored workflows.",
            object(
                json!({"search": {"type": "string"}, "cursor": {"type": "string"},
                       "limit": {"type": "integer", "minimum": 1, "maximum": PAGE}}),
                &[],
            ),
            reading(),
            hub,
            list,
        )?,
        hidden(
            "workflows.show",
            "Shows a stored workflow with its revisions.",
            object(json!({"id": id, "revision": {"type": "integer", "minimum": 1}}), &["id"]),
            reading(),
            hub,
            show,
        )?,
        hidden(
            "workflows.delete",
            "Deletes a stored workflow; its executions go on.",
            object(json!({"id": id}), &["id"]),
            changing(),
            hub,
            delete,
        )?,
    ])
}

async fn validate(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    match hub.read_definition_of(&Arc::new(args), &context.principal).await? {
        Ok(workflow) => {
            let steps: Vec<&str> = workflow.steps.iter().map(|step| &*step.id).collect();
            let agents: Vec<&str> = hub.agents().all().map(|agent| agent.id()).collect();
            let mut warnings = lint::warnings(&workflow, Some(&agents));
            let tenant = context.principal.tenant.as_str();
            warnings.extend(notifications::unknown_names(&hub, tenant, &workflow).await?);
            let warnings: Vec<Value> = warnings.iter().map(Problem::to_value).collect();
            answer(
                json!({"valid": true, "problems": [], "warnings": warnings, "id": workflow.id, "name": workflow.name,
                          "version": workflow.version, "hash": workflow.hash, "steps": steps}),
            )
        }
        Err(problems) => answer(json!({"valid": false, "problems": problems.to_value(), "warnings": []})),
    }
}

async fn apply(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let workflow = hub.read_definition_of(&Arc::new(args), &context.principal).await?.map_err(Fault::from)?;
    // A notification to a name that is misspelt would be missed when it is needed.
    let unknown = notifications::unknown_names(&hub, context.principal.tenant.as_str(), &workflow).await?;
    if !unknown.is_empty() {
        return Err(Fault::from(Problems(unknown)).into());
    }
    let applied = stored::apply(&hub, &context.principal, &workflow).await?;
    Ok(Reply::new(Output::json(applied.answer), applied.effects))
}

async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let limit = page(&args, 100, PAGE);
    let after = args.text("cursor").unwrap_or_default();
    let tenant = context.principal.tenant.as_str();
    let mut found = stored::list(&hub, tenant, after, args.text("search"), limit + 1).await?;
    let size = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = found.len() > size;
    found.truncate(size);
    let next = found.last().filter(|_| more).map(|last| last.id.clone());
    let workflows: Vec<Value> = found.iter().map(stored::Revision::summary).collect();
    answer(json!({"workflows": workflows, "nextCursor": next}))
}

async fn show(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let revision = args.get("revision").and_then(Value::as_i64);
    let id = args.text("id").unwrap_or_default();
    answer(stored::show(&hub, context.principal.tenant.as_str(), id, revision).await?)
}

async fn delete(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let id = args.text("id").unwrap_or_default();
    let effects = stored::delete(&hub, context.principal.tenant.as_str(), id).await?;
    Ok(Reply::new(Output::json(json!({"id": id, "deleted": true})), effects))
}
