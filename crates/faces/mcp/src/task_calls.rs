//! `tasks/*`: looking after calls that became tasks, in either era.

use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_kernel::Why;
use serde_json::{Value, json};

use crate::body::Body;
use crate::era::{Era, RELATED_TASK_KEY};
use crate::face::Face;
use crate::lists::{read_cursor, write_cursor};
use crate::request::{Answer, Outcome, Request};
use crate::tables::Owner;
use crate::tasks::{self, Ended, Seen};
use crate::to_wire::tasks_undeclared;
use crate::wire::{self, Error};

/// What a request is about.
struct Subject {
    face: Face,
    owner: Owner,
    era: Era,
    id: String,
}

/// The capability first, then the id (modern era): who has not declared tasks learns nothing about them.
fn subject(request: &Request<'_>) -> Result<Subject, Error> {
    if request.era.is_modern() && !request.capabilities.tasks {
        return Err(tasks_undeclared());
    }
    Ok(Subject {
        face: request.connection.face.clone(),
        owner: Owner::of(request.who()),
        era: request.era,
        id: request.params.required_text("taskId")?.into_owned(),
    })
}

impl Subject {
    async fn find(&self) -> Result<Seen, Error> {
        let found = self.face.tasks().find(self.face.kernel(), &self.owner, &self.id).await;
        found.map_err(store_error)?.ok_or_else(|| Error::params("there is no such task, or it has expired"))
    }
}

fn store_error(fault: Fault) -> Error {
    Error::new(wire::INTERNAL, fault.message.clone()).with("code", fault.code.as_str())
}

fn later(work: impl Future<Output = Result<Body, Error>> + Send + 'static) -> Answer {
    let work: BoxFuture<'static, Outcome> = Box::pin(async move { work.await.into() });
    Answer::Later(work)
}

pub fn get(request: &Request<'_>) -> Answer {
    match subject(request) {
        Err(error) => Err(error).into(),
        Ok(subject) => later(async move { Ok(tasks::seen(&subject.find().await?, subject.era)) }),
    }
}

/// `tasks/result` (legacy) waits for the end, and answers what the call itself would have been answered.
pub fn result(request: &Request<'_>) -> Answer {
    let subject = match subject(request) {
        Err(error) => return Err(error).into(),
        Ok(subject) => subject,
    };
    later(async move {
        let ended = match subject.face.tasks().running(&subject.owner, &subject.id) {
            Some(task) => task.ended().await,
            None => subject.find().await?.ended.unwrap_or(Ended::Cancelled),
        };
        match ended {
            Ended::Completed(json) => {
                let result: Value = serde_json::from_str(&json).unwrap_or_default();
                let members = result.as_object().into_iter().flatten().filter(|(name, _)| *name != "_meta");
                let body = members.fold(Body::empty(), |body, (name, value)| body.value(name, value));
                let meta = result.get("_meta").and_then(Value::as_object).into_iter().flatten();
                let body = meta.fold(body, |body, (name, value)| body.meta(name, value));
                Ok(body.meta(RELATED_TASK_KEY, &json!({"taskId": subject.id})))
            }
            Ended::Failed(json) => {
                let error: Value = serde_json::from_str(&json).unwrap_or_default();
                let code = error.get("code").and_then(Value::as_i64).unwrap_or(wire::INTERNAL);
                let message =
                    error.get("message").and_then(Value::as_str).unwrap_or("the task failed").to_owned();
                Err(Error::new(code, message))
            }
            Ended::Cancelled => Err(Error::new(wire::INTERNAL, "the task was cancelled")),
        }
    })
}

/// `tasks/list` (legacy).
pub fn list(request: &Request<'_>) -> Answer {
    let after = match request.params.text("cursor") {
        Err(error) => return Err(error).into(),
        Ok(None) => Ok((i64::MIN, String::new())),
        Ok(Some(cursor)) => read_cursor("tasks", &cursor).and_then(|place| {
            let (time, id) = place.split_once('/').unwrap_or_default();
            let time = time.parse().map_err(|_| Error::params("cursor is not one of this list"))?;
            Ok((time, id.to_owned()))
        }),
    };
    let (time, id) = match after {
        Ok(after) => after,
        Err(error) => return Err(error).into(),
    };
    let (face, owner, era) = (request.connection.face.clone(), Owner::of(request.who()), request.era);
    later(async move {
        let size = face.settings().page_size.max(1);
        let found = face.tasks().page(face.kernel(), &owner, (time, &id), size + 1).await;
        let mut found = found.map_err(store_error)?;
        let more = found.len() > size;
        found.truncate(size);
        let shown: Vec<_> = found.iter().map(|seen| tasks::value(seen, era)).collect();
        let body = Body::empty().value("tasks", &shown);
        Ok(match found.last() {
            Some(last) if more => {
                body.text("nextCursor", &write_cursor("tasks", &format!("{}/{}", last.created_ms, last.id)))
            }
            Some(_) | None => body,
        })
    })
}

/// `tasks/cancel`: on record before it is answered. Only the legacy era minds that a task has ended before.
pub fn cancel(request: &Request<'_>) -> Answer {
    let subject = match subject(request) {
        Err(error) => return Err(error).into(),
        Ok(subject) => subject,
    };
    later(async move {
        let (tasks, kernel) = (subject.face.tasks(), subject.face.kernel());
        let stopped = match tasks.running(&subject.owner, &subject.id) {
            Some(task) => {
                let is_first = tasks.end(kernel, &task, Ended::Cancelled).await;
                task.cancel.fire(Why::Client);
                is_first
            }
            None => false,
        };
        let seen = subject.find().await?;
        match subject.era {
            Era::Modern => Ok(Body::empty()),
            Era::Legacy(_) if stopped => Ok(tasks::seen(&seen, subject.era)),
            Era::Legacy(_) => {
                Err(Error::params(format!("the task has ended before: it is {}", seen.status.as_str())))
            }
        }
    })
}

/// `tasks/update` (modern): answers to questions of a task.
pub fn update(request: &Request<'_>) -> Answer {
    let prepared = subject(request).and_then(|subject| {
        let answers = request.params.map("inputResponses")?;
        Ok((subject, answers.ok_or_else(|| Error::params("inputResponses is missing"))?))
    });
    match prepared {
        Err(error) => Err(error).into(),
        Ok((subject, answers)) => later(async move {
            match subject.face.tasks().running(&subject.owner, &subject.id) {
                Some(task) => task.answer(answers, subject.face.kernel().ports().clock.now_ms()),
                None => drop(subject.find().await?),
            }
            Ok(Body::empty())
        }),
    }
}
