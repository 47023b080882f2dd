//! `POST /mcp/actions`: one envelope, one action (KNO-2, KNO-4, KNO-9).

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use orchestr8_contract::id::{CorrelationId, Key, Lane};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::action::Effect;
use orchestr8_kernel::fingerprint::Fingerprint;
use orchestr8_kernel::submission::Scope;
use orchestr8_kernel::{Action, Args, Principal, Submission, Transport};
use serde_json::{Map, Value};

use crate::actions;
use crate::answer;
use crate::artifact::{self, Named};
use crate::call::{Call, Outcome};
use crate::calls::{self, Ending, Patience, Request};
use crate::deliver::Delivery;
use crate::envelope::Envelope;
use crate::face::Face;
use crate::failure::{Failure, TOO_LARGE};
use crate::headers;
use crate::live::not_begun;
use crate::metrics::Labels;
use crate::order::{Sender, Turn};
use crate::security::{Kind, Who};
use crate::tool_message::tool_message;
use crate::versions;
use crate::wire;

pub(crate) async fn any(call: Call) -> Outcome {
    counted(call, None).await
}

pub(crate) async fn named(call: Call) -> Outcome {
    let action = call.param("action")?.to_owned();
    if actions::find(&call.face.kernel, &action).is_err() {
        return Err(Failure::not_found("there is no such action"));
    }
    counted(call, Some(&action)).await
}

/// Answers and counts. What is not known of an envelope that cannot be read stays empty.
async fn counted(call: Call, addressed: Option<&str>) -> Outcome {
    let mut labels = Labels { action: addressed.unwrap_or_default().to_owned(), ..Labels::default() };
    let outcome = answered(&call, addressed, &mut labels).await;
    if call.delivery().is_none_or(|delivery| delivery.known.is_none()) {
        count(&call, &outcome, labels);
    }
    outcome
}

/// One request, once. What was published is counted by whoever delivers it, and what goes on when it ends.
pub(super) fn count(call: &Call, outcome: &Outcome, labels: Labels) {
    let (metrics, elapsed_us) =
        (&call.face.settings.metrics, call.face.elapsed_us().saturating_sub(call.began_us));
    let (word, replayed) = match outcome {
        Ok(response) if response.status() == StatusCode::ACCEPTED => {
            return metrics.acknowledged(&labels.action, elapsed_us);
        }
        Ok(response) => (None, response.headers().contains_key(answer::REPLAYED)),
        Err(failure) => (Some(failure.word()), failure.is_replayed()),
    };
    let labels = labels.ended(word);
    if replayed {
        metrics.retried(labels.clone());
    }
    metrics.answered(labels, elapsed_us);
}

async fn answered(call: &Call, addressed: Option<&str>, labels: &mut Labels) -> Outcome {
    let (who, text) = match call.delivery().and_then(|delivery| delivery.known.as_ref()) {
        Some(known) => (known.sender.who.clone(), call.body.clone()),
        None => call.authenticate(Kind::Envelope).await?,
    };
    let envelope = Envelope::read(&text, addressed)?;
    if let Some(delivery) = call.delivery() {
        delivery.check(&envelope)?;
    }
    let trace = envelope.trace_id.clone();
    match (checked(call, who, envelope, labels).await, trace) {
        (Err(failure), Some(trace)) => Err(failure.traced(&trace)),
        (outcome, _) => outcome,
    }
}

/// Everything about the envelope, before anything of it is done.
async fn checked(call: &Call, who: Who, envelope: Envelope, labels: &mut Labels) -> Outcome {
    let (action, principal) = admitted(call, who, &envelope, labels)?;
    submitted(call, &action, principal, envelope).await
}

