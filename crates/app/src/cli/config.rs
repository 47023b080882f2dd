//! `orchestr8 config show|check`: every setting, its value and where it came from; or only whether all is well.

use clap::Subcommand;
use serde_json::{Value, json};

use super::Shell;
use crate::config::{Entry, Flags, Loaded, Origin, Secrecy, strangers};
use crate::failure::Failure;
use crate::settings::{Mode, Settings};
use crate::terminal::columns;

#[derive(Subcommand)]
pub enum Config {
    /// Print every setting, its value and where it came from.
    Show {
        /// Only what differs from the defaults.
        #[arg(long)]
        changed: bool,
    },
    /// Check the configuration and say what is wrong with it.
    Check,
}

impl Config {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let loaded = shell.load(Flags::new())?;
        match self {
            Config::Show { changed } => show(shell, &loaded, *changed),
            Config::Check => check(shell, loaded)?,
        }
        for (name, meant) in strangers(&shell.environment) {
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            shell.terminal.warn(&format!("the environment variable {name} is not a setting{meant}"));
        }
        Ok(())
    }
}

fn show(shell: &Shell, loaded: &Loaded, changed: bool) {
    let entries = loaded.entries.iter().filter(|entry| !changed || entry.origin != Origin::Default);
    if shell.terminal.json {
        let settings: Vec<Value> = entries.map(describe).collect();
        shell.terminal.value(&json!({"file": loaded.file, "settings": settings}));
        return;
    }
    let rows: Vec<[String; 3]> =
        entries.map(|entry| [entry.place.to_string(), shown(entry), entry.origin.to_string()]).collect();
    shell.terminal.data(&columns(&rows));
}

fn describe(entry: &Entry) -> Value {
    let (kind, name) = match &entry.origin {
        Origin::Default => ("default", Value::Null),
        Origin::File(path) => ("file", json!(path)),
        Origin::Variable(name) => ("environment", json!(name)),
        Origin::Flag(name) => ("flag", json!(name)),
    };
    let value = if is_hidden(entry) { json!("[REDACTED]") } else { entry.value.clone() };
    json!({
        "key": entry.place.to_string(), "value": value, "origin": {"kind": kind, "name": name},
        "variable": entry.setting.variable(), "about": entry.setting.doc,
    })
}

fn shown(entry: &Entry) -> String {
    match &entry.value {
        Value::Null => String::from("-"),
        _ if is_hidden(entry) => String::from("[REDACTED]"),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => String::from("[]"),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Secrets that were given; a default is no secret.
fn is_hidden(entry: &Entry) -> bool {
    entry.setting.secrecy == Secrecy::Secret && entry.origin != Origin::Default
}

fn check(shell: &Shell, loaded: Loaded) -> Result<(), Failure> {
    let file = loaded.file.clone();
    let changed = loaded.entries.iter().filter(|entry| entry.origin != Origin::Default).count();
    Settings::new(loaded, Mode::default(), &shell.environment)?;
    if shell.terminal.json {
        shell.terminal.value(&json!({"ok": true, "file": file, "changed": changed}));
    } else {
        let from = file.map_or_else(|| String::from("no file"), |file| file.display().to_string());
        shell.terminal.data(&format!("ok: {changed} settings differ from the defaults ({from})"));
    }
    Ok(())
}
