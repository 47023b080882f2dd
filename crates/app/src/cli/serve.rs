//! `orchestr8 serve`: every face over HTTP, with `/healthz`, `/readyz` and `/version`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_edge as edge;
use orchestr8_kernel::log::Level;
use orchestr8_knowledge_face::Security;
use orchestr8_mcp::http;
use orchestr8_sessions_face::Face;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Running, Shell, WhenUntrusted, version};
use crate::attach::AttachListener;
use crate::failure::Failure;
use crate::reach::{INSTANCE_PATH, PublishedInstance};
use crate::runtime::{
    Purpose, Runtime, WhenHeld, block_on, descriptors, examples, knowledge, rejections, tls, tokens,
};
use crate::settings::Place;

#[derive(Args)]
pub struct Serve {
    /// Where to listen [default: 127.0.0.1:8088]. Port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Put example workflows, documents and a session in, and keep some of them running, to have something to look at.
    #[arg(long, conflicts_with = "deterministic")]
    demo: bool,
    #[command(flatten)]
    running: Running,
}

const PURPOSE: Purpose =
    Purpose { when_held: WhenHeld::Refuse, at_least: Level::Debug, lasting: true, starts_servers: true };

impl Serve {
    pub fn run(self, shell: &Shell) -> Result<(), Failure> {
        let mut flags = self.running.flags();
        flags.extend(self.listen.map(|listen| ("http.listen", "--listen", listen.to_string().into())));
        let when = WhenUntrusted::Refuse;
        let settings = shell.settings_for("serve", flags, self.running.mode(), when)?;
        // Before anything is opened: a server that would be open to strangers does not begin. Tokens may be in the store.
        if !settings.store.place.is_file() {
            edge::check_bind(settings.http.listen, &settings.auth).map_err(failure)?;
        }
        block_on(async {
            let runtime = Runtime::build(settings, PURPOSE)?;
            let served = serve(shell, &runtime, self.demo).await;
            runtime.close().await;
            served
        })
    }
}

async fn serve(shell: &Shell, runtime: &Runtime, demo: bool) -> Result<(), Failure> {
    let own = guarded(runtime).await?;
    runtime.begin().await?;
    let token: Arc<str> = runtime.page_token().await?.into();
    let pages = edge::Pages { token: token.clone(), is_page: orchestr8_dashboard::is_page };
    let settings = edge::Settings { pages: Some(pages), ..own };
    let listener = edge::bind(&settings).await.map_err(failure)?;
    let address = listener.local_addr().unwrap_or(settings.listen);
    let published = publish(runtime, address)?;
    let face = runtime.face().await?;
    AttachListener::start(runtime, &face);
    let mcp = http::router(
        face,
        http::Settings {
            body_limit_bytes: settings.body_limit_bytes,
            body_timeout_ms: settings.body_timeout_ms,
            admin_token: runtime.settings.admin_token.clone(),
            shutdown: runtime.stop.clone(),
            max_sessions_per_principal: runtime.settings.sessions_per_principal,
            ..http::Settings::default()
        },
    );
    let health = edge::Health {
        about: version::about(&runtime.settings.server_name, &runtime.settings.server_version),
        unready: Arc::new(Vec::new),
        shutdown: runtime.stop.clone(),
    };
    let log = runtime.kernel.log().clone();
    log.info("listening", json!({"address": address.to_string(), "durable": runtime.durable}));
    warn_of_plain_http(runtime, address, &settings);
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    if shell.terminal.json {
        shell.terminal.record(&json!({"listening": address.to_string()}));
    } else {
        shell.terminal.data(&format!("listening on {scheme}://{address}{}", http::PATH));
        let what = if orchestr8_dashboard::is_built() { "the dashboard" } else { "what it is" };
        shell.terminal.note(&format!("open {scheme}://{address}/ in a browser to see {what}"));
    }
    if demo {
        tokio::spawn(examples::show(runtime.kernel.clone(), runtime.stop.clone()));
    }
    let sessions = runtime.sessions_face();
    let closing =
        tokio::spawn(close(sessions.clone(), runtime.stop.clone(), runtime.settings.sessions_face.drain_ms));
    let beside = beside(runtime, &sessions, &settings).await?;
    let (knowledge, tending) = knowledge::serve(runtime).await?;
    let tending = tokio::spawn(tending);
    let faces = runtime.router().merge(sessions.router()).merge(knowledge);
    // Beside the pages and not under them: the most frequent calls need not be looked at twice.
    let router = orchestr8_dashboard::over(edge::mount(faces, health), &token).merge(mcp);
    let router = match &published {
        Some(instance) => router.merge(instance.router()),
        None => router,
    };
    let drained = edge::serve(listener, router, settings, runtime.stop.clone()).await.map_err(failure)?;
    drop(published);
    log.info("no more connections", json!({"finished": drained.finished, "cut": drained.cut}));
    // They end with the server; a panic of theirs has been logged.
    let _ = closing.await;
    // What the bus has in hand may take its time, and comes again if it takes too long.
    let _ = tokio::time::timeout(runtime.countdown.left(), tending).await;
    if let Some(beside) = beside {
        let _ = beside.await;
    }
    Ok(())
}

