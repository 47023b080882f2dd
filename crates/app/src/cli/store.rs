//! `orchestr8 store encrypt|decrypt|rekey`: the encryption of the data file. The server must not run.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use orchestr8_contract::Code;
use orchestr8_secrets::SecretText;
use orchestr8_stores::sqlite::conversion::{self, ConversionReport};
use orchestr8_stores::sqlite::{self, EncryptionKey};
use serde_json::json;

use super::Shell;
use super::confirm::confirm;
use crate::config::Flags;
use crate::failure::Failure;
use crate::runtime::store::{failure, key, key_at};
use crate::settings::{KeyLocation, Mode, Place};

#[derive(Subcommand)]
pub enum Store {
    /// Encrypt the data file with the key that store.key names.
    Encrypt(Conversion),
    /// Write the encrypted data file as a plain one; then remove store.key.
    Decrypt(Conversion),
    /// Replace the key of the encrypted data file; then change store.key.
    Rekey(Box<Rekey>),
}

#[derive(Args)]
pub struct Conversion {
    /// The folder of the data.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

#[derive(Args)]
pub struct Rekey {
    /// The environment variable with the new key.
    #[arg(long, value_name = "VARIABLE", conflicts_with_all = ["new_file", "new_command"])]
    new_env: Option<String>,
    /// The file with the new key.
    #[arg(long, value_name = "FILE", conflicts_with = "new_command")]
    new_file: Option<PathBuf>,
    /// A program that prints the new key, and its arguments, separated by blanks.
    #[arg(long, value_name = "COMMAND")]
    new_command: Option<String>,
    #[command(flatten)]
    conversion: Conversion,
}

impl Store {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Store::Encrypt(conversion) => conversion.encrypt(shell),
            Store::Decrypt(conversion) => conversion.decrypt(shell),
            Store::Rekey(rekey) => rekey.run(shell),
        }
    }
}

impl Conversion {
    fn encrypt(&self, shell: &Shell) -> Result<(), Failure> {
        let (path, key) = self.target(shell)?;
        let plan = format!("{} is replaced by an encrypted copy", path.display());
        confirm(shell, self.yes, &plan)?;
        let report = conversion::encrypt(&path, &key).map_err(|error| match error {
            sqlite::Error::KeyMissing { path } => {
                Failure::new(Code::StateConflict, format!("{} is encrypted already", path.display()))
                    .hinting("there is nothing to do; `orchestr8 store rekey` changes its key")
            }
            other => failure(other),
        })?;
        tell(shell, &path, report, "encrypted");
        shell.terminal.warn(
            "the old blocks of the plain file may still be on the disk, and earlier backups are not encrypted; delete those, and erase free space or the disk if that matters",
        );
        Ok(())
    }

    fn decrypt(&self, shell: &Shell) -> Result<(), Failure> {
        let (path, key) = self.target(shell)?;
        let plan = format!("{} is replaced by a copy that is not encrypted", path.display());
        confirm(shell, self.yes, &plan)?;
        let report = conversion::decrypt(&path, &key).map_err(|error| match error {
            sqlite::Error::NotEncrypted { path } => {
                Failure::new(Code::StateConflict, format!("{} is not encrypted", path.display()))
                    .hinting("there is nothing to do; remove store.key")
            }
            other => failure(other),
        })?;
        tell(shell, &path, report, "decrypted");
        shell.terminal.note("remove store.key from the settings: a plain data file is not opened with a key");
        Ok(())
    }

    /// The data file and the configured key.
    fn target(&self, shell: &Shell) -> Result<(PathBuf, EncryptionKey), Failure> {
        let mode = Mode { data_dir: self.data_dir.clone(), ..Mode::default() };
        let store = shell.settings(Flags::new(), mode)?.store;
        let Some(key) = key(&store)? else {
            return Err(Failure::new(Code::Configuration, "no key is configured: store.key is not set")
                .hinting("make one with `openssl rand -base64 32`, keep it outside the data directory, and name it with store.key.env, store.key.file or store.key.command"));
        };
        match store.place {
            Place::File { path, .. } if path.exists() => Ok((path, key)),
            Place::File { path, .. } => {
                Err(Failure::new(Code::NotFound, format!("there is no data file at {}", path.display()))
                    .hinting("a new one is encrypted when orchestr8 first runs with store.key"))
            }
            Place::Memory => Err(Failure::new(Code::NotFound, "there is no data file")),
        }
    }
}

impl Rekey {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let (path, old) = self.conversion.target(shell)?;
        let Some(location) = self.location(shell) else {
            return Err(Failure::new(Code::InvalidArgument, "say where the new key is")
                .hinting("give --new-env, --new-file or --new-command; then change store.key"));
        };
        let new = key_at(&location)?;
        let plan = format!("the old key does not open {} afterwards", path.display());
        confirm(shell, self.conversion.yes, &plan)?;
        conversion::rekey(&path, &old, &new).map_err(failure)?;
        match shell.terminal.json {
            true => shell.terminal.value(&json!({"path": path, "rekeyed": true})),
            false => shell.terminal.data(&format!("{} has a new key", path.display())),
        }
        shell.terminal.note("change store.key now; backups that were made before need the old key");
        Ok(())
    }

    fn location(&self, shell: &Shell) -> Option<KeyLocation> {
        if let Some(name) = &self.new_env {
            let value = shell.environment.get(name).filter(|value| !value.is_empty()).map(SecretText::new);
            return Some(KeyLocation::Variable { name: name.clone(), value });
        }
        let words = |command: &String| command.split_whitespace().map(str::to_owned).collect();
        let file = self.new_file.clone().map(KeyLocation::File);
        file.or_else(|| self.new_command.as_ref().map(words).map(KeyLocation::Command))
    }
}

fn tell(shell: &Shell, path: &std::path::Path, report: ConversionReport, done: &str) {
    let ConversionReport { tables, rows, bytes } = report;
    match shell.terminal.json {
        true => shell.terminal.value(&json!({"path": path, "tables": tables, "rows": rows, "bytes": bytes})),
        false => shell.terminal.data(&format!(
            "{} is {done}: {rows} rows in {tables} tables, each compared with the original",
            path.display()
        )),
    }
}
