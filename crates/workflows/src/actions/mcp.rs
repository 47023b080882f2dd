//! Workflows for models: tools (`send_event` is with `events.send`), two kinds of resources, two prompts.

use std::sync::Arc;

use orchestr8_contract::content::{PromptMessage, ResourceContents, ResourceData, Role};
use orchestr8_contract::{Content, Fault, Output};
use orchestr8_kernel::action::{Address, PromptArgument, Resource};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Map, Value, json};

use super::get::{LONGEST_WAIT_MS, Wait, look};
use super::{
    changing, control, execute, execution, execution_id, number, object, reading, unknown_execution, working,
};
use crate::engine::event::{Event, Status};
use crate::runtime::{Hub, Loaded, load};
use crate::{definition, stored};

pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    Ok(vec![
        run(hub)?,
        status(hub)?,
        cancel(hub)?,
        workflow(hub)?,
        execution_resource(hub)?,
        create(hub)?,
        analyze(hub)?,
    ])
}

/// What the tools answer with.
pub fn envelope() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": {"enum": ["running", "ok", "error"]}, "executionId": {"type": "string"},
            "workflowId": {"type": "string"}, "data": {}, "error": {}, "correlationId": {"type": "string"}
        },
        "required": ["status", "correlationId"]
    })
}

fn run(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "workflowId": {"type": "string", "description": "The id of a stored workflow."},
            "workflow": {"type": "object", "description": "Instead: a definition, see the prompt create_workflow."},
            "inputs": {"type": "object", "description": "What the workflow works on."},
            "tags": {"type": "object", "description": "What the execution is found by, such as {\"customer\": \"42\"}."},
            "options": {"type": "object", "additionalProperties": false, "properties": {
                "timeout": {"type": "integer", "minimum": 1, "description": "Milliseconds for the whole execution."},
                "priority": {"type": "integer", "minimum": -100, "maximum": 100},
                "version": {"type": "string", "description": "Of the stored workflow."},
                "revision": {"type": "integer", "minimum": 1, "description": "Of the stored workflow."}}}
        }),
        &[],
    );
    let about = "Starts a workflow and answers at once with its executionId; ask get_status how it goes.";
    let tool = working("run_workflow", about, input, changing(), hub, run_workflow)?.giving(envelope())?;
    Ok(tool.titled("Run a workflow"))
}

async fn run_workflow(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let mut given = args.into_value();
    let options = given["options"].take();
    if let Some(map) = given.as_object_mut() {
        map.remove("options");
        for name in ["priority", "version", "revision"] {
            if !options[name].is_null() {
                map.insert(name.to_owned(), options[name].clone());
            }
        }
        if !options["timeout"].is_null() {
            map.insert("context".to_owned(), json!({"timeout": options["timeout"]}));
        }
    }
    let args = match given {
        Value::Object(given) => Arc::new(Args::new(given)),
        _ => Arc::new(Args::new(Map::new())),
    };
    let workflow = execute::definition(&hub, &args, &context).await?;
    let mut accepted = execute::accept(&hub, workflow, &args, &context)?;
    let data = execute::started(&hub, &accepted);
    let answer = json!({"status": "running", "executionId": accepted.id, "workflowId": data["workflowId"],
                        "data": {"status": accepted.status}, "correlationId": data["correlationId"]});
    let effects = std::mem::take(&mut accepted.batch);
    Ok(Reply::new(Output::json(answer), effects).then(move || hub.launch(accepted)))
}

fn status(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({"executionId": execution_id(),
               "waitForMs": {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT_MS,
                             "description": "Wait for its end, at most this long."}}),
        &["executionId"],
    );
    let about =
        "Says how an execution goes, with its outputs once it has ended. Waits for the end if asked to.";
    let tool = working("get_status", about, input, reading(), hub, get_status)?.giving(envelope())?;
    Ok(tool.titled("Ask how an execution goes"))
}

async fn get_status(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let wait = Wait { ms: number(&args, "waitForMs").unwrap_or(0), until_change: false, after: None };
    Ok(Output::json(told(&look(&hub, &args, &wait, &context).await?)).into())
}

fn told(resource: &Value) -> Value {
    let word = match resource["status"].as_str().and_then(Status::parse) {
        Some(Status::Completed) => "ok",
        Some(Status::Failed | Status::Cancelled | Status::Compensated) => "error",
        Some(
            Status::Queued
            | Status::Running
            | Status::Waiting
            | Status::Paused
            | Status::Cancelling
            | Status::Compensating,
        )
        | None => "running",
    };
    let mut answer = json!({"status": word, "executionId": resource["executionId"], "workflowId": resource["workflow"]["id"],
                            "correlationId": resource["correlationId"],
                            "data": {"status": resource["status"], "outputs": resource["outputs"], "steps": resource["steps"],
                                     "duration": resource["duration"], "pauseReason": resource["pauseReason"],
                                     "compensation": resource["compensation"]}});
    if word == "error" {
        let cancelled =
            json!({"code": "CANCELLED", "message": "the execution was cancelled", "category": "cancelled"});
        answer["error"] = resource["errors"].get(0).cloned().unwrap_or(cancelled);
    }
    answer
}

fn cancel(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({"executionId": execution_id(), "reason": {"type": "string", "maxLength": 1024}}),
        &["executionId"],
    );
    let policy = Policy { destructive: true, idempotent: true, ..changing() };
    let about = "Cancels an execution: its steps get five seconds to clean up.";
    let tool = working("cancel_workflow", about, input, policy, hub, cancel_workflow)?.giving(envelope())?;
    Ok(tool.titled("Cancel an execution"))
}

