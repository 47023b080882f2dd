//! One sandbox for every program: shells of sessions, programs of workflows, commands of plans.
//!
//! A process can confine only itself, and only code that is not safe could do so between a fork and the program. So the server
//! starts its own program as a launcher (`launch`), in two stages: a supervisor outside of the sandbox and the first process
//! inside. See ADR 32 for what each level keeps out and why it is built so.

mod directory_view;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod other_processes;
#[cfg(target_os = "linux")]
mod overlay;
mod private_places;
mod probe;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod restrict;
#[cfg(target_os = "linux")]
mod rootfs;
mod scratch;
#[cfg(target_os = "linux")]
mod sealed;
mod server;
mod spec;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod system;
mod tree_copy;
mod working_directory;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use directory_view::DirectoryView;
pub use private_places::PrivatePlaces;
pub use probe::SandboxReport;
pub use server::{Launcher, Sandbox, SandboxMode, SandboxRun, SandboxSettings, SandboxedCommand};
pub use spec::{FileIdentity, MissingPath, SandboxLevel, SandboxLimits, SealedPath};
pub use tree_copy::{ChangedPaths, CopyLimits};
pub use working_directory::WorkingDirectory;

/// The launcher's exit code when the program was not started, as of `env` and `timeout`.
pub const NOT_STARTED: u8 = 125;

/// Why a program was not started in a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}: {1}")]
    Setup(&'static str, #[source] io::Error),
    #[error("{path}: {1}", path = .0.display())]
    At(PathBuf, #[source] io::Error),
    #[error("Landlock: {0}")]
    Landlock(String),
    #[error("seccomp: {0}")]
    Filter(String),
    #[error("{} must not be visible to programs; choose another working directory, for sessions with `sessions.roots`", .0.display())]
    Hidden(PathBuf),
    #[error(
        "{} cannot be a working folder: it is or contains a home, where files start programs; name a folder of its own, for sessions with `sessions.roots`", .0.display()
    )]
    Home(PathBuf),
    #[error(
        "{} cannot be a working folder: files in it start programs; name a folder of its own, for sessions with `sessions.roots`", .0.display()
    )]
    Startup(PathBuf),
    #[error("{path} cannot be kept read-only for programs: {1}", path = .0.display())]
    Unsealed(PathBuf, &'static str),
    #[error("{} is not the file it was when the server started; restart the server to accept it", .0.display())]
    Changed(PathBuf),
    #[error(
        "the directory is too large to be copied: more than {entries} files or {mib} MiB. This host can mount no overlay for it; remove build products from it, or allow user namespaces and a file system that overlays support"
    )]
    TooLarge { entries: u64, mib: u64 },
    #[error("the program cannot be started: {0}")]
    Program(#[source] io::Error),
    #[error(
        "programs cannot be confined on this host ({0}); set `sandbox.mode` to \"best-effort\" to run them unconfined"
    )]
    Unavailable(String),
    #[error("programs that an earlier server started are still running")]
    Busy,
}

#[cfg(target_os = "linux")]
impl Error {
    fn setup(what: &'static str, error: rustix::io::Errno) -> Self {
        Error::Setup(what, error.into())
    }
}

/// What a probe finds inside.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct ProbeReport {
    /// Whether the sandbox has a table of its processes.
    processes: bool,
}

/// The launcher: what `Sandbox` starts. Call it before there are threads. Gives back the exit code of the program, or
/// `NOT_STARTED` after saying why on stderr.
pub fn launch(spec: &OsStr, program: &[OsString]) -> u8 {
    match stage(spec, program) {
        Ok(code) => code,
        Err(error) => {
            complain(&error.to_string());
            NOT_STARTED
        }
    }
}

#[cfg(target_os = "linux")]
fn stage(spec: &OsStr, program: &[OsString]) -> Result<u8, Error> {
    let wrong = || Error::Setup("the launcher's argument", io::ErrorKind::InvalidInput.into());
    let spec: spec::LaunchSpec =
        serde_json::from_str(spec.to_str().ok_or_else(wrong)?).map_err(|_| wrong())?;
    match spec.stage {
        spec::Stage::Supervisor => supervisor::supervise(spec, program),
        spec::Stage::Init => init::run(&spec, program),
    }
}

#[cfg(not(target_os = "linux"))]
fn stage(_: &OsStr, _: &[OsString]) -> Result<u8, Error> {
    Err(Error::Unavailable(String::from("only Linux has what it takes")))
}

#[cfg(target_os = "linux")]
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::Setup("a runtime", error))
}

/// Reports on stderr, where the output of the program goes.
fn complain(what: &str) {
    // Without a reader, the exit code is left.
    let _ = writeln!(io::stderr(), "sandbox: {what}");
}
