//! `GET /mcp/requests/{id}` and `POST …/cancel`: a call that was acknowledged, looked at and stopped.

use std::sync::Arc;

use http::StatusCode;
use orchestr8_contract::{AccessRole, Code, Fault};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::ports::store::{Batch, Error, Row};
use orchestr8_kernel::{Principal, Settled, Transport};
use serde_json::{Value, json};

use crate::answer;
use crate::call::{Call, Outcome};
use crate::calls::{self, Request, State};
use crate::failure::Failure;
use crate::live::not_begun;
use crate::tables;
use crate::wire;

pub(crate) async fn show(call: Call) -> Outcome {
    let (_, seen) = find(&call, "requests.show").await?;
    Ok(present(&seen))
}

/// One that runs is asked to stop; one that failed is compensated, since nothing of it is left; one that succeeded stays so.
pub(crate) async fn cancel(call: Call) -> Outcome {
    let (principal, seen) = find(&call, "requests.cancel").await?;
    let seen = match seen.state {
        State::Acked | State::Running => {
            let runs = call.face.calls.cancel(&principal.tenant, &seen.id);
            if seen.queued && !runs { withdraw(&call, &principal, seen).await? } else { seen }
        }
        State::Failed if seen.acked_ms.is_some() => {
            change(&call, &principal, seen, State::Compensated, None).await?
        }
        State::Failed | State::Succeeded | State::Compensated | State::Cancelled => seen,
    };
    Ok(present(&seen))
}

/// It waits in a queue: whoever takes it finds that nobody wants it any more. One whose turn has just come is asked to stop.
async fn withdraw(call: &Call, principal: &Principal, seen: Seen) -> Result<Seen, Failure> {
    let _turn = call.face.calls.take_back().await;
    if call.face.calls.cancel(&principal.tenant, &seen.id) {
        return Ok(seen);
    }
    let answer = not_begun().body(&call.correlation);
    change(call, principal, seen, State::Cancelled, Some(answer)).await
}

/// Writes down what has become of a call, unless it has gone on since it was read: then it is shown as it is now.
async fn change(
    call: &Call,
    principal: &Principal,
    seen: Seen,
    state: State,
    answer: Option<Value>,
) -> Result<Seen, Failure> {
    let (was, new) =
        ((seen.state.as_str(), seen.updated_ms), (state.as_str(), answer.as_ref().map(Value::to_string)));
    let mut batch = Batch::new();
    let place = (principal.tenant.as_str(), seen.id.as_str());
    batch.then_one(tables::request_change(place, was, new, call.face.now_ms()));
    let action = match state {
        State::Cancelled | State::Compensated => "requests.cancel",
        // The request has ended and its end was not recorded yet: this read records it.
        State::Acked | State::Running | State::Failed | State::Succeeded => "requests.settle",
    };
    let change = StateChange {
        principal: &principal.name,
        transport: Transport::Http,
        source: call.source(),
        detail: json!({"state": state.as_str()}),
        ..StateChange::by_server(action, principal.tenant.as_str(), Some(&seen.id))
    };
    batch.link(change.link(call.face.now_ms()));
    match call.face.kernel.ports().store.commit(batch).await {
        Ok(()) => Ok(Seen { state, live: None, answer: answer.or(seen.answer), ..seen }),
        Err(Error::Conflict { .. }) => stored(call, principal, &seen.id).await?.ok_or_else(unknown),
        Err(error) => Err(store_fault(error).into()),
    }
}

struct Seen {
    id: String,
    /// It came over the bus.
    queued: bool,
    action: String,
    /// As it is in the store.
    state: State,
    /// Where it has come to, if it goes on in this process.
    live: Option<State>,
    acked_ms: Option<i64>,
    updated_ms: Option<i64>,
    answer: Option<Value>,
}

fn present(seen: &Seen) -> axum::response::Response {
    let shown = wire::RequestState {
        request_id: &seen.id,
        state: seen.live.unwrap_or(seen.state).as_str(),
        action: &seen.action,
        acked_at: seen.acked_ms.map(clock::iso),
        updated_at: seen.updated_ms.map(clock::iso),
        answer: seen.answer.clone(),
    };
    answer::success(StatusCode::OK, &serde_json::to_value(shown).unwrap_or_default())
}

