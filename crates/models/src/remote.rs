//! A model of a provider on the network: connects, tries again, reads the stream, and keeps to the limits.
//!
//! Until the first piece of an answer is there, a failure is tried again. After it the answer cannot be begun anew without
//! saying the same twice, and no provider lets us take up a stream where it broke: then it fails as `stream_broken`.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use orchestr8_contract::{Code, FailureCategory, Fault};
use orchestr8_kernel::resilience::{self, Resilience, breaker};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::catalog::Ports;
use crate::draft::too_large;
use crate::key_mask::KeyMask;
use crate::limits::{CONNECT_MS, IDLE_CONNECTIONS, KEEPALIVE_MS, REFUSAL_BYTES};
use crate::model::{About, Delta, Model, Request};
use crate::refusal::{self, Said, broken};
use crate::sse::Parser;
use crate::wire::{Fold, Spec, Wire};

/// The HTTP client of all providers, built when it is first needed.
#[derive(Default)]
pub struct Client(OnceLock<Result<reqwest::Client, Fault>>);

/// What all models of one provider share.
pub struct Provider {
    pub wire: Box<dyn Wire>,
    pub url: Url,
    pub headers: HeaderMap,
    pub resilience: Resilience,
    pub idle: Duration,
    pub stream_bytes: u64,
    /// The key of its breaker.
    pub breaker: String,
    pub client: Arc<Client>,
    pub ports: Ports,
}

/// One model of a provider.
pub struct Remote {
    spec: Arc<Spec>,
    provider: Arc<Provider>,
}

impl Remote {
    pub fn new(spec: Spec, provider: Arc<Provider>) -> Self {
        Self { spec: Arc::new(spec), provider }
    }
}

impl Model for Remote {
    fn about(&self) -> &About {
        &self.spec.about
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, Fault>> {
        let call = Call { spec: self.spec.clone(), provider: self.provider.clone(), request, cancel };
        stream::unfold(State::Begin(Box::new(call)), State::next).fuse().boxed()
    }
}

/// The key of a provider's breaker.
pub fn breaker_key(provider: &str) -> String {
    breaker::key("model", Some(provider))
}

/// Where a stream is.
enum State {
    Begin(Box<Call>),
    Going(Box<Pull>, CancellationToken),
    Over,
}

impl State {
    async fn next(self) -> Option<(Result<Delta, Fault>, State)> {
        let (mut pull, cancel) = match self {
            State::Over => return None,
            State::Going(pull, cancel) => (pull, cancel),
            State::Begin(call) => match call.begin().await {
                Ok(pull) => (Box::new(pull), call.cancel),
                Err(_) if call.cancel.is_cancelled() => return None,
                Err(fault) => return Some((Err(fault), State::Over)),
            },
        };
        let item = tokio::select! {
            biased;
            () = cancel.cancelled() => return None,
            item = pull.next() => item?,
        };
        let next = if item.is_ok() { State::Going(pull, cancel) } else { State::Over };
        Some((item, next))
    }
}

/// A request that is to be made.
struct Call {
    spec: Arc<Spec>,
    provider: Arc<Provider>,
    request: Request,
    cancel: CancellationToken,
}

impl Call {
    /// Tries until there is a first delta.
    async fn begin(&self) -> Result<Pull, Fault> {
        let provider = &self.provider;
        let body = self.provider.wire.body(&self.spec, &self.request);
        let body = serde_json::to_vec(&body)
            .map_err(|cause| Fault::internal("the request could not be written").because(cause))?;
        let body = Bytes::from(body);
        let breaker = match &self.request.tenant {
            Some(tenant) => breaker::of_tenant(&provider.breaker, tenant),
            None => Cow::Borrowed(&*provider.breaker),
        };
        resilience::run(
            &provider.resilience,
            &breaker,
            |_| self.attempt(body.clone()),
            &self.cancel,
            &provider.ports.breakers,
            &*provider.ports.clock,
            &*provider.ports.random,
        )
        .await
    }

