//! What the edge is told: where to listen, whom to let in, and every limit with its reason.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method};
use orchestr8_contract::limits::SHUTDOWN_TIMEOUT_MS;
use orchestr8_kernel::ports::ids::Ids;

use crate::{Auth, Error, LoginFailure, Refusal, RejectionLog, ScopeRefusal, Tls};

/// Loopback, so that nothing is exposed unless somebody says so.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8088);

/// Browsers open connections ahead of need and use them within seconds; a longer silence is nobody.
pub const FIRST_BYTE_TIMEOUT_MS: u64 = 10_000;

/// A head is a few packets, even on a bad line; slower is somebody holding the door.
pub const HEADER_TIMEOUT_MS: u64 = 10_000;

/// Longer than the minute most proxies keep a connection, so that they close first and never meet a closed door.
pub const IDLE_TIMEOUT_MS: u64 = 75_000;

/// How long a client may take nothing of an answer that waits for it.
pub const WRITE_TIMEOUT_MS: u64 = 30_000;

/// In each such span a body must bring `body::PROGRESS_BYTES`, or end.
pub const BODY_TIMEOUT_MS: u64 = 10_000;

/// Room for the largest arguments we take (1 MiB) as base64 with their envelope; faces may allow less.
pub const BODY_LIMIT_BYTES: usize = 4 * 1024 * 1024;

/// Below the usual 1024 file descriptors of a process, with some left for the store and child processes.
pub const MAX_CONNECTIONS: usize = 768;

/// WebSockets and event streams of one principal: a third of all connections, so that requests of others find room.
pub const MAX_STREAMS_PER_PRINCIPAL: usize = 256;

/// A person mistypes a token now and then; a program that guesses does it all the time.
pub const MAX_FAILED_LOGINS: u32 = 20;

/// Request line and headers together. Browsers and proxies stay far below; peers allow 8 to 32 KiB.
pub const HEAD_LIMIT_BYTES: usize = 32 * 1024;

/// The request target alone: the length RFC 9110 asks servers to support.
pub const URI_LIMIT_BYTES: usize = 8_000;

/// What one connection may hold of a body nobody has taken yet.
pub const BUFFER_LIMIT_BYTES: usize = 128 * 1024;

/// Puts a refusal of the edge into the words of the face whose path was asked for: its path, what is wrong, and the
/// correlation id. None leaves the words to the next, and at last to the edge.
pub type Voice = Arc<dyn Fn(&str, &Refusal, &HeaderValue) -> Option<Response> + Send + Sync>;

/// Hears of failed logins. It must not block: it is called where requests are read.
pub type OnLoginFailure = Arc<dyn Fn(LoginFailure) + Send + Sync>;

/// Hears of requests that a token's scope does not include. It must not block: it is called where requests are read.
pub type OnScopeRefusal = Arc<dyn Fn(ScopeRefusal) + Send + Sync>;

/// The pages of this server itself.
#[derive(Clone)]
pub struct Pages {
    /// What a page of ours shows when it changes something. No page of another origin can read it.
    pub token: Arc<str>,
    /// Whether a request is for a page, or for a file of one: these hold no secrets and ask for no credentials.
    pub is_page: fn(&Method, &str, &HeaderMap) -> bool,
}

