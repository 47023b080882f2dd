//! What the server tells the launcher: how strong the sandbox must be, what it shows, what it limits.

use std::fmt;
use std::fs::Metadata;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How strongly a program is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SandboxLevel {
    /// Own user, mount, process, network and IPC namespaces, with Landlock (where the kernel has it) and seccomp inside.
    Namespaces,
    /// Landlock and seccomp on the mounts and process ids of the host.
    Landlock,
    /// Not confined at all.
    Unconfined,
}

impl SandboxLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            SandboxLevel::Namespaces => "namespaces",
            SandboxLevel::Landlock => "landlock",
            SandboxLevel::Unconfined => "none",
        }
    }

    pub fn is_confined(self) -> bool {
        match self {
            SandboxLevel::Namespaces | SandboxLevel::Landlock => true,
            SandboxLevel::Unconfined => false,
        }
    }
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What one sandbox may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Of each process, and of all of them together.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u64,
    /// The largest file, and the size of the private `/tmp`.
    pub file_bytes: u64,
    /// CPU time of each process.
    pub cpu_seconds: u64,
    /// Open files of each process.
    pub open_files: u64,
}

impl SandboxLimits {
    /// Enough for a compiler, too little to harm a host.
    pub const PRESET: Self = Self {
        memory_bytes: 4 << 30,
        processes: 512,
        file_bytes: 1 << 30,
        cpu_seconds: 3_600,
        open_files: 1_024,
    };
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self::PRESET
    }
}

/// A file as it was when it was approved: replaced or rewritten, it is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
    pub modified_ns: i128,
}

impl FileIdentity {
    pub fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        }
    }
}

/// A file or folder of the working directory that programs can read and not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedPath {
    /// From the working directory.
    pub path: PathBuf,
    pub missing: MissingPath,
}

/// What holds for a sealed path that does not exist, in a folder that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MissingPath {
    /// Programs may create it.
    Creatable,
    /// An empty folder stands in its place until the program has ended.
    EmptyFolder,
}

impl SealedPath {
    pub fn new(path: impl Into<PathBuf>, missing: MissingPath) -> Self {
        Self { path: path.into(), missing }
    }
}

/// Where the changes of an overlaid working directory go: two folders of one file system, on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverlayPlaces {
    pub upper: PathBuf,
    pub work: PathBuf,
}

/// The part of the launcher a process plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Stage {
    /// Outside of the sandbox: watches the server, passes signals on, reports the exit status.
    Supervisor,
    /// The first process of the sandbox: builds it, starts the program, reaps, ends everything.
    Init,
}

/// The launcher's argument, as JSON. It holds no secrets: command lines can be read by other users of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LaunchSpec {
    pub stage: Stage,
    pub level: SandboxLevel,
    /// The arguments of the launcher's own program before this one.
    pub entry: Vec<String>,
    /// The process that started this stage; without it, the stage ends.
    pub parent: u32,
    /// The path under which the launcher's working directory is shown. None: the private temporary folder.
    pub directory: Option<PathBuf>,
    /// Takes all changes of the working directory; level `namespaces` only.
    pub overlay: Option<OverlayPlaces>,
    /// Files and folders beside the system's that can be read.
    pub readable: Vec<PathBuf>,
    /// Files and folders that are never visible, if they exist.
    pub hidden: Vec<PathBuf>,
    /// What is read-only in the working directory.
    pub sealed: Vec<SealedPath>,
    /// What the program's file must be.
    pub identity: Option<FileIdentity>,
    /// Held shared while anything of the sandbox lives.
    pub lock: Option<PathBuf>,
    pub limits: SandboxLimits,
    /// The private temporary folder of a sandbox without a mount namespace.
    pub temporary: Option<PathBuf>,
    /// Whether the process has a user namespace of its own, so that its processes can be counted apart.
    pub own_user: bool,
    /// Whether Landlock scopes signals where the kernel can.
    pub scope_signals: bool,
    /// Build the sandbox, report, and start nothing.
    pub probe: bool,
}
