//! One signed delivery to an address that a user chose: an HTTP POST that the other side takes, refuses so that it is tried again, or refuses for good.

use std::time::Duration;

use orchestr8_contract::Fault;
use reqwest::{StatusCode, Url, header};

use crate::{Client, Guard, SIGNATURE, TIMED_SIGNATURE, client, signature, timed_signature};

/// What is sent beside the body and its signature: which event, which delivery.
pub const EVENT: &str = "x-orchestr8-event";
pub const DELIVERY: &str = "x-orchestr8-delivery";

/// What is sent, and where to.
pub struct SignedDelivery<'d> {
    pub url: &'d str,
    pub event: &'d str,
    pub id: &'d str,
    pub body: &'d str,
    /// None: it goes out unsigned.
    pub secret: Option<&'d str>,
    pub timeout: Duration,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryEnd {
    Taken,
    /// Worth another attempt.
    Refused(String),
    /// The other side wants nothing more.
    Gone(String),
}

impl SignedDelivery<'_> {
    /// Sends it once. The address is checked with every attempt: what was allowed when it was stored may not be any more.
    pub async fn send(&self, client: &Client, guard: &Guard, now_ms: i64) -> DeliveryEnd {
        match self.try_send(client, guard, now_ms).await {
            Ok(status) if status.is_success() => DeliveryEnd::Taken,
            Ok(StatusCode::GONE) => DeliveryEnd::Gone(String::from("410 Gone")),
            Ok(status) => DeliveryEnd::Refused(format!("it answered {status}")),
            Err(fault) => DeliveryEnd::Refused(fault.message.into_owned()),
        }
    }

    async fn try_send(&self, client: &Client, guard: &Guard, now_ms: i64) -> Result<StatusCode, Fault> {
        let url = Url::parse(self.url).map_err(|_| Fault::invalid("its address is none"))?;
        guard.check_url(&url)?;
        let mut request = client
            .get()?
            .post(url)
            .timeout(self.timeout)
            .header(header::CONTENT_TYPE, "application/json")
            .header(EVENT, self.event)
            .header(DELIVERY, self.id);
        if let Some(secret) = self.secret {
            request = request
                .header(SIGNATURE, signature(secret, self.body)?)
                .header(TIMED_SIGNATURE, timed_signature(secret, self.body, now_ms)?);
        }
        let sent = request.body(self.body.to_owned()).send().await;
        Ok(sent.map_err(|error| client::fault("the delivery", error))?.status())
    }
}
