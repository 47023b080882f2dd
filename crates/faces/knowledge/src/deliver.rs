//! Envelopes that come another way than over HTTP: read, checked, run and answered the same (KNO-1).

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use orchestr8_contract::Code;
use orchestr8_edge::body;
use orchestr8_kernel::Kernel;
use std::time::Duration;

use crate::endpoints::actions;
use crate::envelope::Envelope;
use crate::face::Face;
use crate::failure::{Failed, Failure};
use crate::headers::IDEMPOTENCY_KEY;
use crate::limits;
use crate::live::Live;
use crate::pubsub::Sender;
use crate::routes;
use crate::settings::Settings;

/// One face for envelopes on every transport: order, rates and calls under way are shared. Clones share it.
#[derive(Clone)]
pub struct Envelopes(Arc<Face>);

/// What an envelope came to, as HTTP would say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    pub status: u16,
    /// The body of the answer, as JSON.
    pub body: Bytes,
    /// What went wrong, more exactly than the status says.
    pub code: Option<Code>,
    /// The same in the word of the envelope.
    pub(crate) word: Option<&'static str>,
}

/// Says of a request that it was delivered, and to whom it was addressed.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub tenant: String,
    /// Nothing of one that proves itself who sent it.
    pub known: Option<Known>,
}

/// What is known of an envelope that was published.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// What was found out when it was published.
    pub sender: Sender,
    /// Which try this is.
    pub round: u32,
    /// What whoever delivers it can stop it by.
    pub live: Live,
}

impl Envelopes {
    pub fn new(kernel: Kernel, settings: Settings) -> Self {
        Self(Face::new(kernel, settings))
    }

    pub fn router(&self) -> Router {
        routes::of(&self.0)
    }

    /// Every path that is served.
    pub fn paths(&self) -> Vec<&'static str> {
        routes::all(&self.0).map(|(path, _)| path).collect()
    }

    /// Runs an envelope that was addressed to a tenant, however long it takes. It proves who sent it as over HTTP: signed, it is a
    /// compact JWS; a bearer token comes beside it.
    pub async fn deliver(&self, tenant: &str, message: Bytes, token: Option<&str>) -> Delivered {
        let delivery = Delivery { tenant: tenant.to_owned(), known: None };
        let signed = message.first() != Some(&b'{');
        let media = if signed { "application/jose" } else { "application/json" };
        let mut request = Request::new(Body::from(message));
        *request.method_mut() = Method::POST;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        if let Some(token) = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok()) {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        self.run(request, delivery).await
    }

    /// Runs an envelope that was checked when it was published.
    pub(crate) async fn redeliver(&self, tenant: &str, message: Bytes, known: Known) -> Delivered {
        let mut request = Request::new(Body::from(message));
        *request.method_mut() = Method::POST;
        if let Some(key) = known.sender.key.as_deref().and_then(|key| HeaderValue::from_str(key).ok()) {
            request.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        self.run(request, Delivery { tenant: tenant.to_owned(), known: Some(known) }).await
    }

    pub(crate) fn face(&self) -> &Arc<Face> {
        &self.0
    }

    async fn run(&self, mut request: Request<Body>, delivery: Delivery) -> Delivered {
        request.extensions_mut().insert(delivery);
        let response = self.0.clone().answer(request, actions::any).await;
        let failed = response.extensions().get::<Failed>().copied();
        let (code, word) = (failed.map(|failed| failed.code), failed.map(|failed| failed.word.as_str()));
        let (status, timeout) = (response.status().as_u16(), Duration::from_millis(limits::BODY_TIMEOUT_MS));
        match body::read(response.into_body(), usize::MAX, timeout).await {
            Ok(body) => Delivered { status, body, code, word },
            // The body is one piece in memory, so this does not happen; it would be our fault.
            Err(_) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR.as_u16();
                Delivered { status, body: Bytes::new(), code, word }
            }
        }
    }
}

impl Delivery {
    /// What it can be stopped by, if somebody holds that already.
    pub fn live(&self) -> Option<Live> {
        self.known.as_ref().map(|known| known.live.clone())
    }

    /// What is addressed to one tenant speaks for no other.
    pub fn check(&self, envelope: &Envelope) -> Result<(), Failure> {
        match envelope.tenant.as_str() == self.tenant {
            true => Ok(()),
            false => Err(Failure::forbidden("the envelope is addressed to another tenant than it names")),
        }
    }
}
