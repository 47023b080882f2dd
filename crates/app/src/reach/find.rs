//! Finds out whom to ask: the server that was named, the one that runs here, or this process itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::{Method, StatusCode};
use orchestr8_contract::Code;

use super::{Embedded, Intent, Reach, Server};
use crate::failure::Failure;
use crate::runtime::store;
use crate::settings::{Place, Settings};

/// A server of this machine answers at once, or there is none.
const PROBE_LIMIT: Duration = Duration::from_millis(300);

/// A server that was named may be elsewhere.
const NAMED_LIMIT: Duration = Duration::from_secs(5);

const HEALTH: &str = "/v1/health";

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
}

/// A server that answered.
struct Found {
    server: Server,
    pid: Option<u64>,
}

pub async fn find(whom: Where, settings: Settings, intent: Intent) -> Result<Reach, Failure> {
    let token = whom.token.as_deref();
    if let Some(url) = &whom.server {
        let server = Server::at(url, token, whom.ca.as_deref())?;
        return match ask(server, NAMED_LIMIT).await? {
            Some(found) => Ok(Reach::Server(found.server)),
            None => Err(Failure::new(Code::Unavailable, format!("{url} is not an orchestr8 server"))
                .hinting("correct --server or ORCHESTR8_SERVER")),
        };
    }
    let data = match &settings.store.place {
        Place::Memory => None,
        Place::File { path, .. } => Some(path.clone()),
    };
    let Some(data) = data.filter(|_| !whom.embedded) else { return embedded(settings, intent).await };
    let address = settings.http.listen;
    // The certificate of this very installation is one to trust.
    let ca = whom.ca.as_deref().or(settings.tls.as_ref().map(|tls| tls.cert.as_path()));
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let server = Server::at(&format!("{scheme}://{}", reachable(address)), token, ca)?;
    let found = probe(server).await?;
    let holder = store::holder(&data);
    match found {
        // Whoever names a folder wants its data: the server counts only if it is the one that has it.
        Some(found) if !whom.data_named || (holder.is_some() && found.pid == holder.map(u64::from)) => {
            Ok(Reach::Server(found.server))
        }
        Some(_) | None => embedded(settings, intent).await.map_err(|failure| held(failure, address)),
    }
}

async fn embedded(settings: Settings, intent: Intent) -> Result<Reach, Failure> {
    Ok(Reach::Embedded(Box::new(Embedded::build(settings, intent).await?)))
}

/// Says what to do when a process has the data and does not answer where it should.
fn held(failure: Failure, address: SocketAddr) -> Failure {
    if failure.code != Code::Unavailable {
        return failure;
    }
    let message = format!("{}; and no orchestr8 that uses it answers at http://{address}", failure.message);
    Failure::new(failure.code, message).hinting(
        "name that server with --server URL, or stop it; --data-dir DIR or --ephemeral works on other data",
    )
}

/// The server of this installation, if it runs. Silence and strangers mean that it does not.
async fn probe(server: Server) -> Result<Option<Found>, Failure> {
    match ask(server, PROBE_LIMIT).await {
        Ok(found) => Ok(found),
        Err(failure) if matches!(failure.code, Code::Unavailable | Code::Timeout) => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn ask(server: Server, limit: Duration) -> Result<Option<Found>, Failure> {
    let reply = server.send_within(limit, Method::GET, HEALTH, &[], None).await?;
    if reply.status == StatusCode::UNAUTHORIZED {
        return Err(Failure::new(Code::Unauthenticated, format!("{} wants a token", server.base()))
            .hinting("put it in the environment variable ORCHESTR8_TOKEN, or work here with --embedded"));
    }
    let is_ours =
        reply.status.is_success() && reply.body["name"].is_string() && reply.body["healthy"] == true;
    let pid = reply.body["pid"].as_u64();
    Ok(is_ours.then_some(Found { server, pid }))
}

/// An address that means "everywhere" is reached on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everywhere_is_reached_on_loopback() {
        for (listen, reached) in
            [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80"), ("192.0.2.1:80", "192.0.2.1:80")]
        {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), reached);
        }
    }
}
