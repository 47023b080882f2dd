//! The server's side: which sandbox programs get here, and the command that starts one.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::ports::Clock;
use parking_lot::Mutex;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::private_places::PrivatePlaces;
use super::probe::SandboxReport;
use super::scratch::ScratchDirectory;
use super::spec::{FileIdentity, LaunchSpec, SandboxLevel, SandboxLimits, SealedPath, Stage};
use super::{Error, WorkingDirectory};
use crate::Child;
use crate::limits::{EARLIER_LOOK_MS, EARLIER_MS, OVERLAYS};

/// What happens where the host cannot confine programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// Programs are not run.
    #[default]
    Required,
    /// Programs run with what protection there is, if need be none.
    BestEffort,
    /// Programs are never confined.
    Off,
}

/// A program that calls `launch`: its path, and its arguments before the launcher's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    pub program: PathBuf,
    pub args: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct SandboxSettings {
    pub mode: SandboxMode,
    /// The level to be used. None: the strongest that this host has.
    pub level: Option<SandboxLevel>,
    /// Behave as on a kernel whose Landlock cannot scope signals (before Linux 6.12).
    pub without_signal_scope: bool,
    /// None: nothing can be confined.
    pub launcher: Option<Launcher>,
    /// Files and folders beside the system's that programs can read.
    pub readable: Vec<PathBuf>,
    /// What no program ever sees: the server's own places, and secrets of the user.
    pub places: PrivatePlaces,
    pub limits: SandboxLimits,
    /// A file that is locked while programs run, so that a server that starts after a crash waits for the last one's.
    pub lock: Option<PathBuf>,
}

/// Starts programs in sandboxes. Clones share what was found out about the host.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    settings: SandboxSettings,
    clock: Arc<dyn Clock>,
    report: OnceCell<SandboxReport>,
    alone: OnceCell<()>,
    views: OnceCell<()>,
    /// Whether directories of a file system can be overlaid, by its device.
    overlays: Mutex<HashMap<u64, bool>>,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sandbox").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

/// What to start.
#[derive(Debug)]
pub struct SandboxRun {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Written to by the program. None: an empty temporary folder.
    pub directory: Option<WorkingDirectory>,
    /// What the program cannot change in its directory.
    pub sealed: Vec<SealedPath>,
    /// What the program's file must be; it is readable then, wherever it lies.
    pub identity: Option<FileIdentity>,
}

/// A command that starts a program in its sandbox. Environment, stdin and output are the caller's to set.
pub struct SandboxedCommand {
    pub command: Command,
    pub level: SandboxLevel,
    /// Open until the child has changed into it.
    _directory: Option<WorkingDirectory>,
}

impl SandboxedCommand {
    pub fn start(&mut self, clock: Arc<dyn Clock>) -> io::Result<Child> {
        let child = Child::start(&mut self.command, clock)?;
        Ok(if self.level.is_confined() { child.supervised() } else { child })
    }
}

impl SandboxSettings {
    pub(super) fn spec(&self, level: SandboxLevel, run: Option<&SandboxRun>) -> LaunchSpec {
        let mut readable: Vec<PathBuf> =
            self.readable.iter().filter_map(|path| path.canonicalize().ok()).collect();
        readable.extend(run.filter(|run| run.identity.is_some()).map(|run| run.program.clone()));
        let directory = run.and_then(|run| Some(run.directory.as_ref()?.path().to_owned()));
        let mut hidden = self.places.real_hidden(directory.as_deref());
        hidden
            .extend(self.places.real_protected().into_iter().filter(|path| path.symlink_metadata().is_ok()));
        LaunchSpec {
            stage: Stage::Supervisor,
            level,
            entry: self.launcher.as_ref().map(|launcher| launcher.args.clone()).unwrap_or_default(),
            parent: std::process::id(),
            directory,
            overlay: run.and_then(|run| run.directory.as_ref()?.overlay().cloned()),
            readable,
            hidden,
            sealed: run.map(|run| run.sealed.clone()).unwrap_or_default(),
            identity: run.and_then(|run| run.identity),
            lock: self.lock.clone(),
            limits: self.limits,
            temporary: None,
            own_user: false,
            scope_signals: !self.without_signal_scope,
            probe: false,
        }
    }
}

impl Sandbox {
    pub fn new(settings: SandboxSettings, clock: Arc<dyn Clock>) -> Self {
        let (report, alone, views) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self(Arc::new(Inner { settings, clock, report, alone, views, overlays: Mutex::default() }))
    }

