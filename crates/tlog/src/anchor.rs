//! Anchors: places elsewhere that are sent every head, so that an attacker who owns this machine later cannot take them back.
//!
//! An anchor gets the newest head, again and again until it has it; a newer head takes the place of one that still waits. So nothing
//! piles up, and a commit never waits for an anchor.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::Log;
use orchestr8_kernel::ports::Clock;
use orchestr8_outbound::Client;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::witness::{LogProver, Witness};

/// Where heads are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anchor {
    /// The system's log, by this socket.
    Syslog(PathBuf),
    /// Another orchestr8 server, which remembers heads and refuses those that contradict them.
    Witness(Witness),
    /// An HTTP server that is posted `{"heads":[…]}`: a webhook, or the collector of another machine.
    Http(String),
}

impl Anchor {
    /// The socket of the system's log.
    pub const SYSLOG: &'static str = "/dev/log";
}

impl fmt::Display for Anchor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Anchor::Syslog(socket) => write!(out, "syslog ({})", socket.display()),
            Anchor::Witness(witness) => witness.fmt(out),
            // The rest of an address may hold a secret.
            Anchor::Http(url) => match reqwest::Url::parse(url) {
                Ok(url) => write!(out, "{}://{}", url.scheme(), url.host_str().unwrap_or_default()),
                Err(_) => write!(out, "an address that cannot be read"),
            },
        }
    }
}

/// How an anchor does, for `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorStatus {
    pub since_ms: i64,
    /// None: it has the newest head.
    pub error: Option<String>,
}

/// How all anchors do. Written to a file whenever one of them begins or stops to fail.
#[derive(Clone)]
pub struct AnchorBoard {
    path: PathBuf,
    status: Arc<Mutex<BTreeMap<String, AnchorStatus>>>,
}

impl AnchorBoard {
    pub fn new(path: PathBuf) -> Self {
        Self { path, status: Arc::default() }
    }

    /// What another process has written down.
    pub fn read(path: &Path) -> BTreeMap<String, AnchorStatus> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub fn failing(&self) -> BTreeMap<String, String> {
        let status = self.status.lock();
        status.iter().filter_map(|(name, status)| Some((name.clone(), status.error.clone()?))).collect()
    }

    /// Whether an anchor fails since before a moment.
    pub fn fails_since(&self, anchor: &str, before_ms: i64) -> bool {
        let status = self.status.lock();
        status.get(anchor).is_some_and(|status| status.error.is_some() && status.since_ms <= before_ms)
    }

    /// Notes how a try ended. True if that is news.
    pub fn note(&self, anchor: &str, result: &Result<(), String>, at_ms: i64) -> bool {
        let mut status = self.status.lock();
        let error = result.as_ref().err().cloned();
        if status.get(anchor).is_some_and(|known| known.error.is_some() == error.is_some()) {
            return false;
        }
        let is_first_success = error.is_none() && !status.contains_key(anchor);
        status.insert(anchor.to_owned(), AnchorStatus { since_ms: at_ms, error });
        // Best effort: doctor says less without it.
        let _ = std::fs::write(&self.path, serde_json::to_vec_pretty(&*status).unwrap_or_default());
        !is_first_success
    }
}

/// What all anchors of a server share.
#[derive(Clone)]
pub(crate) struct AnchorContext {
    pub clock: Arc<dyn Clock>,
    pub log: Log,
    pub board: AnchorBoard,
    pub stop: CancellationToken,
    pub logs: LogProver,
}

/// The way to an anchor: what is put in last is sent.
pub(crate) struct AnchorHandle {
    pub heads: watch::Sender<Arc<str>>,
    delivered: watch::Receiver<Arc<str>>,
}

impl AnchorHandle {
    /// Waits until the anchor has this, or has given up because the server stops.
    pub async fn delivered(&self, line: &Arc<str>) {
        // An anchor that has given up will not get it.
        let _ = self.delivered.clone().wait_for(|newest| newest == line).await;
    }
}

/// Starts sending heads to an anchor.
pub(crate) fn start(anchor: Anchor, context: AnchorContext) -> AnchorHandle {
    let (sender, heads) = watch::channel(Arc::from(""));
    let (done, delivered) = watch::channel(Arc::from(""));
    tokio::spawn(run(anchor, heads, done, context));
    AnchorHandle { heads: sender, delivered }
}

