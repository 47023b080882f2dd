//! Finds out whom to ask: the server that was named, the one that owns the data directory, or this process itself.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{Method, StatusCode};
use orchestr8_contract::Code;

use super::instance::{Instance, reachable};
use super::server::OwnTransport;
use super::{Embedded, Intent, Reach, Server};
use crate::failure::Failure;
use crate::settings::{Place, Settings};
use crate::terminal::Terminal;

/// A server of this machine answers at once, or there is none.
const PROBE_LIMIT: Duration = Duration::from_millis(300);

/// A server that was named may be elsewhere, and one that owns the data may still be starting.
const NAMED_LIMIT: Duration = Duration::from_secs(5);

const HEALTH: &str = "/v1/health";

/// What every server tells without being shown anything.
const ALIVE: &str = "/healthz";

/// What was said about whom to ask.
#[derive(Debug, Clone, Default)]
pub struct Where {
    pub server: Option<String>,
    pub token: Option<String>,
    /// A PEM file with certificates to trust beside those of the system.
    pub ca: Option<PathBuf>,
    /// In this process, whatever else runs.
    pub embedded: bool,
    /// The data folder was named on the command line.
    pub data_named: bool,
    /// To say that a server was not asked.
    pub terminal: Terminal,
}

pub async fn find(whom: Where, settings: Settings, intent: Intent) -> Result<Reach, Failure> {
    let token = whom.token.as_deref();
    if let Some(url) = &whom.server {
        let server = Server::at(url, token, whom.ca.as_deref())?;
        return match is_ours(&server).await? {
            true => Ok(Reach::Server(server)),
            false => Err(Failure::new(Code::Unavailable, format!("{url} is not an orchestr8 server"))
                .hinting("correct --server or ORCHESTR8_SERVER")),
        };
    }
    let data = match &settings.store.place {
        Place::Memory => None,
        Place::File { path, .. } => Some(path.clone()),
    };
    let Some(data) = data.filter(|_| !whom.embedded) else { return embedded(settings, intent).await };
    // The certificate of this very installation is one to trust.
    let ca = whom.ca.as_deref().or(settings.tls.as_ref().map(|tls| tls.cert.as_path()));
    let transport = OwnTransport { is_tls: settings.tls.is_some(), ca };
    if let Some(server) = owner(&data, &transport, token).await? {
        // The token is shown only now; whether it is the right one is said by the first answer.
        is_ours(&server).await?;
        return Ok(Reach::Server(server));
    }
    let address = reachable(settings.http.listen);
    if !whom.data_named && answers(address).await {
        whom.terminal.note(&format!(
            "a server at http://{address} was not asked: it does not own {}; name it with --server URL to ask it",
            data.display()
        ));
    }
    embedded(settings, intent).await.map_err(held)
}

async fn embedded(settings: Settings, intent: Intent) -> Result<Reach, Failure> {
    Ok(Reach::Embedded(Box::new(Embedded::build(settings, intent).await?)))
}

/// Says what to do when a process has the data and does not serve it.
fn held(failure: Failure) -> Failure {
    if failure.code != Code::Unavailable {
        return failure;
    }
    let message = format!("{}; and that process does not answer as its server", failure.message);
    Failure::new(failure.code, message).hinting(
        "name that server with --server URL, or stop it; --data-dir DIR or --ephemeral works on other data",
    )
}

/// The server that owns the data file, if it runs and proves it.
async fn owner(
    data: &Path,
    transport: &OwnTransport<'_>,
    token: Option<&str>,
) -> Result<Option<Server>, Failure> {
    let Some(instance) = Instance::of(data) else { return Ok(None) };
    let server = Server::owning(data, instance.address, transport, token)?;
    match server.prove(NAMED_LIMIT).await {
        Ok(()) => Ok(Some(server)),
        Err(failure) if matches!(failure.code, Code::Unavailable | Code::Timeout) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Whether something there says that it lives. It is told nothing.
async fn answers(address: SocketAddr) -> bool {
    let Ok(server) = Server::at(&format!("http://{address}"), None, None) else { return false };
    let reply = server.send_within(PROBE_LIMIT, Method::GET, ALIVE, &[], None).await;
    reply.is_ok_and(|reply| reply.status.is_success() && reply.body["status"] == "ok")
}

async fn is_ours(server: &Server) -> Result<bool, Failure> {
    let reply = server.send_within(NAMED_LIMIT, Method::GET, HEALTH, &[], None).await?;
    if reply.status == StatusCode::UNAUTHORIZED {
        return Err(Failure::new(Code::Unauthenticated, format!("{} wants a token", server.base()))
            .hinting("put it in the environment variable ORCHESTR8_TOKEN, or work here with --embedded"));
    }
    Ok(reply.status.is_success() && reply.body["name"].is_string() && reply.body["healthy"] == true)
}
