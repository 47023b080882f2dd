//! Takes envelopes from the bus, runs each as if it had come over HTTP, and decides what its outcome means for the message.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_broker::worker::{Receiver, Worker};
use orchestr8_broker::{Delivery, Ended, Message, Verdict};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Why;
use orchestr8_kernel::ledger::store_fault;
use serde_json::{Value, json};

use super::{PubSub, Sender, reply};
use crate::calls::{self, State};
use crate::deliver::{Envelopes, Known};
use crate::envelope::Envelope;
use crate::face::Face;
use crate::failure::Failure;
use crate::live::{Listed, Live};
use crate::metrics::{DEAD_LETTER, Labels, RETRY};
use crate::tables;
use crate::to_wire::Word;

/// Runs published envelopes until the server stops; then what is in hand is finished.
pub async fn consume(envelopes: Envelopes) {
    let face = envelopes.face().clone();
    let Some(PubSub { broker, settings }) = face.settings.pubsub.clone() else { return };
    let receiver = Arc::new(Consumer { envelopes, attempts: settings.attempts });
    let worker = Worker {
        broker,
        receiver,
        settings,
        clock: face.kernel.ports().clock.clone(),
        log: face.kernel.log().clone(),
        stop: face.settings.shutdown.clone(),
    };
    worker.run().await;
}

struct Consumer {
    envelopes: Envelopes,
    attempts: u32,
}

impl Receiver for Consumer {
    fn receive(&self, delivery: Delivery) -> BoxFuture<'static, Verdict> {
        let (envelopes, last) = (self.envelopes.clone(), delivery.receipt.attempt >= self.attempts);
        if delivery.receipt.attempt > 1 {
            envelopes.face().settings.metrics.retried(labels(&delivery.message, RETRY));
        }
        async move { judge(&envelopes, delivery, last).await }.boxed()
    }

    fn ended(&self, message: &Message, ended: Ended) {
        let metrics = &self.envelopes.face().settings.metrics;
        match ended {
            Ended::Gone | Ended::Late | Ended::Again { .. } => {}
            Ended::Dead => metrics.dead_lettered(labels(message, DEAD_LETTER)),
        }
    }

    fn give_up(&self, message: &Message) -> Bytes {
        let face = self.envelopes.face();
        let failure = Failure::from(Fault::new(
            Code::Unavailable,
            "it was delivered and never settled, too often; it lies with the dead letters",
        ));
        let word = Word::Unavailable;
        let (status, body) = (word.status().as_u16(), told(&failure, &message.id));
        face.settings.metrics.concluded(labels(message, "").ended(Some(word.as_str())), None);
        match Envelope::read(&message.body, None) {
            Ok(envelope) => reply::reply(&envelope, status, body, face.now_ms()),
            Err(_) => Bytes::from(body.to_string()),
        }
    }
}

fn labels(message: &Message, status: &'static str) -> Labels {
    let prefix = format!("a2a.{}.", message.tenant);
    let action = message.subject.as_str().strip_prefix(&prefix).unwrap_or_default().to_owned();
    let (tenant, principal) = (message.tenant.as_str().to_owned(), message.principal.clone());
    Labels { action, tenant, principal, status, error_code: "" }
}

/// The body of a failure that is not the answer to a request of its own.
fn told(failure: &Failure, id: &str) -> Value {
    let correlation = orchestr8_contract::id::CorrelationId::parse(id);
    correlation.map_or(Value::Null, |correlation| failure.body(&correlation))
}

