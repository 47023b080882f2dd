//! `orchestr8 config show|check|explain`: every setting, its value and where it came from; whether all is well; what is what.

use clap::Subcommand;
use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::Shell;
use crate::config::{Entry, Flags, Loaded, Origin, SETTINGS, Secrecy, Setting, strangers, suggestion};
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
    /// Explain the settings: what each is for and what it may be.
    Explain {
        /// Only those whose key begins like this.
        key: Option<String>,
        /// As the table in docs/guide/configuration.md.
        #[arg(long)]
        markdown: bool,
    },
}

impl Config {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Config::Show { changed } => show(shell, &shell.load(Flags::new())?, *changed),
            Config::Check => check(shell, shell.load(Flags::new())?)?,
            Config::Explain { key, markdown } => {
                return explain(shell, key.as_deref().unwrap_or_default(), *markdown);
            }
        }
        for stranger in strangers(&shell.environment) {
            shell.terminal.warn(&stranger.to_string());
        }
        Ok(())
    }
}

fn show(shell: &Shell, loaded: &Loaded, changed: bool) {
    let entries = loaded.entries.iter().filter(|entry| !changed || entry.origin != Origin::Default);
    let all = entries.map(|entry| (entry, true)).chain(loaded.withheld.iter().map(|entry| (entry, false)));
    if shell.terminal.json {
        let settings: Vec<Value> = all.map(|(entry, in_effect)| describe(entry, in_effect)).collect();
        let trusted = loaded.withheld.is_empty();
        shell.terminal.value(&json!({"file": loaded.file, "trusted": trusted, "settings": settings}));
        return;
    }
    let row = |(entry, in_effect): (&Entry, bool)| {
        let why = if in_effect { "" } else { " (not in effect: the file is not trusted)" };
        [entry.place.to_string(), shown(entry), format!("{}{why}", entry.origin)]
    };
    shell.terminal.data(&columns(&all.map(row).collect::<Vec<[String; 3]>>()));
}

fn describe(entry: &Entry, in_effect: bool) -> Value {
    let (kind, name) = match &entry.origin {
        Origin::Default => ("default", Value::Null),
        Origin::File(path) => ("file", json!(path)),
        Origin::Variable(name) => ("environment", json!(name)),
        Origin::Flag(name) => ("flag", json!(name)),
    };
    let value = if is_hidden(entry) { json!("[REDACTED]") } else { entry.value.clone() };
    json!({
        "key": entry.place.to_string(), "value": value, "origin": {"kind": kind, "name": name},
        "variable": entry.setting.variable(), "about": entry.setting.doc, "inEffect": in_effect,
    })
}

/// A value as it is reviewed: a command line whole, since it is what will run; what is nothing but a secret, not.
pub fn shown_for_review(entry: &Entry) -> String {
    const SECRETS: [&str; 4] = ["sha256", "env", "headers", "keySet"];
    let last = entry.setting.segments().last().unwrap_or_default();
    match &entry.value {
        Value::Object(pairs) if SECRETS.contains(&last) => {
            pairs.keys().map(|name| format!("{name}=[REDACTED]")).collect::<Vec<_>>().join(",")
        }
        _ if SECRETS.contains(&last) => String::from("[REDACTED]"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
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

fn explain(shell: &Shell, beginning: &str, as_markdown: bool) -> Result<(), Failure> {
    let settings: Vec<&Setting> =
        SETTINGS.iter().filter(|setting| setting.key.starts_with(beginning)).collect();
    if settings.is_empty() {
        let failure = Failure::new(Code::NotFound, format!("no setting begins with {beginning}"));
        let near = suggestion(beginning, SETTINGS.iter().map(|setting| setting.key));
        return Err(near.map_or(failure.clone(), |near| failure.hinting(format!("did you mean {near}?"))));
    }
    if as_markdown {
        shell.terminal.data(&markdown(&settings));
    } else if shell.terminal.json {
        let about = |setting: &&Setting| {
            json!({"key": setting.key, "allowed": setting.shape.allowed(), "default": setting.preset.value(),
                   "variable": setting.variable(), "alias": setting.alias, "about": setting.doc})
        };
        shell.terminal.value(&settings.iter().map(about).collect());
    } else {
        let about = |setting: &&Setting| {
            let variables: Vec<String> = setting.variables().collect();
            let variables = if variables.is_empty() { String::from("-") } else { variables.join(", ") };
            format!(
                "{}\n  {}\n  allowed:  {}\n  default:  {}\n  variable: {variables}\n",
                setting.key,
                setting.doc,
                setting.shape.allowed(),
                shown_default(setting)
            )
        };
        shell.terminal.data(&settings.iter().map(about).collect::<Vec<_>>().join("\n"));
    }
    Ok(())
}

/// The table of settings in the guide; a test keeps it equal to this.
pub fn markdown(settings: &[&Setting]) -> String {
    let mut page = String::from("| setting | default | meaning and allowed values |\n|---|---|---|\n");
    for setting in settings {
        let default = match shown_default(setting).as_str() {
            "-" => String::from("-"),
            default => format!("`{default}`"),
        };
        let allowed = setting.shape.allowed().replace('|', "\\|");
        page.push_str(&format!("| `{}` | {default} | {} Must be {allowed}. |\n", setting.key, setting.doc));
    }
    page
}

fn shown_default(setting: &Setting) -> String {
    match setting.preset.value() {
        None => String::from("required"),
        Some(Value::Null) => String::from("-"),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
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
