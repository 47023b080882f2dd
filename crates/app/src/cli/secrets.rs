//! `orchestr8 secrets set|list|rotate|delete|rekey`: named secrets. A value is never an argument and never printed.

use std::io::{self, Read};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use http::Method;
use orchestr8_contract::Code;
use orchestr8_kernel::log::Level;
use orchestr8_secrets::limits::VALUE_MAX_BYTES;
use orchestr8_secrets::{KeySource, MasterKey, SecretText};
use serde_json::{Value, json};

use super::Shell;
use super::confirm::confirm;
use super::reaching::{Intent, Reaching};
use super::words::{moment, text};
use crate::failure::Failure;
use crate::reach::escape;
use crate::runtime::secrets::{InstallationKey, next, write};
use crate::runtime::{Purpose, Runtime, WhenHeld, block_on};
use crate::settings::{KeyLocation, read_private};
use crate::terminal::columns;

const SECRETS: &str = "/v1/secrets";

#[derive(Subcommand)]
pub enum Secrets {
    /// Create a secret, or replace its value and bindings.
    Set(Box<Set>),
    /// List the secrets with their bindings, without values.
    List(Reaching),
    /// Replace the value of a secret; its bindings stay.
    Rotate(Rotate),
    /// Delete a secret.
    Delete(Delete),
    /// Encrypt all secrets again with a new key. The server must not run.
    Rekey(Box<Rekey>),
}

/// Where the value comes from: a variable, a file, or stdin.
#[derive(Args)]
struct ValueSource {
    /// Take the value from this environment variable.
    #[arg(long, value_name = "VARIABLE", conflicts_with = "from_file")]
    from_env: Option<String>,
    /// Take the value from this file, which only its owner can read.
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
}

#[derive(Args)]
pub struct Set {
    /// What definitions call it: ${secrets.NAME}.
    name: String,
    #[command(flatten)]
    value: ValueSource,
    /// A workflow that may use it: the id of a stored workflow, or the hash of a definition. May be given more than once.
    #[arg(long = "workflow", value_name = "ID|HASH")]
    workflows: Vec<String>,
    /// An agent that may use it, such as @orchestr8/http. May be given more than once.
    #[arg(long = "agent", value_name = "ID")]
    agents: Vec<String>,
    /// Where it may go: HOST:HEADER, HOST:body or exec:TEMPLATE:VARIABLE. May be given more than once.
    #[arg(long = "to", value_name = "DESTINATION", required = true)]
    to: Vec<String>,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Rotate {
    /// The secret.
    name: String,
    #[command(flatten)]
    value: ValueSource,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Delete {
    /// The secret.
    name: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Rekey {
    /// The environment variable with the new key [default: a new key in the key file of this user].
    #[arg(long, value_name = "VARIABLE", conflicts_with_all = ["new_file", "new_command"])]
    new_env: Option<String>,
    /// The file with the new key.
    #[arg(long, value_name = "FILE", conflicts_with = "new_command")]
    new_file: Option<PathBuf>,
    /// A program that prints the new key, and its arguments, separated by blanks.
    #[arg(long, value_name = "COMMAND")]
    new_command: Option<String>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    running: super::Running,
}

impl Secrets {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Secrets::Set(set) => set.run(shell),
            Secrets::List(reaching) => list(shell, reaching),
            Secrets::Rotate(rotate) => rotate.run(shell),
            Secrets::Delete(delete) => delete.run(shell),
            Secrets::Rekey(rekey) => rekey.run(shell),
        }
    }
}

impl ValueSource {
    fn read(&self, shell: &Shell) -> Result<SecretText, Failure> {
        let value = match (&self.from_env, &self.from_file) {
            (Some(variable), _) => shell.environment.get(variable).map(str::to_owned).ok_or_else(|| {
                Failure::new(Code::InvalidArgument, format!("the environment variable {variable} is not set"))
            })?,
            (None, Some(file)) => read_private("--from-file", file)?,
            (None, None) => stdin(shell)?,
        };
        let value = value.strip_suffix('\n').unwrap_or(&value);
        Ok(SecretText::new(value.strip_suffix('\r').unwrap_or(value)))
    }
}

fn stdin(shell: &Shell) -> Result<String, Failure> {
    if shell.terminal.can_ask() {
        shell.terminal.note("type the value, then Enter and Ctrl-D; or give --from-env or --from-file");
    }
    let mut value = String::new();
    let limit = VALUE_MAX_BYTES as u64 + 2;
    io::stdin().take(limit).read_to_string(&mut value).map_err(|cause| {
        Failure::new(Code::InvalidArgument, format!("stdin cannot be read as text: {cause}"))
    })?;
    Ok(value)
}

impl Set {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let value = self.value.read(shell)?;
        let body = json!({"name": self.name, "value": value.expose(), "workflows": self.workflows, "agents": self.agents, "to": self.to});
        let kept =
            self.reaching.run(shell, Intent::Record, async |reach| reach.post(SECRETS, &body).await)?;
        tell(shell, &kept, "is stored");
        Ok(())
    }
}

