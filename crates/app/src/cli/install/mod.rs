//! `orchestr8 mcp install`: tells an editor to start us, by one entry in its own configuration.

mod client;
mod diff;
mod document;
mod target;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use orchestr8_contract::Code;
use serde_json::json;

use super::Shell;
use crate::config::user_configuration;
use crate::failure::Failure;
use client::{Client, Scope};

pub use diff::unified;
pub use document::Document;

#[derive(Args)]
pub struct Install {
    /// The editor to tell.
    #[arg(long, value_enum)]
    client: Client,
    /// For this project or for this user.
    #[arg(long, value_enum, default_value_t)]
    scope: Scope,
    /// The name of the entry.
    #[arg(long, default_value = "orchestr8")]
    name: String,
    /// Print what would change as a diff, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Arguments for `orchestr8 mcp`, after `--`.
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,
}

/// What is there and what should be.
struct Plan {
    path: PathBuf,
    /// The user's own configuration, which the entry names and which is not there yet.
    missing: Option<PathBuf>,
    before: String,
    /// None: the entry is there already.
    after: Option<String>,
}

impl Install {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let plan = self.plan(shell)?;
        let done = match &plan.after {
            None => "unchanged",
            Some(_) if self.dry_run => "planned",
            Some(after) => {
                if let Some(missing) = &plan.missing {
                    make_configuration(missing).map_err(|cause| unwritable(missing, &cause))?;
                    shell.terminal.note(&format!("made the configuration {}", missing.display()));
                }
                put(&plan.path, &plan.before, after).map_err(|cause| unwritable(&plan.path, &cause))?;
                "written"
            }
        };
        let path = plan.path.display();
        if shell.terminal.json {
            shell.terminal.value(&json!({"file": plan.path, "name": self.name, "result": done}));
        } else if let (Some(after), true) = (&plan.after, self.dry_run) {
            shell.terminal.data(&unified(&path.to_string(), &plan.before, after));
        }
        let client = self.client.name();
        match done {
            "written" => shell.terminal.note(&format!("{client} now starts orchestr8: {path}")),
            "unchanged" => {
                shell.terminal.note(&format!("{client} starts orchestr8 already: {path} is unchanged"))
            }
            _ => {}
        }
        Ok(())
    }

    fn plan(&self, shell: &Shell) -> Result<Plan, Failure> {
        let path = self.client.file(self.scope, &shell.environment).ok_or_else(|| {
            Failure::new(Code::Configuration, "there is no home directory: HOME is not set")
                .hinting("set HOME, or use --scope project")
        })?;
        let before = target::read(&path)?;
        let wrong = |error: document::Error| {
            Failure::new(Code::InvalidArgument, format!("{}: {error}", path.display()))
                .hinting("mend or move the file; it was left as it is")
        };
        let document = Document::parse(&before).map_err(wrong)?;
        let mut args = vec![String::from("mcp")];
        let mut missing = None;
        // Editors start servers in the folder of a project: a configuration that lies there must not be found.
        if !self.args.iter().any(|arg| arg == "--config" || arg.starts_with("--config=")) {
            let configuration = configuration(shell)?;
            args.extend([String::from("--config"), text_of(&configuration)?]);
            missing = Some(configuration).filter(|path| !path.exists());
        }
        args.extend(self.args.iter().cloned());
        let entry = self.client.entry(&command(shell), &args);
        let section = self.client.section();
        let after = match document.entry(section, &self.name).map_err(wrong)? {
            Some(there) if *there == json!(entry) => None,
            Some(_) => {
                let message = format!("{} has another entry named \"{}\"", path.display(), self.name);
                return Err(Failure::new(Code::IdConflict, message)
                    .hinting("remove that entry, or choose another name with --name; nothing was written"));
            }
            None => Some(document.with_entry(section, &self.name, &entry)),
        };
        Ok(Plan { path, missing, before, after })
    }
}

/// The configuration that the entry names, in full: the one named here, else the user's own.
fn configuration(shell: &Shell) -> Result<PathBuf, Failure> {
    let named = shell.config.clone().or_else(|| shell.environment.path("ORCHESTR8_CONFIG"));
    if let Some(named) = named {
        return fs::canonicalize(&named).map_err(|cause| {
            Failure::new(Code::NotFound, format!("{}: {cause}", named.display())).hinting("correct --config")
        });
    }
    if let Some(own) = user_configuration(&shell.environment)? {
        return Ok(own);
    }
    let folder = shell.environment.config_home().ok_or_else(|| {
        Failure::new(Code::Configuration, "there is no home directory: HOME is not set")
            .hinting("set HOME, or name a configuration with --config")
    })?;
    Ok(folder.join("orchestr8.json"))
}

fn text_of(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::new(Code::InvalidArgument, format!("{} is not UTF-8", path.display()))
            .hinting("name another configuration with --config")
    })
}

/// One without settings.
fn make_configuration(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(b"{\n}\n")
}

/// By name if the shell would find this very program under it, else by its full path.
fn command(shell: &Shell) -> String {
    let Ok(own) = std::env::current_exe().and_then(fs::canonicalize) else {
        return String::from("orchestr8");
    };
    let path = shell.environment.get("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(path).map(|folder| folder.join("orchestr8")).find(|file| file.is_file());
    match found.and_then(|file| fs::canonicalize(file).ok()) {
        Some(file) if file == own => String::from("orchestr8"),
        Some(_) | None => own.display().to_string(),
    }
}

/// The same for a file that the user has named: a link stays a link, and what it points to is replaced.
pub fn write(path: &Path, before: &str, after: &str) -> io::Result<()> {
    put(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()), before, after)
}

/// Writes beside the file and renames: it is the old or the new one at any moment. The old one stays as a backup.
fn put(path: &Path, before: &str, after: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mode = fs::metadata(path).map_or(0o644, |metadata| metadata.permissions().mode());
    if !before.is_empty() {
        replace(&with_ending(path, ".bak"), before, mode)?;
    }
    replace(path, after, mode)?;
    File::open(folder)?.sync_all()
}

fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let fresh = with_ending(path, &format!(".{}.new", std::process::id()));
    let written =
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&fresh, path)
        });
    if written.is_err() {
        // What is half written is of no use to anybody.
        let _ = fs::remove_file(&fresh);
    }
    written
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn unwritable(path: &Path, cause: &io::Error) -> Failure {
    let code = match cause.kind() {
        io::ErrorKind::PermissionDenied => Code::Unauthorized,
        _ => Code::StoreFailed,
    };
    Failure::new(code, format!("{}: {cause}", path.display()))
        .hinting("nothing was changed; check that the file can be read and written")
}
