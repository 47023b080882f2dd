//! Connecting to a server: over the pipes of a child, or over HTTP; in the era it speaks.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue, header};
use orchestr8_kernel::Log;
use orchestr8_kernel::ports::Clock;
use orchestr8_outbound::Guard;
use rmcp::model::{ClientConfig, ErrorCode, Implementation, ProtocolVersion};
use rmcp::service::{ClientInitializeError, RunningService, RunningServiceCancellationToken};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, Peer, RoleClient, serve_client_with_lifecycle};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::child::{Child, Program};
use super::desk::Desk;
use super::http_session::HttpSessions;
use super::incoming::IncomingText;
use super::limits::{CLOSE_MS, MESSAGE_BYTES};
use super::lines::Lines;
use super::listener::Listener;
use super::placeholders::ResolvedLink;
use super::proxy::catalog::{CatalogCell, CatalogOwner};
use super::proxy::relay::{News, Relay};
use super::supervise::Surroundings;
use super::{Link, Server, event_stream, http, questions};

/// How long a child that has closed its stdout may take to tell how it ended.
const LAST_MS: u64 = 100;

/// Why a server could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it could not be started: {0}")]
    Start(#[from] std::io::Error),
    #[error("the header {0:?} cannot be sent")]
    Header(String),
    #[error("no HTTP client could be made: {0}")]
    Http(#[from] reqwest::Error),
    #[error("the handshake failed: {0}")]
    Handshake(#[from] Box<ClientInitializeError>),
    #[error("it ended during the handshake: {0}")]
    Ended(ExitStatus),
    #[error("its address may not be called: {0}")]
    Address(String),
}

impl Error {
    /// The exit code of a process that ended instead of answering.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Error::Ended(status) => status.code(),
            Error::Start(_) | Error::Header(_) | Error::Http(_) | Error::Handshake(_) | Error::Address(_) => {
                None
            }
        }
    }
}

/// An open connection. Dropped, it is closed and the child killed.
pub struct Session {
    pub peer: Peer<RoleClient>,
    pub calls: Arc<Calls>,
    /// Whether it speaks the current revision, where every call says for itself who makes it.
    pub modern: bool,
    /// The server says that its list of tools has changed.
    pub changed: Arc<Notify>,
    pub child: Option<Child>,
    close: Option<RunningServiceCancellationToken>,
    ended: CancellationToken,
    /// Keeps what it offers beside tools up to date.
    relaying: Option<JoinHandle<()>>,
    serving: CancellationToken,
}

/// Opens a connection: first as the handshake of the older revisions has it, which nearly every server understands; a server
/// that knows no such method is asked anew in the way of the current one.
pub async fn open(
    around: &Surroundings,
    desk: &Desk,
    resolved: &ResolvedLink,
    log: &Log,
) -> Result<Session, Error> {
    match open_as(ClientLifecycleMode::Initialize, around, desk, resolved, log).await {
        Err(Error::Handshake(refused)) if is_modern_only(&refused) => {
            let mode =
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
            open_as(mode, around, desk, resolved, log).await
        }
        Err(Error::Handshake(refused)) if event_stream::may_be_older(&refused) => {
            match open_older(around, desk, resolved, log).await {
                Some(session) => Ok(session),
                None => Err(Error::Handshake(refused)),
            }
        }
        opened => opened,
    }
}