/// The settings of the edge with everything that keeps strangers out: tokens, certificate, reports of failed logins.
async fn guarded(runtime: &Runtime) -> Result<edge::Settings, Failure> {
    runtime.unlock().await?;
    runtime.tokens.load().await?;
    let own = edge_settings(runtime);
    edge::check_bind(own.listen, &own.auth).map_err(failure)?;
    let tls = runtime.settings.tls.clone().map(tls::load).transpose()?;
    let log = runtime.kernel.log();
    if let (Some(tls), Some(reload)) = (&tls, &runtime.reload) {
        tokio::spawn(tls::keep_fresh(tls.clone(), reload.clone(), log.clone(), runtime.stop.clone()));
    }
    let beside = runtime.settings.sessions_port.map_or(0, |_| runtime.settings.sessions_face.connections);
    descriptors::provide(own.max_connections + beside, log);
    let on_login_failure = Some(tokens::watch_logins(&runtime.kernel));
    let on_scope_refusal = Some(tokens::watch_scopes(&runtime.kernel));
    let (rejections, task) = rejections::watch(&runtime.kernel, &runtime.stop);
    runtime.finish(task);
    Ok(edge::Settings { tls, on_login_failure, on_scope_refusal, rejections: Some(rejections), ..own })
}

/// Writes down that this server owns the data directory, for commands that look for it. Data in memory has no directory.
fn publish(runtime: &Runtime, address: SocketAddr) -> Result<Option<PublishedInstance>, Failure> {
    let Place::File { path, .. } = &runtime.settings.store.place else { return Ok(None) };
    PublishedInstance::publish(path, address).map(Some).map_err(|cause| {
        Failure::new(
            Code::StoreFailed,
            format!("the address cannot be written beside {}: {cause}", path.display()),
        )
        .hinting("check that the data folder can be written")
    })
}

/// Tells the clients of sessions that the server stops, and lets their commands finish.
async fn close(sessions: Face, stop: CancellationToken, limit_ms: u64) {
    stop.cancelled().await;
    sessions.shutdown("graceful_shutdown", Duration::from_millis(limit_ms)).await;
}

/// Sessions on a port of their own, for clients that expect one.
async fn beside(
    runtime: &Runtime,
    sessions: &Face,
    first: &edge::Settings,
) -> Result<Option<JoinHandle<()>>, Failure> {
    let Some(port) = runtime.settings.sessions_port else { return Ok(None) };
    let connections = runtime.settings.sessions_face.connections;
    let settings = edge::Settings {
        listen: SocketAddr::new(first.listen.ip(), port),
        max_connections: connections,
        max_streams_per_principal: connections.max(1),
        tls: first.tls.clone(),
        on_login_failure: first.on_login_failure.clone(),
        on_scope_refusal: first.on_scope_refusal.clone(),
        rejections: first.rejections.clone(),
        ..edge_settings(runtime)
    };
    let listener = edge::bind(&settings).await.map_err(failure)?;
    let (router, stop, log) = (sessions.router(), runtime.stop.clone(), runtime.kernel.log().clone());
    let address = listener.local_addr().unwrap_or(settings.listen).to_string();
    log.info("listening for sessions", json!({"address": address}));
    Ok(Some(tokio::spawn(async move {
        if let Err(error) = edge::serve(listener, router, settings, stop).await {
            log.error("sessions are no longer served on their port", json!({"cause": error.to_string()}));
        }
    })))
}

