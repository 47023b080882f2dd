//! `workflows.execute`: accepts an execution. With a key, a repeat gets the same execution.

use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};
use std::sync::Arc;

use super::{changing, hidden, map, object};
use crate::authors::Authors;
use crate::definition::model::Workflow;
use crate::runtime::{Accepted, Hub, Request};
use crate::stored;
use crate::tags::{ExecutionTags, TagSources};

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "workflow": {"type": "object", "description": "A definition."},
            "workflowId": {"type": "string", "description": "Instead: the id of a stored workflow."},
            "version": {"type": "string"},
            "revision": {"type": "integer", "minimum": 1, "description": "The revision of the stored workflow [default: the newest]."},
            "inputs": {"type": "object"},
            "tags": {"description": "What the execution is found by, such as {\"customer\": \"42\"}."},
            "context": {
                "type": "object", "additionalProperties": false,
                "properties": {
                    "correlationId": {"type": "string", "minLength": 1, "maxLength": 256},
                    "timeout": {"type": "integer", "minimum": 1},
                    "variables": {"type": "object"}
                }
            },
            "priority": {"type": "integer", "minimum": -100, "maximum": 100}
        }),
        &[],
    );
    // Its own journal is the record of an execution; the kernel's would say the same again.
    let policy = Policy { journalled: false, ..changing() };
    hidden("workflows.execute", "Starts an execution of a workflow.", input, policy, hub, execute)
}

async fn execute(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let args = Arc::new(args);
    let definition = definition(&hub, &args, &context).await?;
    let accepted = accept(&hub, definition, &args, &context)?;
    Ok(reply(&hub, accepted))
}

/// The workflow that is given, or the stored one that is named.
pub async fn definition(
    hub: &Hub,
    args: &Arc<Args>,
    context: &Context,
) -> Result<(Arc<Workflow>, Authors), Fault> {
    match (args.get("workflow"), args.text("workflowId")) {
        (Some(_), Some(_)) => {
            Err(Fault::invalid("/workflowId: give workflow or workflowId, not both")
                .with("path", "/workflowId"))
        }
        (Some(_), None) if args.get("revision").is_some() => {
            Err(Fault::invalid("/revision: only a stored workflow has revisions; give workflowId")
                .with("path", "/revision"))
        }
        (Some(_), None) => Ok((hub.read_definition_of(args, &context.principal).await??, Authors::default())),
        (None, Some(id)) => {
            let tenant = context.principal.tenant.as_str();
            let found = match (args.get("revision").and_then(Value::as_i64), args.text("version")) {
                (Some(revision), Some(version)) => {
                    stored::pinned_with_version(hub, tenant, id, (revision, version)).await?
                }
                (Some(revision), None) => stored::pinned(hub, tenant, id, revision).await?,
                (None, version) => stored::find(hub, tenant, id, version).await?,
            };
            Ok(found.into_parts())
        }
        (None, None) => {
            Err(Fault::invalid("/workflow: a definition is missing; or name a stored one with workflowId")
                .with("path", "/workflow"))
        }
    }
}

pub fn accept(
    hub: &Hub,
    (workflow, authors): (Arc<Workflow>, Authors),
    args: &Args,
    context: &Context,
) -> Result<Accepted, Fault> {
    let given = args.get("context");
    let mut variables = given
        .and_then(|given| given.get("variables"))
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    variables.extend(map(args, "inputs"));
    let correlation = match given.and_then(|given| given.get("correlationId")).and_then(Value::as_str) {
        Some(text) => CorrelationId::parse(text).map_err(|wrong| {
            Fault::invalid(format!("/context/correlationId: {wrong}")).with("path", "/context/correlationId")
        })?,
        None => context.correlation.clone(),
    };
    hub.accept(Request {
        workflow,
        variables,
        correlation,
        trace: context.trace,
        principal: context.principal.clone(),
        authors,
        timeout_ms: given.and_then(|given| given.get("timeout")).and_then(Value::as_u64),
        priority: args
            .get("priority")
            .and_then(Value::as_i64)
            .and_then(|priority| i32::try_from(priority).ok()),
        tags: TagSources { given: ExecutionTags::read(args.get("tags"), "/tags")?, ..TagSources::default() },
        parent: None,
        forked_from: None,
        kept: Vec::new(),
        generations: Vec::new(),
        schedule: None,
    })
}

fn reply(hub: &Hub, mut accepted: Accepted) -> Reply {
    let output = started(hub, &accepted);
    let effects = std::mem::take(&mut accepted.batch);
    let hub = hub.clone();
    Reply::new(Output::json(output), effects).then(move || hub.launch(accepted))
}

/// What whoever starts an execution is told.
pub fn started(hub: &Hub, accepted: &Accepted) -> Value {
    let workflow = accepted.workflow();
    json!({
        "executionId": accepted.id, "status": accepted.status, "workflowId": workflow.id, "workflowName": workflow.name,
        "workflowVersion": workflow.version, "correlationId": accepted.correlation(),
        "queueDepth": hub.depth().waiting_executions,
    })
}
