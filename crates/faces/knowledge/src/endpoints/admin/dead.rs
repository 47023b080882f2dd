//! Dead letters: looked at, sent on their way again, or forgotten; and how long the queues are.

use http::StatusCode;
use orchestr8_broker::{DeadLetter, Redriven};
use orchestr8_kernel::ports::clock;
use serde_json::{Value, json};

use super::{audited, tenant};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::endpoints::publish::bus;
use crate::failure::Failure;
use crate::limits::DEAD_LETTERS;

/// `GET /admin/queues`: how much of each tenant waits, is worked on, and was given up.
pub(crate) async fn queues(call: Call) -> Outcome {
    let query = call.query(&[])?;
    let whose = tenant(&call, query.text("tenant_id")).await?;
    let report = bus(&call)?.broker.report().await?;
    let queues: Vec<Value> = report
        .into_iter()
        .filter(|line| whose.as_ref().is_none_or(|tenant| *tenant == line.tenant))
        .map(|line| {
            json!({"tenant_id": line.tenant, "queued": line.queued, "in_flight": line.in_flight,
                "dead_letters": line.dead})
        })
        .collect();
    Ok(answer::success(StatusCode::OK, &json!({"queues": queues})))
}

pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["after", "limit"])?;
    let whose = tenant(&call, query.text("tenant_id")).await?;
    let limit = query.within("limit", 1..=DEAD_LETTERS)?.unwrap_or(DEAD_LETTERS);
    let after = i64::try_from(query.number("after")?.unwrap_or(0)).unwrap_or(i64::MAX);
    let broker = &bus(&call)?.broker;
    let page = broker.dead(whose, after, usize::try_from(limit).unwrap_or(1)).await?;
    let next = page.more.then(|| page.items.last().map(|letter| letter.seq)).flatten();
    let letters: Vec<Value> = page.items.iter().map(summary).collect();
    Ok(answer::success(StatusCode::OK, &json!({"dead_letters": letters, "next": next})))
}

pub(crate) async fn show(call: Call) -> Outcome {
    let query = call.query(&[])?;
    let whose = tenant(&call, query.text("tenant_id")).await?;
    let letter = bus(&call)?.broker.find_dead(whose, seq(&call)?).await?.ok_or_else(unknown)?;
    let mut shown = summary(&letter);
    let body = &letter.message.body;
    shown["envelope"] = serde_json::from_slice(body)
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(body).into_owned()));
    Ok(answer::success(StatusCode::OK, &shown))
}

pub(crate) async fn redrive(call: Call) -> Outcome {
    let query = call.query(&[])?;
    let whose = tenant(&call, query.text("tenant_id")).await?;
    let seq = seq(&call)?;
    let audit = audited(&call, "broker.redrive", whose.as_ref(), &seq.to_string(), Value::Null);
    match bus(&call)?.broker.redrive(whose, seq, audit).await? {
        Redriven::OnItsWay => Ok(answer::success(StatusCode::OK, &json!({"seq": seq, "redriven": true}))),
        Redriven::Unknown => Err(unknown()),
    }
}

pub(crate) async fn discard(call: Call) -> Outcome {
    let query = call.query(&[])?;
    let whose = tenant(&call, query.text("tenant_id")).await?;
    let seq = seq(&call)?;
    let audit = audited(&call, "broker.discard", whose.as_ref(), &seq.to_string(), Value::Null);
    match bus(&call)?.broker.discard(whose, seq, audit).await? {
        true => Ok(answer::success(StatusCode::OK, &json!({"seq": seq, "dropped": true}))),
        false => Err(unknown()),
    }
}

fn seq(call: &Call) -> Result<i64, Failure> {
    call.param("seq")?.parse::<u32>().map(i64::from).map_err(|_| unknown())
}

fn unknown() -> Failure {
    Failure::not_found("there is no such dead letter")
}

fn summary(letter: &DeadLetter) -> Value {
    let message = &letter.message;
    json!({
        "seq": letter.seq, "tenant_id": message.tenant, "subject": message.subject.as_str(),
        "request_id": message.id, "principal": message.principal,
        "reply_to": message.reply_to.as_ref().map(|to| to.as_str()), "attempts": letter.attempts,
        "redrives": letter.redrives, "why": letter.why, "published_at": clock::iso(letter.published_ms),
        "dead_at": clock::iso(letter.dead_ms), "bytes": message.body.len(),
    })
}
