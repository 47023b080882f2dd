//! The side of a process that attaches: finds the owner of a data file, has it prove itself, and says who it is.

use std::io;
use std::os::unix::net::UnixStream as Socket;
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;

use super::PROTOCOL;
use super::handshake::{Challenge, Hello, Introduction, Opening, Side, Verdict, is_own_peer, receive, send};
use super::record::AttachRecord;
use crate::reach::fresh_secret;

/// How long the owner may take to accept a connection at all.
const CONNECT: Duration = Duration::from_secs(2);

/// A connection to the owner, past the handshake: what follows is MCP.
#[derive(Debug)]
pub struct Attached {
    pub socket: Socket,
    pub owner_pid: u32,
    pub owner_version: String,
    /// Settings of ours that do not apply.
    pub differing: Vec<String>,
}

/// Why a process could not attach.
#[derive(Debug)]
pub enum Unattached {
    /// No process listens for this data file, or it is just ending or beginning.
    NoOwner,
    /// What listens there is not the owner, or does not want us. Nothing was told to it that it should not know.
    Refused(String),
}

/// Attaches to the process that owns the data file.
pub fn attach(data: &Path, hello: &Hello) -> Result<Attached, Unattached> {
    let Some(record) = AttachRecord::of(data) else { return Err(Unattached::NoOwner) };
    block(async {
        let (mut stream, nonce) = meet(&record).await?;
        let proof = record.proof(Side::Attached, &nonce).unwrap_or_default();
        send(&mut stream, &Introduction { proof, hello: hello.clone() }).await.map_err(lost)?;
        let verdict: Verdict = receive(&mut stream).await.map_err(lost)?;
        if !verdict.accepted {
            return Err(Unattached::Refused(verdict.reason));
        }
        let socket = stream.into_std().map_err(lost)?;
        socket.set_nonblocking(false).map_err(lost)?;
        let Verdict { pid, version, differing, .. } = verdict;
        Ok(Attached { socket, owner_pid: pid, owner_version: version, differing })
    })
}

/// Which process owns the data file and can be attached to, if it proves it, as people are told.
pub fn owner_line(data: &Path) -> Option<String> {
    let record = AttachRecord::of(data)?;
    let is_proven = block(async { meet(&record).await }).is_ok();
    is_proven.then(|| format!("process {} owns the data; other processes attach to it", record.pid))
}

/// Connects, and has the owner prove itself. Gives its nonce.
async fn meet(record: &AttachRecord) -> Result<(UnixStream, String), Unattached> {
    let connected = tokio::time::timeout(CONNECT, UnixStream::connect(&record.socket)).await;
    let Ok(Ok(mut stream)) = connected else { return Err(Unattached::NoOwner) };
    if !is_own_peer(&stream) {
        return Err(refused("the process that listens there belongs to another user"));
    }
    let nonce = fresh_secret();
    send(&mut stream, &Opening { attach: PROTOCOL, nonce: nonce.clone() }).await.map_err(lost)?;
    let challenge: Challenge = receive(&mut stream).await.map_err(lost)?;
    if challenge.attach != PROTOCOL {
        return Err(refused(
            "the process that owns the data is of another version, which this one cannot attach to",
        ));
    }
    if !record.is_proven_by(Side::Owner, &nonce, &challenge.proof) {
        return Err(refused("the process that listens there does not own the data"));
    }
    Ok((stream, challenge.nonce))
}

fn refused(reason: &str) -> Unattached {
    Unattached::Refused(reason.to_owned())
}

/// An owner that ends in the middle is none.
fn lost(_: io::Error) -> Unattached {
    Unattached::NoOwner
}

/// Runs the handshake in a small runtime of its own: an attached process needs none afterwards.
fn block<T>(work: impl Future<Output = Result<T, Unattached>>) -> Result<T, Unattached> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|_| Unattached::NoOwner)?.block_on(work)
}
