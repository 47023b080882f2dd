//! A process that is attached to the owner of its data: passes the client's lines on, and when the owner ends, attaches to the next
//! one or becomes it.

use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream as Socket;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;

use orchestr8_contract::Code;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{Client, OWNER_LIMIT, Patience, own};
use crate::attach::{Attached, LineProxy, Unattached, attach};
use crate::cli::Shell;
use crate::failure::{Failure, exit};
use crate::runtime::{CommandLog, block_on};
use crate::settings::Settings;

/// Longer lines are passed on in parts. The owner refuses what is longer than a payload and this.
const ENVELOPE_BYTES: usize = 65_536;

pub struct AttachedProcess<'p> {
    shell: &'p Shell,
    client: &'p Client,
    data: PathBuf,
    line_bytes: usize,
    log: CommandLog,
    /// The thread of the owner, once this process is the owner itself.
    owning: Option<JoinHandle<Result<(), Failure>>>,
}

impl<'p> AttachedProcess<'p> {
    pub fn new(shell: &'p Shell, client: &'p Client, settings: &Settings, data: PathBuf) -> Self {
        let line_bytes = settings.limits.payload_bytes + ENVELOPE_BYTES;
        let log = CommandLog::start(settings);
        for warning in &settings.warnings {
            log.log.warn(warning, ());
        }
        Self { shell, client, data, line_bytes, log, owning: None }
    }

    pub fn run(mut self, owner: Attached, input: File, output: File) -> Result<(), Failure> {
        self.greet(&owner);
        let proxy = LineProxy::new(owner.socket);
        watch_signals(&proxy);
        let line_bytes = self.line_bytes;
        let passed = proxy.run(input, output, line_bytes, || self.next_owner());
        // What this process was asked while it owned the data is finished, and written, before it ends.
        let owned = self.owning.take().map_or(Ok(()), |owning| {
            owning
                .join()
                .unwrap_or_else(|_| Err(Failure::new(Code::Internal, "the owner of the data broke off")))
        });
        self.log.flush();
        passed.and(owned)
    }

    fn greet(&self, owner: &Attached) {
        let (pid, log) = (owner.owner_pid, &self.log.log);
        log.info("attached to the process that owns the data", json!({"pid": pid, "data": self.data}));
        if !owner.differing.is_empty() {
            let text = "settings of this process do not apply: those of the process that owns the data do";
            log.warn(text, json!({"settings": owner.differing, "pid": pid}));
        }
        let version = env!("CARGO_PKG_VERSION");
        if owner.owner_version != version {
            let text = "the process that owns the data is of another version, which serves this client";
            log.warn(text, json!({"version": version, "ownerVersion": owner.owner_version, "pid": pid}));
        }
    }

    /// Attaches to the next owner of the data, or becomes it.
    fn next_owner(&mut self) -> Result<Socket, Failure> {
        self.log.log.warn("the process that owned the data has ended", json!({"data": self.data}));
        let mut patience = Patience::new(OWNER_LIMIT);
        loop {
            let mut settings = self.client.settings(self.shell)?;
            // They were told when this process began.
            settings.warnings.clear();
            let mut refusal = None;
            match attach(&self.data, &self.client.hello(&settings)) {
                Ok(owner) => {
                    self.greet(&owner);
                    return Ok(owner.socket);
                }
                Err(Unattached::NoOwner) => {}
                Err(Unattached::Refused(reason)) => refusal = Some(reason),
            }
            match self.become_owner(settings) {
                Ok(socket) => {
                    self.log.log.info("this process owns the data now", json!({"data": self.data}));
                    return Ok(socket);
                }
                Err(failure) if failure.is_data_held => match refusal {
                    None if patience.wait() => {}
                    reason => return Err(super::held(failure, reason)),
                },
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Serves this client, and others that attach, from a thread of this process.
    fn become_owner(&mut self, settings: Settings) -> Result<Socket, Failure> {
        let (ours, theirs) = Socket::pair().map_err(no_pipe)?;
        let (input, output) = (theirs.try_clone().map_err(no_pipe)?, theirs.try_clone().map_err(no_pipe)?);
        let (tell, told) = mpsc::channel();
        let (governed, ready) = (self.client.governed, tell.clone());
        let owning = std::thread::Builder::new().name("owner".into()).spawn(move || {
            let ended = block_on(own(settings, governed, input, output, move || {
                let _ = ready.send(Ok(()));
            }));
            if let Err(failure) = &ended {
                let _ = tell.send(Err(failure.clone()));
            }
            // The thread that passes lines back sees the end only now, after everything is written.
            let _ = theirs.shutdown(Shutdown::Both);
            ended
        });
        let owning = owning.map_err(no_pipe)?;
        match told.recv() {
            Ok(Ok(())) => {
                self.owning = Some(owning);
                Ok(ours)
            }
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::new(Code::Internal, "the owner of the data broke off while it began")),
        }
    }
}

fn no_pipe(cause: io::Error) -> Failure {
    Failure::new(Code::Unavailable, format!("this process cannot take the data over: {cause}"))
}

/// The first signal ends the conversation as the end of stdin does; the second ends the process at once.
fn watch_signals(proxy: &LineProxy) {
    let proxy = proxy.clone();
    let watch = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async move {
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)] = kinds.map(signal) else { return };
            for is_first in [true, false] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hang_up.recv() => {}
                }
                if is_first {
                    proxy.end();
                }
            }
            std::process::exit(i32::from(exit::INTERRUPTED));
        });
    };
    // Without the thread signals end the process at once, as they do by themselves.
    let _ = std::thread::Builder::new().name("signals".into()).spawn(watch);
}