async fn find(call: &Call, operation: &'static str) -> Result<(Arc<Principal>, Seen), Failure> {
    let principal = call.person(&call.query(&[])?).await?;
    call.authorize(operation, &principal).await?;
    let id = call.param("id")?.to_ascii_lowercase();
    let seen = match stored(call, &principal, &id).await? {
        // One in a queue waits for its turn, or to be tried again.
        Some(seen) if seen.state.is_final() || seen.live.is_some() || seen.queued => seen,
        Some(seen) => settle(call, &principal, seen).await?,
        None => quick(call, &principal, &id).await?,
    };
    Ok((principal, seen))
}

/// What the store says of a call and, after that, whether it goes on here: in this order none is missed.
async fn stored(call: &Call, principal: &Principal, id: &str) -> Result<Option<Seen>, Failure> {
    let found = tables::request_find(principal.tenant.as_str(), id);
    let rows = call.face.kernel.ports().store.query(found).await.map_err(store_fault)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (owner, mut seen) = read(id, row).map_err(store_fault)?;
    if *owner != *principal.name && !principal.has(AccessRole::Owner) {
        return Err(unknown());
    }
    if !seen.state.is_final() {
        seen.live = call.face.calls.look(&principal.tenant, id);
    }
    Ok(Some(seen))
}

/// One that was answered at once is in the ledger, if it had an effect.
async fn quick(call: &Call, principal: &Principal, id: &str) -> Result<Seen, Failure> {
    match outcome(call, principal, id).await? {
        Some(settled) if principal.has(AccessRole::Owner) => Ok(Seen {
            id: id.to_owned(),
            queued: false,
            action: String::new(),
            state: State::of(&settled),
            live: None,
            acked_ms: None,
            updated_ms: None,
            answer: Some(conclude(call, principal, id, settled)),
        }),
        Some(_) | None => Err(unknown()),
    }
}

/// It was under way when the server stopped: the ledger knows how it ended, or nothing of it happened.
async fn settle(call: &Call, principal: &Principal, seen: Seen) -> Result<Seen, Failure> {
    let (state, answer) = match outcome(call, principal, &seen.id).await? {
        Some(settled) => (State::of(&settled), conclude(call, principal, &seen.id, settled)),
        None => {
            let message = "the server stopped while it ran; send it again under the same key";
            let failure = Failure::from(Fault::new(Code::Unavailable, message));
            (State::Failed, failure.body(&call.correlation))
        }
    };
    change(call, principal, seen, state, Some(answer)).await
}

async fn outcome(call: &Call, principal: &Principal, id: &str) -> Result<Option<Settled>, Failure> {
    let Some(identity) = calls::request(id, call.face.settings.key_ttl_ms) else { return Ok(None) };
    let stored = call.face.kernel.outcome_of(&principal.tenant, &identity).await?;
    Ok(stored.map(|stored| stored.replay(call.correlation.clone())))
}

fn conclude(call: &Call, principal: &Principal, id: &str, settled: Settled) -> Value {
    let request = Request {
        tenant: principal.tenant.clone(),
        id: id.to_owned(),
        principal: principal.name.to_string(),
        action: String::new(),
        correlation: call.correlation.clone(),
        trace: None,
        began_us: call.began_us,
    };
    calls::conclude(&call.face, &request, settled)
}

fn read(id: &str, row: &Row) -> Result<(String, Seen), Error> {
    let state = State::parse(row.text(2)?)
        .ok_or_else(|| Error::Corrupt("a request has a state that does not exist".to_owned()))?;
    let answer = row.optional_text(5)?.map(serde_json::from_str).transpose();
    let seen = Seen {
        id: id.to_owned(),
        queued: row.int(6)? != 0,
        action: row.text(1)?.to_owned(),
        state,
        live: None,
        acked_ms: Some(row.int(3)?),
        updated_ms: Some(row.int(4)?),
        answer: answer.map_err(|error| Error::Corrupt(format!("a stored answer: {error}")))?,
    };
    Ok((row.text(0)?.to_owned(), seen))
}

fn unknown() -> Failure {
    Failure::not_found("no call of this id is remembered")
}
