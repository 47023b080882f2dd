//! `orchestr8 trust`: makes the configuration of a folder count, after it was reviewed.

use std::path::{Path, PathBuf};

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::{Real, iso};
use serde_json::{Value, json};

use super::Shell;
use super::config::shown_for_review;
use crate::config::{ReviewedFile, TrustStore, TrustedFile, review, trusted_place};
use crate::failure::Failure;
use crate::terminal::columns;

#[derive(Args)]
pub struct Trust {
    /// The configuration, or its folder.
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,
    /// Show what the file would do, and trust nothing.
    #[arg(long)]
    dry_run: bool,
    /// List what is trusted.
    #[arg(long, conflicts_with_all = ["path", "dry_run", "revoke"])]
    list: bool,
    /// Trust it no longer.
    #[arg(long, conflicts_with = "dry_run")]
    revoke: bool,
}

impl Trust {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let store = store(shell)?;
        match (self.list, self.revoke) {
            (true, _) => list(shell, &store),
            (false, true) => revoke(shell, &store, &self.path),
            (false, false) => self.trust(shell, &store),
        }
    }

    fn trust(&self, shell: &Shell, store: &TrustStore) -> Result<(), Failure> {
        let reviewed = review(&self.path, &shell.environment)?;
        let is_trusted = reviewed.is_trusted || !self.dry_run;
        if !self.dry_run {
            record(store, &reviewed.path, &reviewed.sha256)?;
        }
        show(shell, &reviewed, is_trusted);
        Ok(())
    }
}

/// Trusts a file that this program has written itself.
pub fn trust_written(shell: &Shell, path: &Path, content: &str) -> Result<(), Failure> {
    let Some(store) = TrustStore::of(&shell.environment) else { return Ok(()) };
    record(&store, &trusted_place(path)?, &crate::config::content_hash(content.as_bytes()))
}

fn store(shell: &Shell) -> Result<TrustStore, Failure> {
    TrustStore::of(&shell.environment).ok_or_else(|| {
        Failure::new(Code::Configuration, "there is no place to remember what is trusted: HOME is not set")
            .hinting("set HOME or XDG_STATE_HOME, or name the configuration with --config")
    })
}

fn record(store: &TrustStore, path: &Path, sha256: &str) -> Result<(), Failure> {
    let trusted_at = iso(Real::new().now_ms());
    store.record(TrustedFile { path: path.to_owned(), sha256: sha256.to_owned(), trusted_at })
}

fn show(shell: &Shell, reviewed: &ReviewedFile, is_trusted: bool) {
    let path = reviewed.path.display();
    if shell.terminal.json {
        let settings: Vec<Value> = reviewed
            .guarded
            .iter()
            .map(|entry| json!({"key": entry.place.to_string(), "value": shown_for_review(entry)}))
            .collect();
        shell
            .terminal
            .value(&json!({"path": reviewed.path, "sha256": reviewed.sha256, "trusted": is_trusted,
            "settings": settings}));
        return;
    }
    let rows: Vec<[String; 2]> =
        reviewed.guarded.iter().map(|entry| [entry.place.to_string(), shown_for_review(entry)]).collect();
    if !rows.is_empty() {
        shell.terminal.data(&columns(&rows));
    }
    shell.terminal.note(&match (is_trusted, rows.len()) {
        (_, 0) => format!("{path} has no settings that need trust"),
        (true, _) => format!("{path} is trusted as it is now; a change has to be trusted again"),
        (false, _) => format!("{path} is not trusted; these settings would take effect"),
    });
}

fn list(shell: &Shell, store: &TrustStore) -> Result<(), Failure> {
    let entries = store.list()?;
    let states: Vec<(&TrustedFile, &str)> = entries.iter().map(|entry| (entry, state(entry))).collect();
    if shell.terminal.json {
        let shown = states.iter().map(|(entry, state)| {
            json!({"path": entry.path, "sha256": entry.sha256, "trustedAt": entry.trusted_at, "state": state})
        });
        shell.terminal.value(&json!({"file": store.path(), "trusted": shown.collect::<Vec<_>>()}));
        return Ok(());
    }
    if states.is_empty() {
        shell.terminal.note("no configuration is trusted");
        return Ok(());
    }
    let rows: Vec<[String; 4]> = states
        .iter()
        .map(|(entry, state)| {
            let digits = entry.sha256.get(..12).unwrap_or(&entry.sha256).to_owned();
            [(*state).to_owned(), digits, entry.trusted_at.clone(), entry.path.display().to_string()]
        })
        .collect();
    shell.terminal.data(&columns(&rows));
    Ok(())
}

/// Whether what was trusted is what is there.
fn state(entry: &TrustedFile) -> &'static str {
    match std::fs::read(&entry.path) {
        Ok(content) if crate::config::content_hash(&content) == entry.sha256 => "trusted",
        Ok(_) => "changed",
        Err(_) => "missing",
    }
}

fn revoke(shell: &Shell, store: &TrustStore, path: &Path) -> Result<(), Failure> {
    // The file may be gone; what was trusted in its folder is meant.
    let names = ["orchestr8.json", "orchestr8.toml"];
    let places: Vec<PathBuf> = match path.is_dir() {
        true => names.iter().map(|name| trusted_place(&path.join(name))).collect::<Result<_, _>>()?,
        false => vec![trusted_place(path)?],
    };
    let mut revoked = Vec::new();
    for place in places {
        if store.revoke(&place)? {
            revoked.push(place);
        }
    }
    if revoked.is_empty() {
        return Err(Failure::new(Code::NotFound, format!("nothing is trusted at {}", path.display()))
            .hinting("orchestr8 trust --list shows what is"));
    }
    if shell.terminal.json {
        shell.terminal.value(&json!({"revoked": revoked}));
        return Ok(());
    }
    for place in revoked {
        shell.terminal.data(&format!("{} is no longer trusted", place.display()));
    }
    Ok(())
}