impl Rotate {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let body = json!({"value": self.value.read(shell)?.expose()});
        let path = format!("{SECRETS}/{}", escape(&self.name));
        let kept = self.reaching.run(shell, Intent::Record, async |reach| reach.put(&path, &body).await)?;
        tell(shell, &kept, "has a new value");
        Ok(())
    }
}

impl Delete {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        confirm(
            shell,
            self.yes,
            &format!("the secret {} is deleted; steps that use it will fail", self.name),
        )?;
        let path = format!("{SECRETS}/{}", escape(&self.name));
        let answer = self.reaching.run(shell, Intent::Record, async |reach| {
            reach.send(Method::DELETE, &path, &[], None).await?.accepted()
        })?;
        match shell.terminal.json {
            true => shell.terminal.value(&answer),
            false => shell.terminal.data(&format!("{} is deleted", self.name)),
        }
        Ok(())
    }
}

fn tell(shell: &Shell, kept: &Value, done: &str) {
    match shell.terminal.json {
        true => shell.terminal.value(kept),
        false => shell.terminal.data(&format!("{} {done} (version {})", text(kept, "name"), kept["version"])),
    }
}

fn list(shell: &Shell, reaching: &Reaching) -> Result<(), Failure> {
    let page = reaching.run(shell, Intent::Record, async |reach| reach.get(SECRETS).await)?;
    if shell.terminal.json {
        shell.terminal.value(&page);
        return Ok(());
    }
    if let Some(why) = page["locked"].as_str() {
        shell.terminal.warn(&format!("stored secrets cannot be used: {why}"));
    }
    let secrets = page["secrets"].as_array().cloned().unwrap_or_default();
    if secrets.is_empty() {
        shell.terminal.note("there are no secrets; create one with orchestr8 secrets set");
        return Ok(());
    }
    let words = |secret: &Value, name: &str| {
        let all: Vec<&str> =
            secret[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if all.is_empty() { String::from("any") } else { all.join(",") }
    };
    let row = |secret: &Value| {
        let rotated = if secret["rotatedAt"].is_string() {
            moment(&secret["rotatedAt"])
        } else {
            String::from("in settings")
        };
        [
            text(secret, "name").to_owned(),
            words(secret, "workflows"),
            words(secret, "agents"),
            words(secret, "to"),
            rotated,
        ]
    };
    let head = ["SECRET", "WORKFLOWS", "AGENTS", "DESTINATIONS", "ROTATED"].map(String::from);
    shell.terminal.data(&columns(&std::iter::once(head).chain(secrets.iter().map(row)).collect::<Vec<_>>()));
    Ok(())
}

impl Rekey {
    /// Works on the store itself: the key never travels, and no server may hold the old one in memory.
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let settings = shell.settings(self.running.flags(), self.running.mode())?;
        let created = match (&settings.secrets.key, self.location(shell)) {
            (_, Some(location)) => Err(location),
            (KeyLocation::Created(Some(path)), None) => Ok(path.clone()),
            (_, None) => {
                return Err(Failure::new(
                    Code::InvalidArgument,
                    "the settings name where the key is, so say where the new one is",
                )
                .hinting("give --new-env, --new-file or --new-command; then change secrets.key"));
            }
        };
        confirm(
            shell,
            self.yes,
            "all stored secrets are encrypted again; the old key opens nothing afterwards",
        )?;
        let (key, file) = match created {
            Err(location) => {
                let mut keys = InstallationKey(location).load()?;
                (
                    keys.pop()
                        .ok_or_else(|| Failure::new(Code::SecretsUnavailable, "the new key is missing"))?,
                    None,
                )
            }
            Ok(path) => {
                let key = MasterKey::generate()?;
                // The new key is durable before a record needs it. Whatever is there was never used, or has been confirmed.
                let _ = std::fs::remove_file(next(&path));
                write(&next(&path), &key).map_err(|cause| {
                    Failure::new(Code::StoreFailed, format!("{}: {cause}", next(&path).display()))
                })?;
                (key, Some(path))
            }
        };
        let purpose = Purpose {
            when_held: WhenHeld::Refuse,
            at_least: Level::Warn,
            lasting: false,
            starts_servers: false,
        };
        let count = block_on(async {
            let runtime = Runtime::build(settings, purpose)?;
            let count = runtime.vault.rekey(&key).await.map_err(Failure::from);
            runtime.close().await;
            count
        })?;
        if let Some(path) = file {
            std::fs::rename(next(&path), &path)
                .map_err(|cause| Failure::new(Code::StoreFailed, format!("{}: {cause}", path.display())))?;
        }
        match shell.terminal.json {
            true => shell.terminal.value(&json!({"records": count})),
            false => shell.terminal.data(&format!("{count} records are encrypted with the new key")),
        }
        Ok(())
    }

    fn location(&self, shell: &Shell) -> Option<KeyLocation> {
        if let Some(name) = &self.new_env {
            let value = shell.environment.get(name).filter(|value| !value.is_empty()).map(SecretText::new);
            return Some(KeyLocation::Variable { name: name.clone(), value });
        }
        let words = |command: &String| command.split_whitespace().map(str::to_owned).collect();
        self.new_file
            .clone()
            .map(KeyLocation::File)
            .or_else(|| self.new_command.as_ref().map(words).map(KeyLocation::Command))
    }
}