    pub(super) fn settings(&self) -> &SandboxSettings {
        &self.0.settings
    }

    /// What programs must not see of a directory, from it.
    pub(super) fn private_paths_in(&self, directory: &Path) -> Vec<PathBuf> {
        let places = &self.0.settings.places;
        let all = places.real_hidden(Some(directory)).into_iter().chain(places.real_protected());
        all.filter_map(|path| path.strip_prefix(directory).ok().map(Path::to_owned)).collect()
    }

    /// Removes the views that a killed server left, once.
    pub(super) async fn remove_abandoned_views(&self) {
        let work = || async {
            // What cannot be removed now is tried again by the next server.
            let _ = tokio::task::spawn_blocking(ScratchDirectory::remove_abandoned).await;
        };
        self.0.views.get_or_init(work).await;
    }

    /// Whether the sandbox can overlay a directory. Found out by doing it, once for each file system.
    pub(super) async fn has_overlay(&self, directory: &WorkingDirectory) -> bool {
        let (Ok(device), Ok(directory)) = (directory.device(), directory.try_clone()) else { return false };
        if let Some(known) = self.0.overlays.lock().get(&device) {
            return *known;
        }
        let settings = self.0.settings.clone();
        let probed =
            tokio::task::spawn_blocking(move || super::probe::has_overlay(&settings, directory)).await;
        let found = probed.unwrap_or(false);
        let mut overlays = self.0.overlays.lock();
        if overlays.len() >= OVERLAYS {
            overlays.clear();
        }
        overlays.insert(device, found);
        found
    }

    /// The level programs run at here; an error where they do not run.
    pub async fn level(&self) -> Result<SandboxLevel, Error> {
        let inner = &self.0;
        if inner.settings.mode == SandboxMode::Off {
            return Ok(SandboxLevel::Unconfined);
        }
        let report = inner.report.get_or_try_init(|| async {
            let settings = inner.settings.clone();
            let probed = tokio::task::spawn_blocking(move || SandboxReport::probe(&settings)).await;
            probed.map_err(|error| Error::Setup("the probe", io::Error::other(error)))
        });
        let report = report.await?;
        match (inner.settings.mode, report.level) {
            (SandboxMode::Required, SandboxLevel::Unconfined) => {
                Err(Error::Unavailable(report.reasons.join("; ")))
            }
            (SandboxMode::Required | SandboxMode::BestEffort | SandboxMode::Off, level) => Ok(level),
        }
    }

    /// The command for a program. Programs that an earlier server on the same data left are waited for first.
    pub async fn command(&self, run: SandboxRun) -> Result<SandboxedCommand, Error> {
        let level = self.level().await?;
        self.0.alone.get_or_try_init(|| self.0.alone()).await?;
        let settings = &self.0.settings;
        if let Some(directory) = &run.directory {
            settings.places.check(directory.path(), level)?;
        }
        let mut command = match (level, &settings.launcher) {
            (SandboxLevel::Namespaces | SandboxLevel::Landlock, Some(launcher)) => {
                let spec = settings.spec(level, Some(&run));
                let spec = serde_json::to_string(&spec)
                    .map_err(|error| Error::Setup("the launcher's argument", error.into()))?;
                let mut command = Command::new(&launcher.program);
                command.args(&launcher.args).arg(spec).arg("--").arg(&run.program).args(&run.args);
                command
            }
            (SandboxLevel::Unconfined, _) | (_, None) => {
                let mut command = Command::new(&run.program);
                command.args(&run.args);
                command
            }
        };
        match &run.directory {
            Some(directory) => command.current_dir(directory.by_handle()),
            None => command.current_dir(std::env::temp_dir()),
        };
        Ok(SandboxedCommand { command, level, _directory: run.directory })
    }
}

impl Inner {
    /// Returns once no program of an earlier server on the same data lives: each holds the lock until its end.
    async fn alone(&self) -> Result<(), Error> {
        let Some(path) = &self.settings.lock else { return Ok(()) };
        let failed = |error: io::Error| Error::At(path.clone(), error);
        let file = lock_file(path).map_err(failed)?;
        for _ in 0..EARLIER_MS / EARLIER_LOOK_MS {
            match file.try_lock() {
                Ok(()) => return file.unlock().map_err(failed),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            self.clock.sleep(Duration::from_millis(EARLIER_LOOK_MS)).await;
        }
        Err(Error::Busy)
    }
}

/// A link in its place is not followed.
fn lock_file(path: &Path) -> io::Result<File> {
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link).open(path)
}
