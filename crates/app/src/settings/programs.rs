//! What the settings of programs mean: the sandbox, the templates of workflows, the folders of sessions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use orchestr8_contract::Code;
use orchestr8_contract::id::Tenant;
use orchestr8_edge::Auth;
use orchestr8_kernel::folder_sharing::FolderSharing;
use orchestr8_process::sandbox::{Launcher, SandboxLimits, SandboxMode, SandboxSettings};
use orchestr8_sessions::SessionRoots;
use orchestr8_workflows::agents::settings::{ExecTemplate, ExecTemplateSource};

use super::{Place, private_places};
use crate::config::{self, Environment};
use crate::failure::Failure;

/// The hidden command under which this program is the launcher of a sandbox (`cli/confine.rs`).
pub const CONFINE: &str = "confine";

/// Files that belong to a data file and stand beside it.
const BESIDE_DATA_FILE: [&str; 5] = ["", "-wal", "-shm", ".lock", PROGRAMS_LOCK];

/// Locked while programs run.
const PROGRAMS_LOCK: &str = ".programs";

/// What belongs to the server alone.
pub fn data_paths(config: &config::Config, place: &Place) -> Vec<PathBuf> {
    match place {
        Place::Memory => Vec::new(),
        // A file that was named may stand among files of other people.
        Place::File { path, .. } if config.store.path.as_ref() == Some(path) => {
            BESIDE_DATA_FILE.iter().map(|ending| beside(path, ending)).collect()
        }
        Place::File { path, .. } => path.parent().map(Path::to_owned).into_iter().collect(),
    }
}

pub fn sandbox(config: &config::Config, place: &Place, environment: &Environment) -> SandboxSettings {
    let own = &config.sandbox;
    SandboxSettings {
        mode: match own.mode {
            config::SandboxMode::Required => SandboxMode::Required,
            config::SandboxMode::BestEffort => SandboxMode::BestEffort,
            config::SandboxMode::Off => SandboxMode::Off,
        },
        level: None,
        without_signal_scope: false,
        launcher: environment
            .program
            .clone()
            .map(|program| Launcher { program, args: vec![CONFINE.to_owned()] }),
        readable: own.readable.clone(),
        places: private_places::private_places(config, place, environment),
        limits: SandboxLimits {
            memory_bytes: own.memory_mb << 20,
            processes: own.processes,
            file_bytes: own.file_mb << 20,
            cpu_seconds: own.cpu_seconds,
            open_files: own.open_files,
        },
        lock: match place {
            Place::Memory => None,
            Place::File { path, .. } => Some(beside(path, PROGRAMS_LOCK)),
        },
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Where sessions may work. Without credentials only the person at this machine asks, who may choose; with them, the settings do.
pub fn session_roots(
    config: &config::Config,
    auth: &Auth,
    place: &Place,
    environment: &Environment,
) -> SessionRoots {
    let own = &config.sessions;
    let open: Vec<PathBuf> = own.roots.iter().chain(&own.cwd).cloned().collect();
    let personal = match open.is_empty() && auth.tokens.is_empty() {
        true => {
            // A service is often started in the root, which means nothing by it.
            let start = Some(environment.working_directory.clone()).filter(|start| start.parent().is_some());
            start.into_iter().collect()
        }
        false => Vec::new(),
    };
    let places = private_places::private_places(config, place, environment);
    let closed = places.protected.into_iter().chain(data_paths(config, place)).collect();
    let sharing = folder_sharing(auth, own.shared_roots);
    SessionRoots { open, personal, sharing, closed, homes: places.homes }
}

/// Which tenants may use folders without a tenant; the API tokens are added when the store is open.
pub fn folder_sharing(auth: &Auth, shared: bool) -> FolderSharing {
    let configured = auth.tokens.iter().filter_map(|token| Tenant::parse(&token.tenant).ok());
    FolderSharing { shared, configured: configured.collect(), tokens: None }
}

/// The templates of `@orchestr8/exec`, each checked, with the file its program is now.
pub fn templates(config: &config::WorkflowsExec) -> Result<BTreeMap<String, ExecTemplate>, Failure> {
    let mut templates = BTreeMap::new();
    for (name, written) in &config.templates {
        let source = ExecTemplateSource {
            program: written.program.clone(),
            args: written.args.clone(),
            holes: written.holes.clone(),
            variables: written.variables.clone(),
            env: written.env.clone(),
            directory: written.directory.clone(),
            timeout_ms: written.timeout_ms,
            roles: written.roles.clone(),
        };
        let template = ExecTemplate::new(name, source).map_err(|why| {
            Failure::new(Code::Configuration, format!("workflows.exec.templates.{name}.{why}"))
                .hinting("correct the template; see docs/guide/agents.md")
        })?;
        templates.insert(name.clone(), template);
    }
    Ok(templates)
}