/// Opens a connection over the HTTP transport of revision 2024-11-05. None: the server does not have it.
async fn open_older(
    around: &Surroundings,
    desk: &Desk,
    resolved: &ResolvedLink,
    log: &Log,
) -> Option<Session> {
    let Link::Http { url, headers } = &resolved.link else { return None };
    let guard = around.guard_for(desk.served.key.owner.as_ref());
    check_address(url, guard.as_deref()).ok()?;
    let clock = &around.kernel.ports().clock;
    let listener = listener(around, desk);
    let sessions = HttpSessions::new(listener.changed.clone());
    let incoming = IncomingText::with(&resolved.link, &resolved.secrets);
    let client = http::Client::new(incoming, sessions, clock.clone(), MESSAGE_BYTES, guard).ok()?;
    let (reader, writer) = tokio::io::split(event_stream::open(client, url, headers, clock.clone()).await?);
    // What comes out of the stream has been changed and bounded already.
    let transport = AsyncRwTransport::new(reader, writer).with_max_line_length(MESSAGE_BYTES);
    let opening = Opening::of(&listener, desk, log);
    let service = serve_client_with_lifecycle(listener, transport, ClientLifecycleMode::Initialize).await;
    service.ok().map(|service| opening.session(service, None, false))
}

fn listener(around: &Surroundings, desk: &Desk) -> Listener {
    Listener {
        config: ClientConfig::new(
            questions::all(),
            Implementation::new(&around.client_name, &around.client_version),
        ),
        changed: Arc::default(),
        lists_changed: Arc::default(),
        calls: Arc::default(),
        news: News::of(&around.kernel, &desk.server, desk.audience()),
    }
}

/// What a session keeps of the listener that the library takes.
struct Opening {
    relay: (News, Arc<Notify>, Arc<CatalogCell>),
    server: Arc<Server>,
    owner: CatalogOwner,
    changed: Arc<Notify>,
    calls: Arc<Calls>,
    log: Log,
}

impl Opening {
    fn of(listener: &Listener, desk: &Desk, log: &Log) -> Self {
        Self {
            relay: (listener.news.clone(), listener.lists_changed.clone(), desk.catalog.clone()),
            server: desk.server.clone(),
            owner: CatalogOwner { home: desk.served.home(), is_home: desk.tenant == desk.served.home() },
            changed: listener.changed.clone(),
            calls: listener.calls.clone(),
            log: log.clone(),
        }
    }

    fn session(
        self,
        service: RunningService<RoleClient, Listener>,
        child: Option<Child>,
        modern: bool,
    ) -> Session {
        let (peer, close) = (service.peer().clone(), service.cancellation_token());
        let (news, lists_changed, catalog) = self.relay;
        let serving = CancellationToken::new();
        let relay = Relay {
            news,
            server: self.server,
            catalog,
            owner: self.owner,
            peer: peer.clone(),
            modern,
            tools_changed: self.changed.clone(),
            lists_changed,
            log: self.log,
            serving: serving.clone(),
        };
        let relaying = Some(tokio::spawn(relay.run()));
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        tokio::spawn(async move {
            // However it ended, it has.
            let _ = service.waiting().await;
            drop(guard);
        });
        let (calls, changed) = (self.calls, self.changed);
        Session { peer, calls, modern, changed, child, close: Some(close), ended, relaying, serving }
    }
}

fn is_modern_only(refused: &ClientInitializeError) -> bool {
    const MODERN: [ErrorCode; 3] =
        [ErrorCode::METHOD_NOT_FOUND, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, ErrorCode::HEADER_MISMATCH];
    matches!(refused, ClientInitializeError::JsonRpcError(error) if MODERN.contains(&error.code))
}

