//! `POST /a2a/publish`: an envelope to be run when its turn comes (KNO-1). It is checked as one that is run at once.

use bytes::Bytes;
use orchestr8_broker::{Message, Subject};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::authorize::authorize;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::principals::Standing;
use orchestr8_kernel::{Principal, Transport};
use serde_json::json;

use crate::call::{Call, Outcome};
use crate::endpoints::actions::{acknowledged, admitted, count, key};
use crate::envelope::Envelope;
use crate::failure::Failure;
use crate::metrics::Labels;
use crate::order;
use crate::pubsub::{PubSub, Sender};
use crate::security::{Kind, Who};
use crate::tables::{self, Acked};

/// Answers 202 once the envelope is on stable storage. What is refused is counted now, what is taken when it ends.
pub(crate) async fn publish(call: Call) -> Outcome {
    let mut labels = Labels::default();
    let outcome = published(&call, &mut labels).await;
    count(&call, &outcome, labels);
    outcome
}

async fn published(call: &Call, labels: &mut Labels) -> Outcome {
    let (who, body) = call.authenticate(Kind::Address).await?;
    let envelope = Envelope::read(&body, None)?;
    match (checked(call, who, &envelope, body, labels).await, &envelope.trace_id) {
        (Err(failure), Some(trace)) => Err(failure.traced(trace)),
        (Err(failure), None) => Err(failure),
        (Ok(()), _) => Ok(acknowledged(&envelope.request_id, envelope.tenant.as_str())),
    }
}

/// Everything about the envelope, before it is published.
async fn checked(
    call: &Call,
    who: Who,
    envelope: &Envelope,
    body: Bytes,
    labels: &mut Labels,
) -> Result<(), Failure> {
    let (action, principal) = admitted(call, who.clone(), envelope, labels)?;
    if let Err(fault) = authorize(&action, &principal, Transport::Http, Standing::Unknown) {
        let source = call.refusal_source();
        call.face.kernel.record_refusal(action.name.as_str(), &principal, source, &fault).await;
        return Err(fault.into());
    }
    let reply_to = envelope.reply_to.as_deref().map(|text| Subject::reply(&principal.tenant, text));
    let reply_to = reply_to.transpose().map_err(|wrong| Failure::invalid("/reply_to", wrong.to_string()))?;
    let message = Message {
        tenant: principal.tenant.clone(),
        subject: Subject::of_action(&principal.tenant, &action.name),
        id: envelope.request_id.clone(),
        principal: principal.name.to_string(),
        sender: Sender { who, key: key(call, envelope)?.map(|key| key.as_str().to_owned()) }.to_text(),
        reply_to,
        lane: lane(envelope, &principal),
        body,
    };
    queue(call, message, action.name.as_str()).await?;
    call.face.settings.metrics.published(labels.clone());
    Ok(())
}

/// The bus, or that there is none.
pub(super) fn bus(call: &Call) -> Result<&PubSub, Failure> {
    let nowhere = || Fault::new(Code::Unavailable, "this server takes no envelopes over the bus");
    call.face
        .settings
        .pubsub
        .as_ref()
        .ok_or_else(|| Failure::from(nowhere().with("hint", "set knowledge.pubsub.enabled = true")))
}

/// The message and where to look for it, in one group of the store.
async fn queue(call: &Call, message: Message, action: &str) -> Result<(), Failure> {
    let broker = &bus(call)?.broker;
    let acked = Acked {
        tenant: message.tenant.as_str(),
        id: &message.id,
        principal: &message.principal,
        action,
        queued: true,
        now_ms: call.face.now_ms(),
    };
    let mut batch = Batch::new();
    batch.then(tables::request_ack(&acked));
    let change = StateChange {
        principal: &message.principal,
        transport: Transport::Http,
        source: call.source(),
        detail: json!({"action": action}),
        ..StateChange::by_server("broker.publish", message.tenant.as_str(), Some(&message.id))
    };
    batch.link(change.link(acked.now_ms));
    let noted = call.face.kernel.ports().store.commit(batch);
    let (noted, published) = futures::future::join(noted, broker.publish(message)).await;
    noted.map_err(store_fault)?;
    Ok(published?)
}

/// Envelopes with numbers are delivered in their order: a later one that overtook would make the earlier one too late.
fn lane(envelope: &Envelope, principal: &Principal) -> Option<String> {
    envelope.seq?;
    let sender = order::Sender {
        tenant: principal.tenant.as_str().to_owned(),
        principal: principal.name.to_string(),
        subject: envelope.subject().to_owned(),
    };
    Some(sender.lane())
}
