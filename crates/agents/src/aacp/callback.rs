//! Brings messages to callback addresses: each transmission under an id of its own, signed, again with longer waits.

use std::time::Duration;

use futures::StreamExt;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::MessageId;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::resilience::retry::may_retry;
use orchestr8_outbound::{SIGNATURE, TIMED_SIGNATURE, client, signature, timed_signature};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;

use super::delivery::Way;
use super::desk::Wish;
use super::envelope::Kind;
use super::hub::Hub;
use super::record::Address;
use super::registry::Secret;
use super::rows::Item;
use crate::limits;

/// Where an agent elsewhere is called, and what signs the calls.
pub struct Callback {
    pub url: String,
    pub secret: Option<Secret>,
}

/// What the attempts to bring a message came to.
pub enum Brought {
    Taken,
    Answered(Result<Value, StoredFault>),
    /// Not there now; perhaps later.
    Refused(Fault),
    /// Its time is over: it is not brought any more.
    Expired,
}

/// What a message came to, and how often it was sent for that.
pub struct Delivery {
    pub brought: Brought,
    pub transmissions: u32,
}

impl Brought {
    pub fn after(self, transmissions: u32) -> Delivery {
        Delivery { brought: self, transmissions }
    }
}

/// One transmission to a callback.
struct Transmission {
    result: Result<Brought, Fault>,
    /// Whether it may have reached the callback.
    is_sent: bool,
}

impl Transmission {
    fn unsent(fault: Fault) -> Self {
        Self { result: Err(fault), is_sent: false }
    }
}

impl Hub {
    /// Brings it to the callback address, again and again with longer waits: what follows from the same source waits. Each
    /// transmission has an id of its own (AACP-1); its request and its number stay.
    pub(super) async fn call(&self, address: &Address, to: &Callback, item: &Item) -> Delivery {
        let ports = self.0.kernel.ports();
        let mut envelope = item.envelope.clone();
        let (mut attempts, mut transmissions) = (0, 0);
        loop {
            attempts += 1;
            let Transmission { result, is_sent } = self.post(to, item.position, &envelope).await;
            transmissions += u32::from(is_sent);
            let fault = match result {
                Ok(brought) => return brought.after(transmissions),
                Err(fault) => fault,
            };
            if item.kind == Kind::Request && !may_retry(&fault) {
                return Brought::Answered(Err(StoredFault::from(&fault))).after(transmissions);
            }
            let gone = !matches!(self.way(address), Way::Callback(_));
            let policy = &self.0.settings.policy;
            let used_up = item.kind == Kind::Request && transmissions >= policy.max_attempts();
            if attempts >= limits::CALLBACK_ATTEMPTS || used_up || gone || !may_retry(&fault) {
                return Brought::Refused(fault).after(transmissions);
            }
            let wait_ms = policy.backoff_ms(attempts, ports.random.unit());
            if self.now_ms().saturating_add(wait_ms) >= item.expires_ms {
                return Brought::Expired.after(transmissions);
            }
            ports.clock.sleep(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0))).await;
            if is_sent {
                self.retransmit(address, item, &mut envelope).await;
            }
        }
    }

    /// Gives the message the id of its next transmission, on record before it goes out.
    async fn retransmit(&self, address: &Address, item: &Item, envelope: &mut Value) {
        let ids = &self.0.kernel.ports().ids;
        loop {
            let sent_as = MessageId::from_uuid(ids.fresh(For::Record));
            let (address, position) = (address.clone(), item.position);
            let wish = Wish::Retransmit { address: address.clone(), position, sent_as: sent_as.clone() };
            match self.wish(wish).await {
                Ok(_) => {
                    let before = envelope.get("retryCount").and_then(Value::as_u64).unwrap_or(item.retries);
                    if let Some(map) = envelope.as_object_mut() {
                        map.insert(String::from("messageId"), sent_as.as_str().into());
                        map.insert(String::from("retryCount"), (before + 1).into());
                    }
                    return;
                }
                Err(fault) => self.pause(&address, "a transmission could not be recorded yet", &fault).await,
            }
        }
    }

    async fn post(&self, to: &Callback, position: u64, envelope: &Value) -> Transmission {
        let body = envelope.to_string();
        let request = match self.prepare(to, position, &body) {
            Ok(request) => request,
            Err(fault) => return Transmission::unsent(fault),
        };
        match request.body(body).send().await {
            Ok(response) => Transmission { result: heard(response).await, is_sent: true },
            Err(error) => {
                let is_sent = !error.is_connect() && !error.is_builder();
                Transmission { result: Err(client::fault("the callback", error)), is_sent }
            }
        }
    }

    fn prepare(&self, to: &Callback, position: u64, body: &str) -> Result<RequestBuilder, Fault> {
        let url = Url::parse(&to.url).map_err(|_| Fault::invalid("the callback address is none"))?;
        // Checked with every delivery: what was allowed when it was registered may not be any more.
        self.0.guard.check_url(&url)?;
        let mut request = self
            .0
            .client
            .get()?
            .post(url)
            .timeout(Duration::from_millis(limits::CALLBACK_TIMEOUT_MS))
            .header(reqwest::header::CONTENT_TYPE, "application/json")
            .header("x-orchestr8-inbox-seq", position);
        if let Some(Secret(secret)) = &to.secret {
            let timed = timed_signature(secret, body, self.0.kernel.ports().clock.now_ms())?;
            request = request.header(SIGNATURE, signature(secret, body)?).header(TIMED_SIGNATURE, timed);
        }
        Ok(request)
    }
}

/// What the callback says.
async fn heard(response: Response) -> Result<Brought, Fault> {
    match response.status() {
        StatusCode::OK => Ok(answer(&read(response).await?)),
        status if status.is_success() => Ok(Brought::Taken),
        status => Err(Fault::new(Code::Unavailable, format!("the callback answered {status}"))),
    }
}

/// The body, as far as it may go.
async fn read(response: Response) -> Result<Vec<u8>, Fault> {
    let mut pieces = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece.map_err(|error| client::fault("the callback", error))?);
        if body.len() > limits::CALLBACK_ANSWER_BYTES {
            return Err(Fault::new(Code::PayloadTooLarge, "the answer of the callback is too large"));
        }
    }
    Ok(body)
}

/// What an answer with a body says: a RESPONSE, or only its payload or error; anything else only that it was taken.
fn answer(body: &[u8]) -> Brought {
    let Ok(Value::Object(mut map)) = serde_json::from_slice::<Value>(body) else { return Brought::Taken };
    if let Some(error) = map.remove("error").filter(|error| !error.is_null()) {
        return Brought::Answered(Err(super::envelope::told(Some(&error))));
    }
    match map.remove("payload") {
        Some(payload) => Brought::Answered(Ok(payload)),
        None => Brought::Taken,
    }
}