/// What must be true of an envelope, whether it is run at once or published.
pub(super) fn admitted(
    call: &Call,
    who: Who,
    envelope: &Envelope,
    labels: &mut Labels,
) -> Result<(Arc<Action>, Arc<Principal>), Failure> {
    let face = &call.face;
    let action = actions::find(&face.kernel, &envelope.action)?;
    labels.action = action.name.as_str().to_owned();
    let principal = who.principal(envelope)?;
    labels.tenant = principal.tenant.as_str().to_owned();
    labels.principal = principal.name.to_string();
    // What was published was counted then.
    if call.delivery().is_none_or(|delivery| delivery.known.is_none()) {
        call.count(&principal)?;
    }
    versions::check(action.name.as_str(), &envelope.action_version, actions::version(&action))?;
    envelope.check_time(face.now_ms())?;
    Ok((action, principal))
}

/// Hands the envelope to the kernel and puts its outcome into words.
async fn submitted(
    call: &Call,
    action: &Action,
    principal: Arc<Principal>,
    mut envelope: Envelope,
) -> Outcome {
    let face = &call.face;
    let correlation = correlation(call, &envelope);
    let request = Request {
        tenant: principal.tenant.clone(),
        id: envelope.request_id.clone(),
        principal: principal.name.to_string(),
        action: action.name.as_str().to_owned(),
        correlation: correlation.clone(),
        trace: envelope.trace_id.clone(),
        began_us: call.began_us,
    };
    let live = call.delivery().and_then(Delivery::live).unwrap_or_default();
    let mut submission = Submission::new(action.name.as_str(), Args::new(Map::new()), principal, correlation);
    submission.transport = Transport::Http;
    submission.source = call.source();
    submission.trace = envelope.trace.or_else(|| orchestr8_edge::trace(&call.parts.headers));
    identify(call, action, &envelope, &mut submission)?;
    let subject = envelope.subject().to_owned();
    let text_bytes = call.body.len();
    let mut args = std::mem::take(&mut envelope.args);
    let named = artifact::take(&mut args)?;
    let args = Args::read(args, text_bytes);
    fits(action, &args)?;
    submission.args = match (named, actions::wants_tool_message(action)) {
        (None, false) => args,
        (named, wrapped) => {
            // The content of an artifact is what its hash says, so that a repeat needs to fetch nothing.
            submission.fingerprint = Some(Fingerprint::of(action.name.as_str(), args.as_value()));
            let mut args = members(args);
            if let Some(named) = named {
                // A fetch may take long, and nobody needs it for what is cancelled meanwhile.
                tokio::select! {
                    biased;
                    filled = fill(face, &submission, &mut args, &named) => filled?,
                    () = live.cancel.fired() => return Err(not_begun()),
                }
            }
            Args::new(if wrapped { wrap(action, args)? } else { args })
        }
    };
    let patience = call.delivery().map_or(Patience::Short, |_| Patience::Endless);
    let turn = order(face, &envelope, &mut submission, subject).await?;
    match calls::run(face, submission, turn, &request, (live, patience)).await? {
        Ending::Settled(settled) => {
            let replayed = settled.replayed;
            let mut response =
                answer::json(StatusCode::OK, &calls::success(face, &request, *settled)?.shape());
            answer::mark_replayed(&mut response, replayed);
            Ok(response)
        }
        Ending::Ignored => Ok(ignored()),
        Ending::Acked => Ok(acked(&request)),
    }
}

/// What makes a repeat recognisable (KNO-9). A plain read needs no memory: it is done again.
fn identify(
    call: &Call,
    action: &Action,
    envelope: &Envelope,
    submission: &mut Submission,
) -> Result<(), Failure> {
    let ttl_ms = call.face.settings.key_ttl_ms;
    if let Some(key) = key(call, envelope)? {
        submission.identities.push(calls::key(action.name.as_str(), &submission.principal.name, key, ttl_ms));
    }
    if action.policy.effect != Effect::Read {
        submission.identities.extend(calls::request(&envelope.request_id, ttl_ms));
    }
    // A try after one that failed is not a repeat of it: it must not be answered with that failure.
    let round = call.delivery().and_then(|delivery| delivery.known.as_ref()).map_or(0, |known| known.round);
    if round > 0 {
        for identity in &mut submission.identities {
            identity.scope = Scope(format!("{}#{round}", identity.scope.0).into());
        }
    }
    Ok(())
}

