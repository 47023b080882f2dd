//! The accept loop: one task per connection, never an end while asked to run, and a drain when told to stop.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use orchestr8_kernel::grant::TokenTable;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{self, Shared};
use crate::connections::{Admission, ConnectionTable, Full};
use crate::goodbye::Goodbye;
use crate::guard::Guard;
use crate::{Error, Refusal, Settings, check_bind};

/// Waiting after a failed accept: long enough not to spin, short enough that freed descriptors are used soon.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const ACCEPT_PAUSE_LIMIT: Duration = Duration::from_secs(1);

/// Clients told at once that we are full; beyond it they are closed without a word, which costs us nothing.
const TURNED_AWAY_LIMIT: usize = 64;

/// How late an open stream may outlive the end of its token by time; a request that waits outlives a revocation by at most twice this.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How the end went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were open when draining began and ended by themselves.
    pub finished: usize,
    /// Connections cut when the drain timeout passed.
    pub cut: usize,
}

/// Binds the configured address, unless it would expose us without credentials.
pub async fn bind(settings: &Settings) -> Result<TcpListener, Error> {
    let addr = settings.listen;
    check_bind(addr, &settings.auth)?;
    TcpListener::bind(addr).await.map_err(|cause| Error::Listen { addr, cause })
}

/// Serves `router` on `listener` until `shutdown`, then lets requests in flight finish.
///
/// When the connection limit is reached, further clients are told so with a 503 and closed: better than a
/// connection that hangs in the backlog, because the client learns at once what to do.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: Settings,
    shutdown: CancellationToken,
) -> Result<Drained, Error> {
    let addr = listener.local_addr().map_err(Error::Listener)?;
    serve_from(listener, addr, router, settings, shutdown).await
}

/// Where connections come from; tests have one that fails.
pub(crate) trait Source: Send {
    fn next(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl Source for TcpListener {
    async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.accept().await
    }
}

pub(crate) async fn serve_from<S: Source>(
    source: S,
    addr: SocketAddr,
    router: Router,
    settings: Settings,
    shutdown: CancellationToken,
) -> Result<Drained, Error> {
    settings.check()?;
    check_bind(addr, &settings.auth)?;
    let guard = Guard::new(router, addr, &settings)?;
    let mut door = Door {
        shared: Arc::new(Shared::new(guard, settings.timeouts(), settings.tls.clone())),
        table: Arc::new(ConnectionTable::new(settings.max_connections, settings.connections_per_address())),
        connections: JoinSet::new(),
        turned_away: JoinSet::new(),
        full: false,
    };
    let closing =
        settings.auth.stored.clone().map(|stored| tokio::spawn(close_revoked(door.table.clone(), stored)));
    door.stand_open(source, &shutdown).await;
    if let Some(closing) = closing {
        closing.abort();
    }
    Ok(door.drain(Duration::from_millis(settings.drain_timeout_ms)).await)
}

struct Door {
    shared: Arc<Shared>,
    table: Arc<ConnectionTable>,
    connections: JoinSet<()>,
    turned_away: JoinSet<()>,
    /// So that the log says once that we are full, not once per client.
    full: bool,
}

impl Door {
    /// Takes the source along: when it returns, nobody new can connect.
    async fn stand_open<S: Source>(&mut self, source: S, shutdown: &CancellationToken) {
        let mut pause = ACCEPT_PAUSE;
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                Some(ended) = self.connections.join_next() => { note(ended); continue }
                Some(_) = self.turned_away.join_next() => continue,
                accepted = source.next() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    pause = ACCEPT_PAUSE;
                    self.welcome(stream, peer);
                }
                Err(error) if concerns_one_client(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; trying again shortly");
                    tokio::select! {
                        () = shutdown.cancelled() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = (pause * 2).min(ACCEPT_PAUSE_LIMIT);
                }
            }
        }
    }

    fn welcome(&mut self, stream: TcpStream, peer: SocketAddr) {
        // Without it small answers wait for the client's acknowledgement, some 40 ms each.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a client left before its connection was set up");
            return;
        }
        let (slot, full) = match self.table.admit(peer.ip()) {
            Admission::Open(slot) => {
                self.full = false;
                self.connections.spawn(connection::run(stream, slot, self.shared.clone(), None));
                return;
            }
            Admission::ProbesOnly(slot, full) => (Some(slot), full),
            Admission::Refused(full) => (None, full),
        };
        let refusal = match full {
            Full::Total => Refusal::full(),
            Full::Address => Refusal::crowded(),
        };
        if !self.full {
            self.full = true;
            tracing::warn!(%peer, reason = %refusal.message, "turning clients away");
        }
        if let Some(slot) = slot {
            self.connections.spawn(connection::run(stream, slot, self.shared.clone(), Some(refusal)));
            return;
        }
        // A client that expects TLS could not read a word of it.
        if self.shared.tls.is_none() && self.turned_away.len() < TURNED_AWAY_LIMIT {
            let word = refusal.raw(&self.shared.guard.fresh_id());
            self.turned_away.spawn(async move { Goodbye::SHORT.say(stream, Some(&word)).await });
        }
    }

    /// Idle connections close at once, requests in flight finish; what is left at the timeout is cut.
    async fn drain(mut self, limit: Duration) -> Drained {
        let open = self.connections.len();
        self.shared.drain.begin();
        let all_ended = async {
            while let Some(ended) = self.connections.join_next().await {
                note(ended);
            }
        };
        let _ = timeout(limit, all_ended).await;
        let cut = self.connections.len();
        self.connections.shutdown().await;
        self.turned_away.shutdown().await;
        Drained { finished: open - cut, cut }
    }
}

/// Closes the connections of tokens that are revoked or expire, until it is aborted.
async fn close_revoked(table: Arc<ConnectionTable>, stored: TokenTable) {
    let mut revocations = stored.revocations();
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_sweep = tokio::select! {
            changed = revocations.changed() => match changed {
                Ok(()) => false,
                Err(_) => return,
            },
            _ = sweep.tick() => {
                stored.retire();
                true
            }
        };
        table.close_revoked(is_sweep);
    }
}

/// Everything a client can do is answered inside its connection; a panic that gets here is ours.
fn note(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

/// The client gave up before we came to it: no reason to wait for the next.
fn concerns_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