/// Tokens over plain HTTP can be read by everybody on the way.
fn warn_of_plain_http(runtime: &Runtime, address: SocketAddr, settings: &edge::Settings) {
    if settings.tls.is_none() && !address.ip().to_canonical().is_loopback() {
        runtime.kernel.log().warn(
            "tokens travel over plain HTTP: set http.tls.cert and http.tls.key, or put a proxy with TLS before this address",
            json!({"address": address.to_string()}),
        );
    }
}

/// Which face is below which path, for the scopes of tokens. Files of the dashboard ask for no credentials.
const FACES: [(&str, &str); 22] = [
    ("/mcp/actions", "knowledge"),
    ("/mcp/capabilities", "knowledge"),
    ("/mcp/heartbeat", "knowledge"),
    ("/mcp/requests", "knowledge"),
    ("/mcp", "mcp"),
    ("/sse", "mcp"),
    ("/v1/dashboard", "dashboard"),
    ("/api/v1/dashboard", "dashboard"),
    ("/v1", "workflows"),
    ("/api/v1", "workflows"),
    ("/openapi.json", "workflows"),
    ("/ws/session", "sessions"),
    ("/ws", "workflows"),
    ("/aacp", "messaging"),
    ("/documents", "knowledge"),
    ("/knowledge", "knowledge"),
    ("/artifacts", "knowledge"),
    ("/webhooks", "knowledge"),
    ("/a2a", "knowledge"),
    ("/admin", "knowledge"),
    ("/metrics", "knowledge"),
    ("/", "sessions"),
];

fn edge_settings(runtime: &Runtime) -> edge::Settings {
    let (settings, http) = (&runtime.settings, &runtime.settings.http);
    edge::Settings {
        listen: http.listen,
        allowed_hosts: http.allowed_hosts.clone(),
        allowed_origins: http.allowed_origins.clone(),
        first_byte_timeout_ms: http.first_byte_timeout_ms,
        header_timeout_ms: http.header_timeout_ms,
        idle_timeout_ms: http.idle_timeout_ms,
        write_timeout_ms: http.write_timeout_ms,
        body_timeout_ms: http.body_timeout_ms,
        body_limit_bytes: http.body_limit_bytes,
        max_connections: http.max_connections,
        max_connections_per_ip: http.max_connections_per_ip,
        drain_timeout_ms: u64::try_from(settings.shutdown_limit.as_millis()).unwrap_or(u64::MAX),
        own_credentials: [
            &orchestr8_knowledge_face::OWN_CREDENTIALS[..],
            &orchestr8_workflows_face::APPROVAL_LINKS,
            &orchestr8_workflows_face::HOOKS,
            &[INSTANCE_PATH],
        ]
        .concat(),
        foreign_credentials: !matches!(settings.knowledge.security, Security::Local),
        trust_this_process: false,
        auth: edge::Auth { stored: Some(runtime.tokens.table()), ..settings.auth.clone() },
        faces: FACES.to_vec(),
        on_login_failure: None,
        on_scope_refusal: None,
        rejections: None,
        tls: None,
        max_streams_per_principal: http.max_streams_per_principal,
        max_failed_logins: http.max_failed_logins_per_minute,
        pages: None,
        voices: vec![
            orchestr8_workflows_face::voice(&runtime.kernel),
            orchestr8_knowledge_face::voice(),
            http::voice(),
        ],
        ids: runtime.kernel.ports().ids.clone(),
    }
}

/// Why the edge did not start, as people are told.
pub fn failure(error: edge::Error) -> Failure {
    let code = match &error {
        edge::Error::OpenBind { .. } => Code::Unauthorized,
        edge::Error::Listen { .. } | edge::Error::Listener(_) => Code::Unavailable,
        edge::Error::Token { .. }
        | edge::Error::Host { .. }
        | edge::Error::Origin { .. }
        | edge::Error::Zero { .. } => Code::Configuration,
    };
    let hint = error.hint();
    Failure::new(code, error.to_string()).hinting(hint)
}
