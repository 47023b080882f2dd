//! The side of the owner: accepts processes that attach, and serves each as a client on stdio of its own.

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use orchestr8_contract::envelope::Role;
use orchestr8_kernel::{Log, Principal};
use orchestr8_mcp::{Eras, Face, ToolFilter, serve_stdio};
use serde_json::json;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handshake::{
    Challenge, GovernedRole, Hello, Introduction, Opening, Side, Verdict, is_own_peer, receive, send,
};
use super::record::{AttachRecord, PublishedRecord, socket_place};
use super::{CONNECTIONS, NAMED_SETTINGS, PROTOCOL};
use crate::reach::fresh_secret;
use crate::runtime::Runtime;
use crate::settings::Place;

/// The socket of the process that owns the data directory.
pub struct AttachListener {
    listener: UnixListener,
    published: PublishedRecord,
    owner: Owner,
}

/// What each connection needs of the owner.
#[derive(Clone)]
struct Owner {
    record: Arc<AttachRecord>,
    /// What the face of a connection is made of.
    face: Face,
    settings: Arc<BTreeMap<String, String>>,
    version: String,
    stop: CancellationToken,
    drain: std::time::Duration,
    log: Log,
}

impl AttachListener {
    /// Lets other processes attach until the runtime stops. Data in memory has no other processes. Without a socket the owner works
    /// on alone.
    pub fn start(runtime: &Runtime, face: &Face) {
        let Place::File { path, .. } = &runtime.settings.store.place else { return };
        let log = runtime.kernel.log();
        match Self::open(runtime, path, face.clone()) {
            Ok(listener) => runtime.finish(tokio::spawn(listener.run())),
            Err(error) => {
                log.warn("other processes cannot attach to this one", json!({"cause": error.to_string()}));
            }
        }
    }

    fn open(runtime: &Runtime, data: &Path, face: Face) -> io::Result<Self> {
        let socket = socket_place(data)?;
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
        let published = PublishedRecord::publish(data, socket, fresh_secret())?;
        let owner = Owner {
            record: Arc::new(published.record.clone()),
            face,
            settings: Arc::new(runtime.settings.fingerprints.clone()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            stop: runtime.stop.clone(),
            drain: runtime.settings.shutdown_limit,
            log: runtime.kernel.log().clone(),
        };
        Ok(Self { listener, published, owner })
    }

    async fn run(self) {
        let Self { listener, published, owner } = self;
        let (places, connections) = (Arc::new(Semaphore::new(CONNECTIONS)), TaskTracker::new());
        loop {
            let accepted = tokio::select! {
                biased;
                () = owner.stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (owner, places) = (owner.clone(), places.clone());
                    connections.spawn(async move { owner.serve(stream, &places).await });
                }
                Err(error) => {
                    let cause = error.to_string();
                    owner.log.warn("a process could not attach", json!({"cause": cause}));
                    // Out of descriptors, most likely: those that are attached go on.
                    owner.face.kernel().ports().clock.sleep(super::HANDSHAKE).await;
                }
            }
        }
        // A process that comes now finds no owner, and looks for the next one.
        drop(published);
        drop(listener);
        connections.close();
        connections.wait().await;
    }
}

impl Owner {
    async fn serve(self, mut stream: UnixStream, places: &Semaphore) {
        if !is_own_peer(&stream) {
            let uid = stream.peer_cred().map(|peer| peer.uid()).ok();
            self.log.warn("a process of another user was refused", json!({"uid": uid}));
            return;
        }
        let hello = match self.greet(&mut stream, places).await {
            Ok(Some(hello)) => hello,
            Ok(None) => return,
            Err(error) => {
                let cause = error.to_string();
                self.log.warn("a process did not attach", json!({"cause": cause}));
                return;
            }
        };
        let Ok(_place) = places.try_acquire() else { return };
        let about = json!({"pid": hello.pid, "governed": hello.governed, "version": hello.version});
        self.log.info("a process has attached", about.clone());
        if let Err(error) = self.converse(stream, &hello).await {
            self.log
                .warn("an attached process was lost", json!({"pid": hello.pid, "cause": error.to_string()}));
        }
        self.log.info("a process has detached", about);
    }

    /// The handshake. None: the other side only wanted to know who owns the data, or was refused.
    async fn greet(&self, stream: &mut UnixStream, places: &Semaphore) -> io::Result<Option<Hello>> {
        let opening: Opening = receive(stream).await?;
        let nonce = fresh_secret();
        let proof = self.record.proof(Side::Owner, &opening.nonce).unwrap_or_default();
        send(stream, &Challenge { attach: PROTOCOL, nonce: nonce.clone(), proof }).await?;
        let Introduction { proof, hello } = match receive(stream).await {
            Ok(introduction) => introduction,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        };
        let reason = if !self.record.is_proven_by(Side::Attached, &nonce, &proof) {
            String::from("the proof is wrong")
        } else if places.available_permits() == 0 {
            format!("{CONNECTIONS} processes are attached already; close one of them")
        } else {
            String::new()
        };
        let accepted = reason.is_empty();
        let differing = if accepted { differing(&hello.settings, &self.settings) } else { Vec::new() };
        let (pid, version) = (std::process::id(), self.version.clone());
        send(stream, &Verdict { accepted, reason, pid, version, differing }).await?;
        Ok(accepted.then_some(hello))
    }

    async fn converse(&self, stream: UnixStream, hello: &Hello) -> io::Result<()> {
        let stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        let (input, output) = (stream.try_clone()?, stream.try_clone()?);
        let face = self.face_for(hello);
        let who = Arc::new(principal(hello.governed));
        let served = serve_stdio::serve(&face, who, input, output, self.stop.clone(), self.drain).await;
        face.wind_down();
        // Ends the thread that reads.
        let _ = stream.shutdown(Shutdown::Both);
        served.map(drop)
    }

    /// The face of one connection: the kernel of the owner, seen as the settings of the attached process have it.
    fn face_for(&self, hello: &Hello) -> Face {
        let own = self.face.settings();
        let settings = orchestr8_mcp::Settings {
            server_name: hello.server_name.clone(),
            server_version: hello.server_version.clone(),
            instructions: hello.instructions.clone(),
            eras: Eras { legacy: hello.legacy, modern: hello.modern },
            tool_filter: ToolFilter { only: hello.tools.clone(), never: own.tool_filter.never.clone() },
            max_result_bytes: hello.max_result_bytes,
            ..own.clone()
        };
        Face::new(self.face.kernel().clone(), settings)
    }
}

/// The person at this machine, or the agent of a governed connection.
pub fn principal(governed: Option<GovernedRole>) -> Principal {
    match governed {
        None => Principal::local(),
        Some(GovernedRole::Planner) => Principal::governed_agent(Role::Planner),
        Some(GovernedRole::Executor) => Principal::governed_agent(Role::Executor),
    }
}

/// The settings of an attached process that do not apply because the owner has others.
fn differing(theirs: &BTreeMap<String, String>, own: &BTreeMap<String, String>) -> Vec<String> {
    let keys = theirs.keys().chain(own.keys().filter(|key| !theirs.contains_key(*key)));
    let mut names: Vec<String> = keys.filter(|key| theirs.get(*key) != own.get(*key)).cloned().collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMED_SETTINGS);
    names.truncate(NAMED_SETTINGS);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_only_one_side_has_or_has_otherwise_differ() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let theirs = map(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let own = map(&[("a", "1"), ("b", "9"), ("d", "4")]);
        assert_eq!(differing(&theirs, &own), ["b", "c", "d"]);
        assert!(differing(&own, &own).is_empty());
    }
}
