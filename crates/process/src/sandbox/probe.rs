//! Finds out what sandbox this host can build, by building one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::directory_view::DirectoryView;
use super::server::{SandboxRun, SandboxSettings};
use super::spec::{LaunchSpec, SandboxLevel};
use super::working_directory::WorkingDirectory;

/// What this host can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxReport {
    /// The strongest level that works here.
    pub level: SandboxLevel,
    /// Why the stronger levels do not, for people.
    pub reasons: Vec<String>,
}

impl SandboxReport {
    /// Tries the levels from the strongest. Takes some milliseconds.
    pub fn probe(settings: &SandboxSettings) -> Self {
        let mut reasons = Vec::new();
        let is_wanted = |level: &SandboxLevel| settings.level.is_none_or(|only| only == *level);
        for level in [SandboxLevel::Namespaces, SandboxLevel::Landlock].into_iter().filter(is_wanted) {
            match attempt(settings, level) {
                Ok(()) => return Self { level, reasons },
                Err(reason) => reasons.push(format!("{level}: {reason}")),
            }
        }
        Self { level: SandboxLevel::Unconfined, reasons }
    }
}

/// Whether a sandbox with this directory overlaid can be built.
pub fn has_overlay(settings: &SandboxSettings, directory: WorkingDirectory) -> bool {
    let Ok(view) = DirectoryView::overlay(directory) else { return false };
    let Ok(directory) = view.working_directory() else { return false };
    let run = SandboxRun {
        program: PathBuf::new(),
        args: Vec::new(),
        directory: Some(directory),
        sealed: Vec::new(),
        identity: None,
    };
    let spec = settings.spec(SandboxLevel::Namespaces, Some(&run));
    let at = run.directory.as_ref().map_or_else(|| PathBuf::from("/"), WorkingDirectory::by_handle);
    launch_probe(settings, spec, &at).is_ok()
}

fn attempt(settings: &SandboxSettings, level: SandboxLevel) -> Result<(), String> {
    launch_probe(settings, settings.spec(level, None), Path::new("/"))
}

fn launch_probe(settings: &SandboxSettings, mut spec: LaunchSpec, directory: &Path) -> Result<(), String> {
    let Some(launcher) = &settings.launcher else {
        return Err(String::from("this program does not know its own path"));
    };
    (spec.probe, spec.lock) = (true, None);
    let spec = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
    let mut command = Command::new(&launcher.program);
    command.args(&launcher.args).arg(spec).args(["--", "probe"]).env_clear().current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("the launcher failed without saying why");
    Err(last.strip_prefix("sandbox: ").unwrap_or(last).to_owned())
}
