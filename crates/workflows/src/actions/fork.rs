//! New runs from old ones: a fork from a step, and many failed executions at once.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Args, Context, Halt, Principal, Reply, schema};
use serde_json::{Value, json};

use super::{changing, control, execution, execution_id, hidden, list, map, object, page};
use crate::definition::model::{Kind, Workflow};
use crate::engine::event::Status;
use crate::engine::state::{Outcome, State};
use crate::limits::PAGE;
use crate::runtime::{Hub, Request, load};

pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "executionId": execution_id(), "fromStep": {"type": "string"}, "inputs": {"type": "object"},
            "variables": {"type": "object"}, "workflow": {"type": "object"}
        }),
        &["executionId", "fromStep"],
    );
    let about = "Starts a new execution that keeps what came before a step of another.";
    hidden("executions.fork", about, input, changing(), hub, fork)
}

async fn fork(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let row = execution(&hub, &args, &context).await?;
    let loaded = load::whole(&hub, row, u64::MAX).await?;
    // Its results are being undone: which of them will hold is not known yet.
    if loaded.state.status == Status::Compensating {
        return Err(control::over(&loaded.row, "forked before its rollback has ended").into());
    }
    let workflow = match args.get("workflow") {
        Some(source) => hub.read_definition(source).map_err(Fault::from)?,
        None => loaded.state.workflow().clone(),
    };
    // What was taken over was decided by the same people as before.
    let authors = loaded.row.given.authors.clone();
    let from = args.text("fromStep").unwrap_or_default();
    let Some(place) = workflow.place(from) else {
        return Err(Fault::new(Code::NotFound, format!("the workflow has no step named '{from}'"))
            .with("path", "/fromStep")
            .into());
    };
    let mut variables = loaded.row.given.variables.clone();
    variables.extend(map(&args, "variables"));
    variables.extend(map(&args, "inputs"));
    let is_changed = variables != loaded.row.given.variables || workflow.hash != loaded.state.workflow().hash;
    let kept = kept(&loaded.state, &workflow, place, is_changed);
    let mut accepted = hub.accept(Request {
        workflow,
        variables,
        correlation: loaded.row.correlation.clone(),
        trace: context.trace,
        principal: Arc::new(Principal::clone(&context.principal).limited(loaded.row.given.tools.as_ref())),
        authors,
        timeout_ms: loaded.row.given.timeout_ms,
        priority: Some(loaded.row.priority),
        parent: None,
        forked_from: Some(loaded.row.id.clone()),
        kept,
    })?;
    let answer = json!({"executionId": accepted.id, "status": accepted.status, "forkedFrom": loaded.row.id, "fromStep": from});
    let effects = std::mem::take(&mut accepted.batch);
    Ok(Reply::new(Output::json(answer), effects).then(move || hub.launch(accepted)))
}

/// Results that still hold: of the steps that neither are the step nor come after it, that were not undone, and that do not
/// depend on such steps. With other inputs or another definition, approvals are requested again: the old decision was about other inputs.
fn kept(old: &State, new: &Arc<Workflow>, from: usize, is_changed: bool) -> Vec<(usize, Value)> {
    let was_undone = |step: usize| {
        let place = old.workflow().place(&new.steps[step].id);
        place.is_some_and(|place| old.steps[place].undone.values().any(|undone| !undone.leaves_result()))
    };
    let must_ask = |step: usize| is_changed && matches!(new.steps[step].kind, Kind::Approval(_));
    let mut again: Vec<bool> =
        (0..new.steps.len()).map(|step| step == from || was_undone(step) || must_ask(step)).collect();
    loop {
        let more: Vec<usize> = (0..again.len())
            .filter(|step| !again[*step] && new.steps[*step].dependencies.iter().any(|one| again[*one]))
            .collect();
        if more.is_empty() {
            break;
        }
        more.into_iter().for_each(|step| again[step] = true);
    }
    let output = |step: &usize| {
        let place = old.workflow().place(&new.steps[*step].id)?;
        let own = &old.steps[place];
        (own.outcome == Some(Outcome::Completed)).then(|| own.output.clone()).flatten()
    };
    (0..again.len()).filter(|step| !again[*step]).filter_map(|step| Some((step, output(&step)?))).collect()
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