pub struct Settings {
    pub listen: SocketAddr,
    /// Names besides the loopback ones under which clients may call us: `name` (any port) or `name:port`.
    pub allowed_hosts: Vec<String>,
    /// Web pages of other origins that may call us, as `scheme://host[:port]`; they get CORS headers.
    pub allowed_origins: Vec<String>,
    pub first_byte_timeout_ms: u64,
    pub header_timeout_ms: u64,
    pub idle_timeout_ms: u64,
    pub write_timeout_ms: u64,
    pub body_timeout_ms: u64,
    pub body_limit_bytes: usize,
    pub max_connections: usize,
    /// None: half of all connections. Behind a proxy every client has the proxy's address, so raise it there.
    pub max_connections_per_ip: Option<usize>,
    /// WebSockets and event streams of one principal.
    pub max_streams_per_principal: usize,
    /// Wrong credentials from one address, or for one token, within a minute.
    pub max_failed_logins: u32,
    /// With it, connections are TLS.
    pub tls: Option<Tls>,
    pub drain_timeout_ms: u64,
    pub auth: Auth,
    /// Which face is below which path; the first that fits counts. Scopes of API tokens are held against it.
    pub faces: Vec<(&'static str, &'static str)>,
    pub on_login_failure: Option<OnLoginFailure>,
    pub on_scope_refusal: Option<OnScopeRefusal>,
    /// Counts requests that are rejected for where they come from, or for want of credentials.
    pub rejections: Option<Arc<RejectionLog>>,
    /// Below these paths a face checks credentials of its own; whoever shows none of ours goes through as nobody.
    pub own_credentials: Vec<&'static str>,
    /// Those faces read credentials that the edge does not know. Without it such credentials are refused there as elsewhere.
    pub foreign_credentials: bool,
    /// Requests that this process itself sends over loopback count as those of the person at this machine: for tests, whose clients and
    /// server are one process. In the program the addresses of such requests come from others.
    pub trust_this_process: bool,
    /// With pages, a browser that changes something must show their token.
    pub pages: Option<Pages>,
    /// Faces that answer refusals below their paths in their own envelope.
    pub voices: Vec<Voice>,
    /// Correlation ids for refusals whose request brought none.
    pub ids: Arc<dyn Ids>,
}

impl Settings {
    pub fn new(ids: Arc<dyn Ids>) -> Self {
        Self {
            listen: LISTEN,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            first_byte_timeout_ms: FIRST_BYTE_TIMEOUT_MS,
            header_timeout_ms: HEADER_TIMEOUT_MS,
            idle_timeout_ms: IDLE_TIMEOUT_MS,
            write_timeout_ms: WRITE_TIMEOUT_MS,
            body_timeout_ms: BODY_TIMEOUT_MS,
            body_limit_bytes: BODY_LIMIT_BYTES,
            max_connections: MAX_CONNECTIONS,
            max_connections_per_ip: None,
            max_streams_per_principal: MAX_STREAMS_PER_PRINCIPAL,
            max_failed_logins: MAX_FAILED_LOGINS,
            tls: None,
            drain_timeout_ms: SHUTDOWN_TIMEOUT_MS,
            auth: Auth::default(),
            faces: Vec::new(),
            on_login_failure: None,
            on_scope_refusal: None,
            rejections: None,
            own_credentials: Vec::new(),
            foreign_credentials: false,
            trust_this_process: false,
            pages: None,
            voices: Vec::new(),
            ids,
        }
    }

    /// A limit of zero would refuse everybody, which nobody means.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let limits = [
            ("first_byte_timeout_ms", self.first_byte_timeout_ms),
            ("header_timeout_ms", self.header_timeout_ms),
            ("idle_timeout_ms", self.idle_timeout_ms),
            ("write_timeout_ms", self.write_timeout_ms),
            ("body_timeout_ms", self.body_timeout_ms),
            ("body_limit_bytes", self.body_limit_bytes as u64),
            ("max_connections", self.max_connections as u64),
            ("max_connections_per_ip", self.max_connections_per_ip.unwrap_or(usize::MAX) as u64),
            ("max_streams_per_principal", self.max_streams_per_principal as u64),
        ];
        match limits.into_iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(Error::Zero { name }),
            None => Ok(()),
        }
    }

    /// Half of all, but at least one, where nothing else is said.
    pub(crate) fn connections_per_address(&self) -> usize {
        self.max_connections_per_ip.unwrap_or_else(|| self.max_connections.div_ceil(2))
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts {
            first_byte: Duration::from_millis(self.first_byte_timeout_ms),
            header: Duration::from_millis(self.header_timeout_ms),
            idle: Duration::from_millis(self.idle_timeout_ms),
            write: Duration::from_millis(self.write_timeout_ms),
        }
    }
}

/// The time limits one connection keeps.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    pub first_byte: Duration,
    pub header: Duration,
    pub idle: Duration,
    pub write: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::ports::ids::Counted;

    #[test]
    fn defaults_are_sound_and_a_zero_limit_is_named() {
        let mut settings = Settings::new(Arc::new(Counted::default()));
        assert!(settings.check().is_ok());
        assert!(settings.listen.ip().is_loopback());
        settings.idle_timeout_ms = 0;
        assert!(matches!(settings.check(), Err(Error::Zero { name: "idle_timeout_ms" })));
    }
}
