//! `tools/call`: from the request to a submission, and from what became of it to the answer.

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_contract::id::RunId;
use orchestr8_contract::trace::TRACEPARENT;
use orchestr8_kernel::action::{Action, Tasking};
use orchestr8_kernel::outcome::{End, Settled};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Args, Started, Submission};
use serde_json::{Map, Value, json};

use crate::conclude::Asked;
use crate::era::{Era, Revision};
use crate::failure::no_such_tool;
use crate::from_wire;
use crate::governed::{self, Witness};
use crate::peer::Client;
use crate::questions::Questions;
use crate::request::{Answer, Outcome, Request};
use crate::tasks::{self, Ended};
use crate::to_wire::tasks_undeclared;
use crate::wire::{self, Error};

/// A fact an action may tell in its `_meta`: the keys of questions it asks before it becomes a task.
pub const ASKS_FIRST: &str = "orchestr8/asksFirst";

/// Shape (MCP-ORDER-2), then ids (MCP-ORDER-3); size, existence, slot, schema and the run are the kernel's
/// (MCP-ORDER-4 to MCP-ORDER-9); then the answer is wrapped (MCP-ORDER-10).
pub fn call(request: &Request<'_>) -> Answer {
    match prepare(request) {
        Err(error) => Err(error).into(),
        Ok(Prepared { asked, args, misshapen, questions, wished, identity }) => {
            let is_governed = governed::role(request.who()).is_some();
            if asked.action.is_none()
                && !is_governed
                && let Some(outcome) = unseen(request, &asked, &args)
            {
                return Answer::Now(outcome);
            }
            let client = questions.client(request);
            let witness = is_governed
                .then(|| Witness::of(request, &asked.name, &args, Arc::new(questions.client(request))));
            let (name, args) = match (is_governed, misshapen) {
                (true, Some((text, error))) => governed::misshapen(&asked.name, &text, &error),
                (true, None) => governed::submitted(&asked.name, asked.action.as_ref(), args),
                (false, _) => (asked.name.clone(), args),
            };
            let mut submission = request.submission(name, args);
            submission.identities.extend(identity);
            if let Some(trace) = submission.trace {
                // Whoever follows a trace through the log finds the call by it.
                let entry =
                    || json!({"correlationId": submission.correlation, TRACEPARENT: trace.to_string()});
                request.kernel().log().debug("part of a trace", entry);
            }
            match wished {
                Wished::Answer => {
                    submission.peer = Some(Arc::new(client));
                    run(request, asked, submission, witness)
                }
                Wished::Task { ttl_ms } => run_as_task(client, asked, submission, ttl_ms),
            }
        }
    }
}

struct Prepared {
    asked: Asked,
    args: Args,
    /// Arguments that are no object, and what is wrong with them: on a governed connection this is recorded too.
    misshapen: Option<(String, Error)>,
    questions: Questions,
    wished: Wished,
    identity: Option<Identity>,
}

/// How the client gets the result.
enum Wished {
    Answer,
    Task { ttl_ms: Option<i64> },
}

fn prepare(request: &Request<'_>) -> Result<Prepared, Error> {
    let connection = request.connection;
    let name: Arc<str> = request.params.required_text("name")?.as_ref().into();
    let raw = request.params.get("arguments");
    let (args, misshapen) = match (from_wire::arguments(raw), raw) {
        (Ok(args), _) => (args, None),
        (Err(error), Some(raw)) if governed::role(request.who()).is_some() => {
            (Args::new(Map::new()), Some((raw.get().to_owned(), error)))
        }
        (Err(error), _) => return Err(error),
    };
    let key = request.params.idempotency_key()?.or_else(|| request.incoming.idempotency_key.clone());
    let identity = key.map(|key| {
        let scope = Scope(format!("mcp:{}", request.who().name).into());
        Identity { scope, key, ttl_ms: connection.face.settings().key_ttl_ms }
    });
    let text = raw.filter(|_| request.era.is_modern()).map(|raw| raw.get().to_owned());
    let questions = Questions::of(request, &name, text)?;
    let action = connection.face.tool(&name, request.who());
    let wished = match &action {
        Some(action) => wished(request, action, &questions)?,
        None => Wished::Answer,
    };
    let asked = Asked {
        face: connection.face.clone(),
        who: request.who().clone(),
        era: request.era,
        action,
        name,
        retry: questions.retry.clone(),
    };
    Ok(Prepared { asked, args, misshapen, questions, wished, identity })
}