/// Runs an envelope. What may work another time is not final; everything else is an answer.
async fn judge(envelopes: &Envelopes, delivery: Delivery, last: bool) -> Verdict {
    let face = envelopes.face();
    let message = &delivery.message;
    let envelope = match (Envelope::read(&message.body, None), Sender::read(&message.sender)) {
        (Ok(envelope), Ok(sender)) => (envelope, sender),
        // Both were read when it was published, so this is damage, and somebody should see it.
        (Err(failure), _) => return Verdict::Dead { why: failure.into_fault().to_string(), reply: None },
        (_, Err(fault)) => return Verdict::Dead { why: fault.to_string(), reply: None },
    };
    let (envelope, sender) = envelope;
    let answered = |status: u16, body: Value| Some(reply::reply(&envelope, status, body, face.now_ms()));
    let live = Live::default();
    // Listed before it is looked whether it was cancelled: whoever cancels it either is seen here or finds it there.
    let (_listed, cancelled) = {
        let _begins = face.calls.begin().await;
        let place = (message.tenant.clone(), message.id.clone());
        (Listed::new(face, place, live.clone()), cancelled(face, message).await)
    };
    match cancelled {
        Ok(None) => {}
        Ok(Some(answer)) => {
            count(face, &delivery, Some(Word::Conflict.as_str()));
            return Verdict::Done { reply: answered(Word::Conflict.status().as_u16(), answer) };
        }
        Err(fault) => return Verdict::Again { why: fault.to_string(), reply: None },
    }
    let tenant = message.tenant.as_str();
    let known = Known { sender, round: delivery.round, live: live.clone() };
    let delivered = envelopes.redeliver(tenant, message.body.clone(), known).await;
    let body: Value = serde_json::from_slice(&delivered.body).unwrap_or_default();
    let is_wanted = live.cancel.why() != Some(Why::Client);
    let may_work_later = is_wanted && matches!(delivered.status, 429 | 500 | 503);
    if may_work_later && face.settings.shutdown.is_cancelled() {
        return Verdict::Returned;
    }
    let failed = delivered.status >= 400;
    if !may_work_later || last {
        let state = match delivered.code {
            None => State::Succeeded,
            Some(Code::Cancelled) => State::Cancelled,
            Some(_) => State::Failed,
        };
        record(face, message, state, &body).await;
        count(face, &delivery, delivered.word);
    }
    let why = || format!("{} {}", body["error"]["code"].as_str().unwrap_or("?"), body["error"]["message"]);
    match (failed, may_work_later, &message.reply_to) {
        (false, _, _) | (true, false, Some(_)) => Verdict::Done { reply: answered(delivered.status, body) },
        (true, true, _) => Verdict::Again { why: why(), reply: answered(delivered.status, body) },
        // Nobody would hear of it: it is kept where somebody looks.
        (true, false, None) => Verdict::Dead { why: why(), reply: None },
    }
}

/// One request, whatever the number of its deliveries.
fn count(face: &Face, delivery: &Delivery, word: Option<&'static str>) {
    let elapsed_ms = u64::try_from(face.now_ms().saturating_sub(delivery.published_ms)).unwrap_or(0);
    let labels = labels(&delivery.message, "").ended(word);
    face.settings.metrics.concluded(labels, Some(elapsed_ms.saturating_mul(1000)));
}

/// The answer to one that was cancelled while it waited.
async fn cancelled(face: &Face, message: &Message) -> Result<Option<Value>, Fault> {
    let found = tables::request_find(message.tenant.as_str(), &message.id);
    let rows = face.kernel.ports().store.query(found).await.map_err(store_fault)?;
    let Some(row) = rows.first() else { return Ok(None) };
    if row.text(2).map_err(store_fault)? != State::Cancelled.as_str() {
        return Ok(None);
    }
    let answer = row.optional_text(5).map_err(store_fault)?;
    Ok(Some(answer.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()))
}

/// What `GET /mcp/requests/{id}` shows from now on. If it cannot be written, the reply still says it.
async fn record(face: &Face, message: &Message, state: State, body: &Value) {
    let stored = calls::record(face, &message.tenant, &message.id, state, Some(body.clone())).await;
    if let Err(fault) = stored {
        let about = json!({"requestId": message.id, "error": fault.to_string()});
        face.kernel.log().error("the end of a published envelope could not be recorded", about);
    }
}