    async fn attempt(&self, body: Bytes) -> Result<Pull, Fault> {
        let (provider, clock) = (&self.provider, &self.provider.ports.clock);
        let request = provider
            .client
            .get()?
            .post(provider.url.clone())
            .headers(provider.headers.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"))
            .body(body);
        let response = tokio::select! {
            response = request.send() => response.map_err(|error| self.unreachable(error))?,
            () = clock.sleep(provider.idle) => return Err(self.silent()),
        };
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let mut pull = Pull {
            body: response.bytes_stream().boxed(),
            parser: Parser::default(),
            mask: KeyMask::new(self.spec.key.as_ref()),
            fold: provider.wire.fold(&self.spec, &self.request, clock.now_ms()),
            ready: VecDeque::new(),
            failed: None,
            bytes: 0,
            over: false,
            provider: provider.clone(),
        };
        pull.first().await?;
        Ok(pull)
    }

    async fn refused(&self, response: Response) -> Fault {
        let (provider, clock) = (&self.provider, &self.provider.ports.clock);
        let status = response.status().as_u16();
        let wait_ms = refusal::retry_after_ms(response.headers(), clock.now_ms());
        let body = tokio::select! {
            body = beginning(response) => body,
            () = clock.sleep(provider.idle) => Vec::new(),
        };
        let said = Said::read(&String::from_utf8_lossy(&body));
        let name = &self.spec.about.provider;
        refusal::after(refusal::of_status(status, &said, name, self.spec.key.as_ref()), wait_ms)
    }

    /// Why nothing came back. The address is left out: it may hold what is nobody's business.
    fn unreachable(&self, error: reqwest::Error) -> Fault {
        let name = &self.spec.about.provider;
        let why = if error.is_connect() { "cannot be reached" } else { "broke the connection" };
        Fault::new(Code::Unavailable, format!("{name} {why}"))
            .in_category(FailureCategory::Network)
            .with("provider", name.as_str())
            .because(error.without_url())
    }

    fn silent(&self) -> Fault {
        let name = &self.spec.about.provider;
        let idle_ms = self.provider.idle.as_millis();
        Fault::new(Code::Unavailable, format!("{name} said nothing for {idle_ms} ms"))
            .in_category(FailureCategory::Timeout)
            .with("provider", name.as_str())
    }
}

/// An answer that comes in.
struct Pull {
    body: BoxStream<'static, Result<Bytes, reqwest::Error>>,
    parser: Parser,
    fold: Box<dyn Fold>,
    /// The answer may repeat the key.
    mask: KeyMask,
    ready: VecDeque<Delta>,
    /// Given once everything that came before it is given.
    failed: Option<Fault>,
    bytes: u64,
    over: bool,
    provider: Arc<Provider>,
}

impl Pull {
    /// Waits for the first delta, which stays to be asked for.
    async fn first(&mut self) -> Result<(), Fault> {
        while self.ready.is_empty() {
            if let Some(fault) = self.failed.take() {
                return Err(fault);
            }
            self.read().await;
        }
        Ok(())
    }

    async fn next(&mut self) -> Option<Result<Delta, Fault>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            if self.over {
                return None;
            }
            if let Some(fault) = self.failed.take() {
                return Some(Err(fault));
            }
            self.read().await;
        }
    }

    /// Takes what comes next, be it bytes, an end, or silence.
    async fn read(&mut self) {
        let chunk = tokio::select! {
            chunk = self.body.next() => chunk,
            () = self.provider.ports.clock.sleep(self.provider.idle) => {
                self.failed = Some(broken("nothing came for too long"));
                return;
            }
        };
        let taken = match chunk {
            Some(Ok(bytes)) => self.take(&bytes),
            Some(Err(error)) => Err(broken("the connection was lost").because(error.without_url())),
            None => self.end(),
        };
        self.failed = taken.err();
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let max = self.provider.stream_bytes;
        if self.bytes > max {
            return Err(too_large(format!("the stream is longer than {max} bytes")));
        }
        let mut events = Vec::new();
        let parsed = self.parser.push(bytes, &mut events);
        for event in events {
            let deltas = self.fold.take(&event)?;
            if self.give(deltas) {
                return Ok(());
            }
        }
        parsed.map_err(|error| broken("it is no stream of events").because(error))
    }

    fn end(&mut self) -> Result<(), Fault> {
        let last = self.parser.end().map_err(|error| broken("it is no stream of events").because(error))?;
        if let Some(event) = last {
            let deltas = self.fold.take(&event)?;
            if self.give(deltas) {
                return Ok(());
            }
        }
        let deltas = self.fold.end()?;
        self.give(deltas);
        Ok(())
    }

    /// True once the answer is whole: what comes after it is not read.
    fn give(&mut self, deltas: Vec<Delta>) -> bool {
        self.over |= matches!(deltas.last(), Some(Delta::Done(_)));
        self.ready.extend(self.mask.pass(deltas));
        self.over
    }
}

impl Client {
    /// No redirects and no proxies: the key goes where the settings say, and nowhere else.
    pub(crate) fn get(&self) -> Result<&reqwest::Client, Fault> {
        let build = || {
            reqwest::Client::builder()
                .redirect(Policy::none())
                .no_proxy()
                .referer(false)
                .user_agent("orchestr8")
                .connect_timeout(Duration::from_millis(CONNECT_MS))
                .tcp_keepalive(Duration::from_millis(KEEPALIVE_MS))
                .pool_max_idle_per_host(IDLE_CONNECTIONS)
                .build()
                .map_err(|cause| Fault::internal("the HTTP client could not be set up").because(cause))
        };
        self.0.get_or_init(build).as_ref().map_err(Clone::clone)
    }
}

/// What a refusal begins with.
pub(crate) async fn beginning(response: Response) -> Vec<u8> {
    let mut body = response.bytes_stream();
    let mut read = Vec::new();
    while let Some(Ok(bytes)) = body.next().await {
        let room = REFUSAL_BYTES - read.len();
        read.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if read.len() >= REFUSAL_BYTES {
            break;
        }
    }
    read
}
