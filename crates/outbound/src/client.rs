//! The HTTP client: built when it is first needed, shared by all calls.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use orchestr8_contract::{Code, FailureCategory, Fault};
use reqwest::redirect::Policy;

use crate::authorities::ExtraAuthorities;
use crate::guard::{Guard, Refused, Resolver};

/// How long a connection may take to be made; a call has its own limit for the whole.
const CONNECT_MS: u64 = 10_000;

/// Connections to one host that are kept for the next call.
const IDLE_CONNECTIONS: usize = 8;

pub struct Client {
    guard: Option<Arc<Guard>>,
    authorities: ExtraAuthorities,
    built: OnceLock<Result<reqwest::Client, Fault>>,
}

impl Client {
    /// For addresses that others choose.
    pub fn guarded(guard: Arc<Guard>) -> Self {
        Self { guard: Some(guard), authorities: ExtraAuthorities::default(), built: OnceLock::new() }
    }

    /// For addresses that the settings of the installation name.
    pub fn trusted() -> Self {
        Self::trusting(ExtraAuthorities::default())
    }

    /// The same, for servers whose certificates these authorities may have signed too.
    pub fn trusting(authorities: ExtraAuthorities) -> Self {
        Self { guard: None, authorities, built: OnceLock::new() }
    }

    pub fn get(&self) -> Result<&reqwest::Client, Fault> {
        self.built.get_or_init(|| self.build()).as_ref().map_err(Clone::clone)
    }

    /// No redirects and no proxies: both would lead where nothing was checked.
    fn build(&self) -> Result<reqwest::Client, Fault> {
        let mut builder = reqwest::Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .user_agent("orchestr8")
            .connect_timeout(Duration::from_millis(CONNECT_MS))
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .tls_certs_merge(self.authorities.certificates().iter().cloned());
        if let Some(guard) = &self.guard {
            builder = builder.dns_resolver(Arc::new(Resolver(guard.clone())));
        }
        let broken = |cause| Fault::internal("the HTTP client could not be set up").because(cause);
        builder.build().map_err(broken)
    }
}

/// Why nothing came back. The address is left out everywhere: it may hold secrets.
pub fn fault(what: &str, error: reqwest::Error) -> Fault {
    if let Some(refused) = cause::<Refused>(&error) {
        return refused.fault();
    }
    let (code, category, why) = if error.is_timeout() {
        (Code::Timeout, FailureCategory::Timeout, "took too long to connect or to answer")
    } else if error.is_builder() {
        (Code::InvalidArgument, FailureCategory::Validation, "is not a request that can be sent")
    } else if error.is_connect() {
        (Code::Unavailable, FailureCategory::Network, "found no connection")
    } else {
        (Code::Unavailable, FailureCategory::Network, "lost its connection")
    };
    Fault::new(code, format!("{what} {why}")).in_category(category).because(error.without_url())
}

fn cause<E: Error + 'static>(error: &dyn Error) -> Option<&E> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}
