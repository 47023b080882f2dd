//! Finds out what sandbox this host can build, by building one.

use std::process::{Command, Stdio};

use super::server::SandboxSettings;
use super::spec::SandboxLevel;

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

fn attempt(settings: &SandboxSettings, level: SandboxLevel) -> Result<(), String> {
    let Some(launcher) = &settings.launcher else {
        return Err(String::from("this program does not know its own path"));
    };
    let mut spec = settings.spec(level, None);
    (spec.probe, spec.lock) = (true, None);
    let spec = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
    let mut command = Command::new(&launcher.program);
    command.args(&launcher.args).arg(spec).args(["--", "probe"]).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("the launcher failed without saying why");
    Err(last.strip_prefix("sandbox: ").unwrap_or(last).to_owned())
}