async fn run(
    anchor: Anchor,
    mut heads: watch::Receiver<Arc<str>>,
    delivered: watch::Sender<Arc<str>>,
    context: AnchorContext,
) {
    let client = match &anchor {
        Anchor::Witness(witness) => witness.client(),
        Anchor::Syslog(_) | Anchor::Http(_) => Client::trusted(),
    };
    // What a witness is known to remember.
    let mut remembered = BTreeMap::new();
    let mut wait = limits::RETRY_FIRST;
    while heads.changed().await.is_ok() {
        loop {
            let line = heads.borrow_and_update().clone();
            let result = send(&anchor, &client, &line, &context.logs, &mut remembered).await;
            context.tell(&anchor.to_string(), &result);
            if result.is_ok() {
                wait = limits::RETRY_FIRST;
                delivered.send_replace(line);
                break;
            }
            tokio::select! {
                () = context.stop.cancelled() => return,
                () = context.clock.sleep(wait) => {}
            }
            wait = (wait * 2).min(limits::RETRY_LAST);
        }
    }
}

impl AnchorContext {
    /// Logs when an anchor begins or stops to fail.
    pub fn tell(&self, anchor: &str, result: &Result<(), String>) {
        if !self.board.note(anchor, result, self.clock.now_ms()) {
            return;
        }
        match result {
            Ok(()) => self
                .log
                .info("an anchor of the audit log has the newest head again", json!({"anchor": anchor})),
            Err(cause) => self.log.error(
                "an anchor of the audit log cannot be given the newest head; it is tried again",
                json!({"anchor": anchor, "cause": cause}),
            ),
        }
    }
}

async fn send(
    anchor: &Anchor,
    client: &Client,
    line: &str,
    logs: &LogProver,
    remembered: &mut BTreeMap<String, u64>,
) -> Result<(), String> {
    match anchor {
        Anchor::Syslog(socket) => to_syslog(socket, line).map_err(|cause| cause.to_string()),
        Anchor::Witness(witness) => {
            witness.submit(client, line, logs, remembered).await.map_err(|error| error.to_string())
        }
        Anchor::Http(url) => post(client, url, line, limits::ANCHOR_TIMEOUT).await,
    }
}

/// Facility "security", severity "notice".
fn to_syslog(socket: &Path, line: &str) -> std::io::Result<()> {
    const PRIORITY: u8 = 4 * 8 + 5;
    let datagram = UnixDatagram::unbound()?;
    datagram.set_nonblocking(true)?;
    datagram.send_to(format!("<{PRIORITY}>orchestr8-audit: {line}").as_bytes(), socket).map(|_| ())
}

async fn post(client: &Client, url: &str, line: &str, limit: Duration) -> Result<(), String> {
    let client = client.get().map_err(|fault| fault.message)?;
    let request =
        client.post(url).timeout(limit).header("content-type", "application/json").body(line.to_owned());
    let answer = request.send().await.map_err(|error| error.without_url().to_string())?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        status => Err(format!("it answered {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_log_gets_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("log");
        let server = UnixDatagram::bind(&socket).unwrap();
        to_syslog(&socket, "{\"heads\":[]}").unwrap();
        let mut room = [0; 256];
        let length = server.recv(&mut room).unwrap();
        assert_eq!(&room[..length], b"<37>orchestr8-audit: {\"heads\":[]}");
        assert!(to_syslog(&folder.path().join("nothing"), "x").is_err());
    }

    #[test]
    fn only_news_is_told_and_written_down() {
        let folder = tempfile::tempdir().unwrap();
        let board = AnchorBoard::new(folder.path().join("status.json"));
        let failed = Err(String::from("no route"));
        assert!(!board.note("a", &Ok(()), 1), "that it works is no news");
        assert!(board.note("a", &failed, 2));
        assert!(!board.note("a", &failed, 3));
        let read = AnchorBoard::read(&folder.path().join("status.json"));
        assert_eq!(read["a"], AnchorStatus { since_ms: 2, error: Some(String::from("no route")) });
        assert!(board.note("a", &Ok(()), 4));
        assert!(board.failing().is_empty());
    }
}
