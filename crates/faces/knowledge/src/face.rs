//! What all requests share.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use orchestr8_edge::{Caller, Endpoint};
use orchestr8_kernel::refusals::RefusalSource;
use orchestr8_kernel::{Kernel, Transport};

use crate::answer;
use crate::artifact::{Fetcher, Links};
use crate::call::{Call, Told};
use crate::failure::Failure;
use crate::live::Calls;
use crate::order::Order;
use crate::rates::Rates;
use crate::settings::Settings;

/// What the audit trail calls a request that claims more than its credentials prove: a tenant, a principal, a role.
const CLAIM: &str = "auth.claim";

pub(crate) struct Face {
    pub kernel: Kernel,
    pub settings: Settings,
    pub order: Order,
    pub rates: Rates,
    pub calls: Calls,
    pub links: Links,
    pub fetcher: Fetcher,
}

impl Face {
    pub fn new(kernel: Kernel, settings: Settings) -> Arc<Self> {
        let store = kernel.ports().store.clone();
        Arc::new(Self {
            order: Order::new(store.clone()),
            rates: Rates::new(settings.rate_per_minute),
            calls: Calls::default(),
            links: Links::new(store, settings.link_secret, settings.vault.clone()),
            fetcher: Fetcher::new(&settings),
            kernel,
            settings,
        })
    }

    pub fn now_ms(&self) -> i64 {
        self.kernel.ports().clock.now_ms()
    }

    pub fn elapsed_us(&self) -> u64 {
        self.kernel.ports().clock.elapsed_us()
    }

    /// Answers one request: every answer names its correlation id, every failure is the envelope's error body.
    pub async fn answer<E: Endpoint<Call, Failure>>(
        self: Arc<Self>,
        request: Request,
        endpoint: E,
    ) -> Response {
        let told = Told::default();
        let (kernel, caller) = (self.kernel.clone(), Caller::of(request.extensions()).cloned());
        let source = orchestr8_edge::source("knowledge", request.extensions());
        let (call, correlation) = Call::open(self, request, told.clone()).await;
        let outcome = match call {
            Ok(call) => endpoint.run(call).await,
            Err(failure) => Err(failure),
        };
        if let Some(fault) = outcome.as_ref().err().and_then(Failure::own_refusal)
            && let Some(Ok(Some(principal))) = caller.map(|caller| caller.principal())
        {
            let source = RefusalSource { transport: Transport::Http, source, correlation: &correlation };
            kernel.record_refusal(CLAIM, &Arc::new(principal), source, fault).await;
        }
        let mut response = outcome.unwrap_or_else(|failure| failure.into_response(&correlation));
        answer::correlate(response.headers_mut(), &correlation);
        if let Some(allowance) = told.get() {
            allowance.tell(response.headers_mut());
        }
        response
    }
}

/// An endpoint as an axum route takes it.
pub(crate) fn at<E: Endpoint<Call, Failure>>(
    face: &Arc<Face>,
    endpoint: E,
) -> impl Fn(Request) -> Pin<Box<dyn Future<Output = Response> + Send>> + Clone + Send + Sync + 'static {
    let face = face.clone();
    move |request| Box::pin(face.clone().answer(request, endpoint.clone()))
}