/// The key of the header or of the envelope. Where both have one they are the same.
pub(super) fn key(call: &Call, envelope: &Envelope) -> Result<Option<Key>, Failure> {
    match (headers::idempotency_key(&call.parts.headers)?, envelope.key.clone()) {
        (Some(header), Some(inside)) if header != inside => {
            Err(Failure::invalid("Idempotency-Key", "it is not the idempotency_key of the envelope"))
        }
        (Some(key), _) | (None, Some(key)) => Ok(Some(key)),
        (None, None) => Ok(None),
    }
}

/// Envelopes with numbers run one after the other, in the order they came in.
async fn order(
    face: &Face,
    envelope: &Envelope,
    submission: &mut Submission,
    subject: String,
) -> Result<Turn, Failure> {
    let Some(seq) = envelope.seq else { return Ok(Turn::InOrder) };
    let principal = &submission.principal;
    let sender = Sender {
        tenant: principal.tenant.as_str().to_owned(),
        principal: principal.name.to_string(),
        subject,
    };
    submission.lane = Lane::parse(&sender.lane()).ok();
    Ok(face.order.note(sender, seq, face.now_ms()).await?)
}

/// Puts the content of an artifact into the arguments, unless the answer is known already.
async fn fill(
    face: &Face,
    submission: &Submission,
    args: &mut Map<String, Value>,
    named: &Named,
) -> Result<(), Failure> {
    let tenant = &submission.principal.tenant;
    for identity in &submission.identities {
        if face.kernel.outcome_of(tenant, identity).await?.is_some() {
            return Ok(());
        }
    }
    let body = artifact::get(face, tenant.as_str(), named).await?;
    artifact::put(args, named, body)
}

fn wrap(action: &Action, args: Map<String, Value>) -> Result<Map<String, Value>, Failure> {
    tool_message(action.name.as_str(), &action.about.description, args).map_err(Failure::of_action)
}

fn members(args: Args) -> Map<String, Value> {
    match args.into_value() {
        Value::Object(members) => members,
        // Arguments are an object; there is nothing else they could be.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn fits(action: &Action, args: &Args) -> Result<(), Failure> {
    let Some(limit) = actions::max_payload_bytes(action) else { return Ok(()) };
    match args.fits(limit) {
        Ok(()) => Ok(()),
        Err(bytes) => {
            let message = format!("the arguments have {bytes} bytes; {} takes {limit}", action.name);
            let fault = Fault::new(Code::PayloadTooLarge, message).with("max_payload_bytes", limit);
            Err(fault.with("hint", TOO_LARGE).into())
        }
    }
}

fn correlation(call: &Call, envelope: &Envelope) -> CorrelationId {
    envelope.correlation.clone().unwrap_or_else(|| call.correlation.clone())
}

fn ignored() -> Response {
    let body = wire::Success { ok: true, data: &Value::Null, usage: None, replayed: false, ignored: true };
    answer::json(StatusCode::OK, &body)
}

fn acked(request: &Request) -> Response {
    acknowledged(&request.id, request.tenant.as_str())
}

/// It goes on; this is where to look.
pub(super) fn acknowledged(id: &str, tenant: &str) -> Response {
    let check_url = format!("/mcp/requests/{id}?tenant_id={tenant}");
    let acked = wire::Acked { state: "ACKED", request_id: id, check_url: &check_url };
    let data = serde_json::to_value(acked).unwrap_or_default();
    let mut response = answer::success(StatusCode::ACCEPTED, &data);
    answer::locate(&mut response, &check_url);
    response
}
