//! The part of the launcher outside of the sandbox. It ends the sandbox when the server is gone, however the server ended,
//! and it ends itself only when nothing of the sandbox lives any more.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getppid, kill_process, kill_process_group, pidfd_open};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::oneshot;

use super::Error;
use super::namespaces;
use super::spec::{LaunchSpec, SandboxLevel, Stage};

/// This very program, also if its file was replaced meanwhile.
const SELF: &str = "/proc/self/exe";

/// Runs a program in a sandbox to its end; gives back its exit code.
pub fn supervise(spec: LaunchSpec, program: &[OsString]) -> Result<u8, Error> {
    let server = parent(spec.parent)?;
    let _lock = spec.lock.as_deref().map(hold).transpose()?;
    let mut inner = LaunchSpec { stage: Stage::Init, parent: std::process::id(), ..spec };
    if inner.level == SandboxLevel::Namespaces {
        inner.own_user = namespaces::enter_user()?;
    }
    let server = ended(server);
    let temporary = match inner.level {
        SandboxLevel::Namespaces => {
            namespaces::enter_others()?;
            None
        }
        SandboxLevel::Landlock | SandboxLevel::Unconfined => Some(TemporaryDirectory::make()?),
    };
    inner.temporary = temporary.as_ref().map(|folder| folder.0.clone());
    let runtime = super::runtime()?;
    runtime.block_on(async {
        let signals = SupervisorSignals::listen()?;
        let child = start(&inner, program)?;
        watch(child, server, signals, inner.level).await
    })
}

/// A handle to the process that must be there: while it is the parent, its id is not used again.
pub(super) fn parent(expected: u32) -> Result<OwnedFd, Error> {
    let gone = || Error::Setup("the process that started the sandbox", io::ErrorKind::NotFound.into());
    let is_parent =
        || getppid().is_some_and(|parent| u32::try_from(parent.as_raw_nonzero().get()) == Ok(expected));
    let pid = getppid().filter(|_| is_parent()).ok_or_else(gone)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| Error::setup("pidfd_open", error))?;
    if is_parent() { Ok(handle) } else { Err(gone()) }
}

/// Fires when the process of a handle has ended. A thread waits for it, since a runtime cannot be given a handle safely.
pub(super) fn ended(process: OwnedFd) -> oneshot::Receiver<()> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut waited = [PollFd::new(&process, PollFlags::IN)];
        while let Err(rustix::io::Errno::INTR) | Ok(0) = poll(&mut waited, None) {}
        // The receiver may be gone.
        let _ = tell.send(());
    });
    told
}

/// The next server on the same data waits until it is released.
pub(super) fn hold(path: &Path) -> Result<File, Error> {
    let locked = File::open(path).and_then(|file| file.lock_shared().map(|()| file));
    locked.map_err(|error| Error::At(path.to_owned(), error))
}

fn start(inner: &LaunchSpec, program: &[OsString]) -> Result<Child, Error> {
    let text = serde_json::to_string(inner).map_err(|error| Error::Setup("the launcher", error.into()))?;
    let mut command = Command::new(SELF);
    command.args(&inner.entry).arg(text).arg("--").args(program);
    if inner.level == SandboxLevel::Namespaces {
        // Signals for the supervisor are not for the sandbox; those that are, are passed on. At the other levels the first process
        // makes a session of its own, which the leader of a group cannot.
        command.process_group(0);
    }
    command.spawn().map_err(|error| Error::Setup("the first process", error))
}

struct SupervisorSignals {
    terminate: Signals,
    interrupt: Signals,
}

impl SupervisorSignals {
    fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(|error| Error::Setup("signals", error));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }
}

async fn watch(
    mut child: Child,
    mut server: oneshot::Receiver<()>,
    mut signals: SupervisorSignals,
    level: SandboxLevel,
) -> Result<u8, Error> {
    let failed = |error: io::Error| Error::Setup("the end of the sandbox", error);
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    loop {
        tokio::select! {
            biased;
            ended = child.wait() => return ended.map(code).map_err(failed),
            Some(()) = signals.terminate.recv() => {
                if let Some(pid) = pid {
                    // The program may have ended already.
                    let _ = kill_process_group(pid, Signal::TERM);
                }
            }
            Some(()) = signals.interrupt.recv() => end(&mut child, pid, level),
            _ = &mut server => {
                end(&mut child, pid, level);
                return child.wait().await.map(code).map_err(failed);
            }
        }
    }
}

/// Ends everything in the sandbox at once.
fn end(child: &mut Child, pid: Option<Pid>, level: SandboxLevel) {
    match (level, pid) {
        // With the first process of a namespace the kernel ends all others.
        (SandboxLevel::Namespaces, _) | (SandboxLevel::Unconfined | SandboxLevel::Landlock, None) => {
            let _ = child.start_kill();
        }
        (SandboxLevel::Unconfined | SandboxLevel::Landlock, Some(pid)) => {
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

/// As shells count it: a signal is 128 and its number.
pub(super) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// The temporary folder of a sandbox that shares the host's mounts; it goes with the sandbox.
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn make() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("orchestr8-sandbox-{}", std::process::id()));
        // One that an earlier process with this id left is in the way.
        let _ = std::fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| Error::At(path.clone(), error))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Nothing depends on it any more.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