/// Whether the call becomes a task: in the legacy era the client says so, in the modern one we do.
fn wished(request: &Request<'_>, action: &Action, questions: &Questions) -> Result<Wished, Error> {
    let tasking = action.policy.tasking;
    match request.era {
        Era::Modern => match (tasking, request.capabilities.tasks) {
            (Tasking::Forbidden, _) | (Tasking::Optional, false) => Ok(Wished::Answer),
            (Tasking::Required, false) => Err(tasks_undeclared()),
            (Tasking::Optional | Tasking::Required, true) => {
                let first = action.about.meta.get(ASKS_FIRST).and_then(Value::as_array);
                let keys: Vec<&str> = first.into_iter().flatten().filter_map(Value::as_str).collect();
                Ok(if questions.has(&keys) { Wished::Task { ttl_ms: None } } else { Wished::Answer })
            }
        },
        Era::Legacy(Revision::V2025_11_25) => match (request.params.map("task")?, tasking) {
            (None, Tasking::Forbidden | Tasking::Optional) => Ok(Wished::Answer),
            (None, Tasking::Required) => Err(Error::new(
                wire::METHOD_NOT_FOUND,
                format!("'{}' can only be called as a task", action.name),
            )),
            (Some(_), Tasking::Forbidden) => Err(Error::new(
                wire::METHOD_NOT_FOUND,
                format!("'{}' cannot be called as a task", action.name),
            )),
            (Some(task), Tasking::Optional | Tasking::Required) => match task.get("ttl") {
                None | Some(Value::Null) => Ok(Wished::Task { ttl_ms: None }),
                Some(ttl) => {
                    let ttl_ms = ttl.as_i64().ok_or_else(|| Error::params("task.ttl must be an integer"))?;
                    Ok(Wished::Task { ttl_ms: Some(ttl_ms) })
                }
            },
        },
        Era::Legacy(Revision::V2024_11_05 | Revision::V2025_03_26 | Revision::V2025_06_18) => {
            Ok(Wished::Answer)
        }
    }
}

/// The answer to a name that exists and is not for this client to see: the same as if there were none. Arguments that
/// are too large are left to the kernel, which looks at their size before it looks for the name.
fn unseen(request: &Request<'_>, asked: &Asked, args: &Args) -> Option<Outcome> {
    let kernel = request.kernel();
    kernel.registry().find(&asked.name)?;
    args.fits(kernel.limits().payload_bytes).ok()?;
    let fault = no_such_tool(&asked.name);
    kernel.health().ended(true, Some(fault.code));
    let settled = refused(request, fault);
    asked.render(settled).ok()
}

/// A call that is refused before its arguments are looked at; its shape comes first all the same (MCP-ORDER-2).
pub fn refuse(request: &Request<'_>, fault: Fault) -> Answer {
    let Prepared { asked, args, questions, .. } = match prepare(request) {
        Ok(prepared) => prepared,
        Err(error) => return Err(error).into(),
    };
    let kernel = request.kernel().clone();
    kernel.health().ended(true, Some(fault.code));
    let settled = refused(request, fault);
    if governed::role(request.who()).is_none() {
        return Answer::Later(Box::pin(async move { asked.conclude(settled).await }));
    }
    let witness = Witness::of(request, &asked.name, &args, Arc::new(questions.client(request)));
    Answer::Later(Box::pin(async move {
        let settled = witness.see(&kernel, settled).await;
        asked.conclude(settled).await
    }))
}

fn refused(request: &Request<'_>, fault: Fault) -> Settled {
    Settled {
        run: RunId(request.kernel().ports().ids.fresh(For::Run)),
        correlation: request.correlation(),
        end: End::Refused,
        result: Err(fault.into()),
        replayed: false,
        version: None,
        elapsed_us: 0,
    }
}

fn run(request: &Request<'_>, asked: Asked, submission: Submission, witness: Option<Witness>) -> Answer {
    let (kernel, correlation) = (request.kernel().clone(), submission.correlation.clone());
    match kernel.start(submission) {
        Started::Done(settled) => match witness {
            Some(witness) => Answer::Later(Box::pin(async move {
                let settled = witness.see(&kernel, *settled).await;
                asked.conclude(settled).await
            })),
            None => match asked.render(*settled) {
                Ok(outcome) => Answer::Now(outcome),
                Err(long) => Answer::Later(Box::pin(async move { asked.keep(long).await })),
            },
        },
        Started::Running(task) => Answer::Later(Box::pin(async move {
            match (task.await, witness) {
                (Ok(settled), Some(witness)) => {
                    let settled = witness.see(&kernel, settled).await;
                    asked.conclude(settled).await
                }
                (Ok(settled), None) => asked.conclude(settled).await,
                (Err(_), _) => asked.failed(&Fault::internal("the call was lost"), correlation),
            }
        })),
    }
}

/// The task is on record before the client hears of it; its work goes on, whoever listens.
fn run_as_task(client: Client, asked: Asked, mut submission: Submission, ttl_ms: Option<i64>) -> Answer {
    let correlation = submission.correlation.clone();
    Answer::Later(Box::pin(async move {
        let kernel = asked.face.kernel().clone();
        let task = match asked.face.tasks().create(&kernel, &asked.who, &asked.name, ttl_ms).await {
            Ok(task) => task,
            Err(fault) => return asked.failed(&fault, correlation),
        };
        submission.cancel = task.cancel.clone();
        submission.peer = Some(Arc::new(client.in_task(&task)));
        let answer = tasks::created(&task.seen(), asked.era);
        let outcome = Outcome { result: Ok(answer), correlation: Some(correlation.clone()) };
        tokio::spawn(async move {
            let settled = kernel.submit(submission).await;
            let was_stopped = settled.end == End::Aborted;
            let result = asked.conclude(settled).await.result;
            let ended = match result {
                Ok(_) | Err(_) if was_stopped => Ended::Cancelled,
                Ok(body) => Ended::Completed(body.finish(Era::Legacy(Revision::NEWEST), "")),
                Err(error) => Ended::Failed(error.to_json(&correlation)),
            };
            asked.face.tasks().end(&kernel, &task, ended).await;
        });
        outcome
    }))
}