async fn cancel_workflow(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    let answer = |status: Status| {
        json!({"status": if status.is_final() { "ok" } else { "running" }, "executionId": row.id,
               "workflowId": row.workflow, "data": {"status": status}, "correlationId": row.correlation})
    };
    if row.status.is_final() {
        return Ok(Output::json(answer(row.status)).into());
    }
    let reason = args.text("reason").unwrap_or("user_request").to_owned();
    if row.status == Status::Compensating {
        let mut answer = answer(row.status);
        answer["data"]["message"] = control::ROLLBACK_GOES_ON.into();
        return Ok(Output::json(answer).into());
    }
    let event = Event::CancelAsked { reason, graceful: true, force: false };
    control::tell(&hub, &row, event, answer(Status::Cancelling))
}

fn json_resource(uri: &str, value: &Value) -> Output {
    let data = ResourceData::Text(format!("{value:#}"));
    let contents = ResourceContents {
        uri: uri.to_owned(),
        mime_type: Some("application/json".into()),
        data,
        meta: None,
    };
    Output::Resource { contents: vec![contents] }
}

fn template(hub: &Hub, name: &str, about: &str, uri: &str, read: Read) -> Result<Action, schema::Error> {
    let resource = Resource {
        address: Address::Template(uri.to_owned()),
        mime_type: Some("application/json".into()),
        size: None,
    };
    let hub = hub.clone();
    Action::resource(name, about, resource, move |args: Args, context: Context| {
        read(hub.clone(), args, context)
    })
}

type Read = fn(Hub, Args, Context) -> futures::future::BoxFuture<'static, Result<Reply, Halt>>;

fn workflow(hub: &Hub) -> Result<Action, schema::Error> {
    template(
        hub,
        "workflow",
        "A stored workflow with its revisions.",
        "workflow://{id}",
        |hub, args, context| {
            Box::pin(async move {
                let (id, uri) = (args.text("id").unwrap_or_default(), args.text("uri").unwrap_or_default());
                let shown = stored::show(&hub, context.principal.tenant.as_str(), id, None).await?;
                Ok(json_resource(uri, &shown).into())
            })
        },
    )
}

fn execution_resource(hub: &Hub) -> Result<Action, schema::Error> {
    let about = "An execution as it is now. Subscribe to hear when it changes.";
    template(hub, "execution", about, "execution://{id}", |hub, args, context| {
        Box::pin(async move {
            let (id, uri) = (args.text("id").unwrap_or_default(), args.text("uri").unwrap_or_default());
            let row = load::find(&hub, context.principal.tenant.as_str(), id).await?;
            let row = row.ok_or_else(|| unknown_execution(id))?;
            let loaded = load::whole(&hub, row, u64::MAX).await?;
            Ok(json_resource(uri, &loaded.resource(hub.ports().clock.now_ms())).into())
        })
    })
}

fn says(text: String) -> Result<Reply, Halt> {
    let message = PromptMessage { role: Role::User, content: Content::text(text) };
    Ok(Output::Prompt { description: None, messages: vec![message] }.into())
}

fn create(hub: &Hub) -> Result<Action, schema::Error> {
    let argument = PromptArgument {
        name: "goal".into(),
        description: Some("What the workflow should do.".into()),
        required: true,
    };
    let hub = hub.clone();
    let about = "Asks for a workflow definition that reaches a goal.";
    Action::prompt("create_workflow", about, vec![argument], move |args: Args, _| {
        let goal = args.text("goal").unwrap_or_default();
        let agents: Vec<String> =
            hub.agents().all().map(|agent| format!("- {}: {}", agent.id(), agent.about())).collect();
        let text = format!(
            "Write a workflow definition as JSON for orchestr8 that does this: {goal}\n\n\
             Agents that steps can call:\n{}\n\n\
             Refer to earlier outputs as ${{steps.<id>.output.<path>}}, to inputs as ${{variables.<name>}}; give a default \
             with ?? where something may be missing; list in dependencies every step you refer to. The definition must be \
             valid against this JSON Schema:\n{}\n\nAnswer with the JSON only, then start it with run_workflow.",
            agents.join("\n"),
            definition::schema()
        );
        std::future::ready(says(text))
    })
}

fn analyze(hub: &Hub) -> Result<Action, schema::Error> {
    let argument = PromptArgument {
        name: "executionId".into(),
        description: Some("The execution to explain.".into()),
        required: true,
    };
    let hub = hub.clone();
    let about = "Asks why an execution went as it did.";
    Action::prompt("analyze_workflow", about, vec![argument], move |args: Args, context: Context| {
        let hub = hub.clone();
        async move {
            let id = args.text("executionId").unwrap_or_default();
            let row = load::find(&hub, context.principal.tenant.as_str(), id).await?;
            let row = row.ok_or_else(|| Halt::Fault(unknown_execution(id)))?;
            let loaded: Result<Loaded, Fault> = load::whole(&hub, row, u64::MAX).await;
            let resource = loaded?.resource(hub.ports().clock.now_ms());
            says(format!(
                "Explain how this execution of a workflow went: what ran, what failed and why, what it waits for, and what \
                 to do next (retry, fork from a step with edited input, change the definition).\n\n{resource:#}"
            ))
        }
    })
}