async fn open_as(
    mode: ClientLifecycleMode,
    around: &Surroundings,
    desk: &Desk,
    resolved: &ResolvedLink,
    log: &Log,
) -> Result<Session, Error> {
    let clock = &around.kernel.ports().clock;
    let listener = listener(around, desk);
    let (changed, opening) = (listener.changed.clone(), Opening::of(&listener, desk, log));
    let modern = !matches!(mode, ClientLifecycleMode::Initialize);
    let incoming = IncomingText::with(&resolved.link, &resolved.secrets);
    desk.stderr.set_mask(incoming.clone());
    let (service, child) = match &resolved.link {
        Link::Stdio { command, args, env, cwd } => {
            let program = Program { command, args, base_env: &around.base_env, env, cwd: cwd.as_ref() };
            let (mut child, stdout, stdin) = Child::start(&program, log, clock, &desk.stderr)?;
            let transport = AsyncRwTransport::new(Lines::new(stdout, incoming, MESSAGE_BYTES), stdin)
                .with_max_line_length(MESSAGE_BYTES);
            match serve_client_with_lifecycle(listener, transport, mode).await {
                Ok(service) => (service, Some(child)),
                Err(refused) => return Err(ended_or(&mut child, refused, &**clock).await),
            }
        }
        Link::Http { url, headers } => {
            let sessions = HttpSessions::new(changed.clone());
            let guard = around.guard_for(desk.served.key.owner.as_ref());
            check_address(url, guard.as_deref())?;
            let client = http::Client::new(incoming, sessions, clock.clone(), MESSAGE_BYTES, guard)?;
            let transport = StreamableHttpClientTransport::with_client(client, http_config(url, headers)?);
            (serve_client_with_lifecycle(listener, transport, mode).await.map_err(Box::new)?, None)
        }
    };
    Ok(opening.session(service, child, modern))
}

/// An address that stands in the place of a name is not resolved, so that it is checked here.
fn check_address(url: &str, guard: Option<&Guard>) -> Result<(), Error> {
    let Some(guard) = guard else { return Ok(()) };
    let url = reqwest::Url::parse(url).map_err(|error| Error::Address(error.to_string()))?;
    guard.check_url(&url).map_err(|fault| Error::Address(fault.message.into_owned()))
}

/// Why a handshake failed: a child that ends during it says more by how it ended.
async fn ended_or(child: &mut Child, refused: ClientInitializeError, clock: &dyn Clock) -> Error {
    let has_answered = matches!(refused, ClientInitializeError::JsonRpcError(_));
    let status = async {
        match has_answered {
            true => None,
            false => child.exited().await,
        }
    };
    tokio::select! {
        biased;
        status = status => status.map_or_else(|| Box::new(refused).into(), Error::Ended),
        () = clock.sleep(Duration::from_millis(LAST_MS)) => Box::new(refused).into(),
    }
}

fn http_config(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransportConfig, Error> {
    /// What the transport says itself.
    const OWN: [HeaderName; 4] = [
        header::ACCEPT,
        HeaderName::from_static("mcp-session-id"),
        HeaderName::from_static("mcp-protocol-version"),
        HeaderName::from_static("last-event-id"),
    ];
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let wrong = || Error::Header(name.clone());
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        if OWN.contains(&name) {
            return Err(wrong());
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    Ok(config.custom_headers(custom))
}

impl Session {
    /// Calls reach the server from now on, so what else it offers may be listed.
    pub fn serves(&self) {
        self.serving.cancel();
    }

    /// Waits until the server is gone, and tells how, with the exit code of a process that ended by itself.
    pub async fn over(&mut self, around: &Surroundings) -> (String, Option<i32>) {
        let Some(child) = &mut self.child else {
            self.ended.cancelled().await;
            return (String::from("the connection was closed"), None);
        };
        let limit = async {
            self.ended.cancelled().await;
            // A process that ends closes its stdout first.
            around.kernel.ports().clock.sleep(Duration::from_millis(LAST_MS)).await;
        };
        tokio::select! {
            biased;
            Some(status) = child.exited() => (format!("it ended: {status}"), status.code()),
            () = limit => (String::from("it closed its stdout"), None),
        }
    }

    /// Closes the connection and ends the child, within limits.
    pub async fn end(mut self, around: &Surroundings) {
        self.hang_up();
        let clock = &around.kernel.ports().clock;
        tokio::select! {
            biased;
            () = self.ended.cancelled() => {}
            () = clock.sleep(Duration::from_millis(CLOSE_MS)) => {}
        }
        if let Some(child) = self.child.take() {
            child.end(&**clock).await;
        }
    }

    fn hang_up(&mut self) {
        if let Some(close) = self.close.take() {
            close.cancel();
        }
        if let Some(relaying) = self.relaying.take() {
            relaying.abort();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.hang_up();
    }
}
