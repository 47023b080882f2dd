//! New runs from old ones: a fork from a step, and many failed executions at once.

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::json;

use super::{changing, control, execution, execution_id, fork_kept, hidden, list, map, object, page};
use crate::definition::model::Workflow;
use crate::engine::event::Status;
use crate::engine::state::State;
use crate::limits::PAGE;
use crate::runtime::{Hub, Request, load};
use crate::tags::{ExecutionTags, TagSources};

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "executionId": execution_id(), "fromStep": {"type": "string"}, "inputs": {"type": "object"},
            "variables": {"type": "object"}, "workflow": {"type": "object"}, "tags": {}
        }),
        &["executionId", "fromStep"],
    );
    let about = "Starts a new execution that keeps what came before a step of another.";
    hidden("executions.fork", about, input, changing(), hub, fork)
}

async fn fork(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    load::check_start(&hub, row.num).await?;
    let loaded = load::whole(&hub, row, u64::MAX).await?;
    // Its results are being undone: which of them will hold is not known yet.
    if loaded.state.status == Status::Compensating {
        return Err(control::over(&loaded.row, "forked before its rollback has ended").into());
    }
    let workflow = match args.get("workflow") {
        Some(source) => hub.read_definition(source).map_err(Fault::from)?,
        None => loaded.state.workflow().clone(),
    };
    // What is taken over was decided by those who decided it before, and by who started it: a fork has no rights that they lack.
    let authors = loaded.row.given.authors.clone().inheriting([&loaded.row.given.starter()]);
    let from = args.text("fromStep").unwrap_or_default();
    let Some(place) = workflow.place(from) else {
        return Err(Fault::new(Code::NotFound, format!("the workflow has no step named '{from}'"))
            .with("path", "/fromStep")
            .into());
    };
    if workflow.steps[place].section.is_closing() {
        let message =
            format!("'{from}' is a handler: a fork runs its handlers when its own steps have ended");
        return Err(Fault::invalid(message).with("path", "/fromStep").into());
    }
    // Those it was found by before, be they given or computed then.
    let tags = loaded.row.given.tags.clone().with(ExecutionTags::read(args.get("tags"), "/tags")?);
    let mut variables = loaded.row.given.variables.clone();
    variables.extend(map(&args, "variables"));
    variables.extend(map(&args, "inputs"));
    let asking = fork_kept::steps_that_ask(&hub, context.principal.tenant.as_str(), &workflow).await?;
    let kept = fork_kept::kept(&loaded.state, &workflow, place, &asking);
    let generations = generations(&loaded.state, &workflow);
    let mut accepted = hub.accept(Request {
        workflow,
        variables,
        correlation: loaded.row.correlation.clone(),
        trace: context.trace,
        principal: context.principal.clone(),
        authors,
        timeout_ms: loaded.row.given.timeout_ms,
        priority: Some(loaded.row.priority),
        tags: TagSources { given: tags, ..TagSources::default() },
        parent: None,
        forked_from: Some(loaded.row.id.clone()),
        kept,
        generations,
        schedule: loaded.row.given.schedule.clone(),
    })?;
    let answer = json!({"executionId": accepted.id, "status": accepted.status, "forkedFrom": loaded.row.id, "fromStep": from});
    let effects = std::mem::take(&mut accepted.batch);
    Ok(Reply::new(Output::json(answer), effects).then(move || hub.launch(accepted)))
}

/// The generations that the steps of a fork begin with: what was undone is done again under new keys, also where the author chose them.
pub fn generations(old: &State, new: &Workflow) -> Vec<(usize, u32)> {
    let generation =
        |id: &str| old.workflow().place(id).map_or(0, |place| old.steps[place].next_generation());
    let all = new.steps.iter().map(|step| generation(&step.id)).enumerate();
    all.filter(|(_, generation)| *generation > 0).collect()
}

pub fn retry_many(hub: &Hub) -> Result<Action, schema::Error> {
    let about = "Takes up the failed or cancelled executions that the filters pick.";
    hidden("executions.retry_many", about, object(list::filters(PAGE), &[]), changing(), hub, many)
}

async fn many(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let rows = list::find(&hub, &args, &context, page(&args, 100, PAGE)).await?;
    let (mut effects, mut retried, mut posted) = (Batch::new(), Vec::new(), Vec::new());
    for row in &rows {
        let Ok((event, _)) = control::again(row) else { continue };
        // One whose row was changed in the data file is left as it is.
        if load::check_start(&hub, row.num).await.is_err() {
            continue;
        }
        hub.forget(&row.id);
        posted.push((row.tenant.clone(), hub.post_to(row.num, &event, &mut effects)?));
        retried.push(row.id.clone());
    }
    let answer = json!({"retried": retried, "skipped": rows.len() - retried.len()});
    Ok(Reply::new(Output::json(answer), effects).then(move || {
        for (tenant, posted) in posted {
            hub.deliver_later(tenant, posted);
        }
    }))
}
