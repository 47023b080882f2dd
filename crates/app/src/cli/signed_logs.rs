//! The signed heads of a data file, as commands use them: to verify, to export, to show the key, to accept data as it is.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_contract::canonical::{self, hex};
use orchestr8_kernel::Log;
use orchestr8_kernel::audit::CHAIN;
use orchestr8_kernel::ports::store::{Batch, Cell, Error, Link, Store as _};
use orchestr8_kernel::ports::{Clock, Ids, clock, ids};
use orchestr8_stores::merkle::{LogPiece, PrunedSet};
use orchestr8_stores::sqlite::{self, Look, Options};
use orchestr8_tlog::anchor::AnchorBoard;
use orchestr8_tlog::{
    HeadEvent, HeadFile, LogKey, LogPublicKey, LogVerification, RecorderSettings, TreeHead,
};
use serde_json::{Value, json};

use super::{Shell, witnessed_heads, workspace_trails};
use crate::config::Flags;
use crate::failure::Failure;
use crate::runtime::transparency;
use crate::settings::{AuditSettings, KeySource, Mode, Place, Settings};
use crate::tables;

/// What is trusted instead of the settings of this installation.
#[derive(Args, Default)]
pub struct Trusted {
    /// A file of signed heads that was kept elsewhere.
    #[arg(long, value_name = "FILE")]
    heads: Option<PathBuf>,
    /// The public key that verifies them, as `audit key` prints it.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// Signed heads and what verifies them.
pub struct SignedLogs {
    origin: String,
    file: Option<HeadFile>,
    key: Option<LogPublicKey>,
    heads: Vec<TreeHead>,
    /// Witnesses that did not answer.
    silent: Vec<String>,
}

/// Logs that agree with their heads.
pub struct AgreedLogs {
    found: LogVerification,
    heads: usize,
}

impl SignedLogs {
    /// The heads of this machine alone.
    pub fn local(shell: &Shell, data_dir: Option<PathBuf>) -> Result<Self, Failure> {
        let settings = shell.settings(Flags::new(), Mode { data_dir, ..Mode::default() })?;
        Self::with(&settings.audit, &Trusted::default())
    }

    /// Takes in the heads that the witnesses remember, where they answer: one that is named must.
    pub fn with_witnesses(mut self, audit: &AuditSettings, named: Option<&str>) -> Result<Self, Failure> {
        if let Some(key) = &self.key {
            let found = witnessed_heads::ask(audit, named, key)?;
            self.heads.extend(found.heads);
            self.silent = found.silent;
        }
        Ok(self)
    }

    /// The witnesses that did not answer, and why.
    pub fn silent_witnesses(&self) -> &[String] {
        &self.silent
    }

    pub fn with(audit: &AuditSettings, trusted: &Trusted) -> Result<Self, Failure> {
        let key = match &trusted.key {
            Some(text) => Some(LogPublicKey::parse(text).ok_or_else(|| {
                Failure::new(Code::InvalidArgument, "--key is not a public key of a log")
                    .hinting("`orchestr8 audit key` prints it")
            })?),
            None => own_key(audit)?,
        };
        let file = trusted.heads.clone().map(HeadFile::new).or_else(|| audit.head_file.clone());
        let heads = match (&file, &key) {
            (Some(file), Some(key)) => {
                file.heads(key).map_err(|error| transparency::failure(&error.into()))?
            }
            (Some(_) | None, _) => Vec::new(),
        };
        Ok(Self { origin: audit.origin.clone(), file, key, heads, silent: Vec::new() })
    }

    /// Compares all rows with the heads.
    pub fn check(&self, path: &Path, look: &Look) -> Result<AgreedLogs, Failure> {
        let (Some(file), Some(key)) = (&self.file, &self.key) else {
            return Ok(AgreedLogs { found: LogVerification::default(), heads: 0 });
        };
        let found = orchestr8_tlog::verify(look, &tables::LOGS, &self.heads, file, &self.origin, key)
            .map_err(|error| {
                Failure::new(Code::StoreFailed, error.to_string()).hinting("see `orchestr8 doctor`")
            })?;
        match &found.difference {
            None => Ok(AgreedLogs { heads: found.heads(), found }),
            Some(difference) => {
                Err(Failure::new(Code::StoreCorrupt, format!("{}: {difference}", path.display()))
                    .hinting("entries before it hold; compare with a backup to see what was changed"))
            }
        }
    }

    /// The newest head of a log that covers an entry, with its note.
    pub fn covering(&self, log: &str, number: u64) -> Option<&TreeHead> {
        self.heads.iter().rev().find(|head| head.log() == log && head.size >= number)
    }

    pub fn key(&self) -> Option<&LogPublicKey> {
        self.key.as_ref()
    }

    /// The note of a head as the file has it.
    pub fn note_of(&self, head: &TreeHead) -> Option<String> {
        let key = self.key.as_ref()?;
        let text = std::fs::read_to_string(self.file.as_ref()?.path()).ok()?;
        let notes = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut notes = notes.flat_map(|line| line["heads"].as_array().cloned().unwrap_or_default());
        notes.find_map(|note| {
            let note = note.as_str()?.to_owned();
            (TreeHead::open(&note, key).as_ref() == Ok(head)).then_some(note)
        })
    }

    /// Anchors that do not have the newest head.
    pub fn failing_anchors(&self) -> BTreeMap<String, String> {
        let status =
            self.file.as_ref().map(|file| AnchorBoard::read(&file.status_path())).unwrap_or_default();
        status.into_iter().filter_map(|(anchor, status)| Some((anchor, status.error?))).collect()
    }
}

impl AgreedLogs {
    pub fn is_signed(&self) -> bool {
        self.heads > 0
            || self.found.reports.iter().all(|report| report.size == 0) && !self.found.reports.is_empty()
    }

    pub fn to_json(&self) -> Value {
        let log = |report: &orchestr8_stores::merkle::LogReport| {
            json!({
                "log": report.log, "entries": report.size, "pruned": report.pruned, "root": hex(&report.root),
                "heads": report.heads,
            })
        };
        json!({"heads": self.heads, "logs": self.found.reports.iter().map(log).collect::<Vec<_>>()})
    }
}

impl fmt::Display for AgreedLogs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_signed() {
            return write!(out, "not signed: there is no signed head to compare with");
        }
        let logs =
            self.found.reports.iter().map(|report| format!("{} with {} entries", report.log, report.size));
        write!(out, "signed: {}; {} heads agree", logs.collect::<Vec<_>>().join(", "), self.heads)
    }
}

/// The key of this installation, if there is one yet.
fn own_key(audit: &AuditSettings) -> Result<Option<LogPublicKey>, Failure> {
    match &audit.key {
        KeySource::None => Ok(None),
        KeySource::Given(key) => Ok(Some(key.public().clone())),
        KeySource::Command(command) => Ok(Some(transparency::key_of_command(command)?.public().clone())),
        KeySource::File { path, .. } if !path.exists() => Ok(None),
        KeySource::File { path, .. } => {
            let text = crate::settings::read_private("audit.keyFile", path)?;
            let wrong =
                || Failure::new(Code::Configuration, format!("{} does not hold a key", path.display()));
            Ok(Some(LogKey::parse(&text).ok_or_else(wrong)?.public().clone()))
        }
    }
}

/// `audit key`.
pub fn show_key(shell: &Shell, data_dir: Option<PathBuf>) -> Result<(), Failure> {
    let logs = SignedLogs::local(shell, data_dir)?;
    let Some(key) = &logs.key else {
        return Err(Failure::new(Code::NotFound, "there is no key yet")
            .hinting("it is made when orchestr8 first runs"));
    };
    let heads = logs.file.as_ref().map(|file| file.path().to_owned());
    if shell.terminal.json {
        shell.terminal.value(&json!({"key": key.to_string(), "heads": heads, "origin": logs.origin}));
    } else {
        shell.terminal.data(&key.to_string());
        if let Some(heads) = heads {
            shell.terminal.note(&format!("signed heads are in {}", heads.display()));
        }
    }
    Ok(())
}

/// `audit export --all`: one JSON object a line.
pub fn export(
    shell: &Shell,
    data_dir: Option<PathBuf>,
    path: &Path,
    look: &Look,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let signed = SignedLogs::local(shell, data_dir)?;
    let failed =
        |error: Error| Failure::new(Code::StoreFailed, error.to_string()).hinting("see `orchestr8 doctor`");
    let first = json!({"format": "orchestr8-log/1", "origin": signed.origin});
    let mut write = |value: &Value| writeln!(out, "{value}").map_err(|error| Error::Full(error.to_string()));
    write(&first).map_err(failed)?;
    for source in &tables::LOGS {
        let difference = look.export_log(source, &mut |piece| {
            let mut line = match piece {
                LogPiece::Entry { number, values, .. } => entry_json(number, &values, source.chain, look)?,
                LogPiece::Pruned { number, level, hash } => {
                    json!({"number": number, "level": level, "subtree": hex(&hash)})
                }
            };
            line["log"] = source.name.into();
            write(&line)
        });
        if let Some(difference) = difference.map_err(failed)? {
            return Err(Failure::new(Code::StoreCorrupt, format!("{}: {difference}", path.display()))
                .hinting("see `orchestr8 audit verify`"));
        }
        if let Some(note) = look.pruned_note(source).map_err(failed)? {
            write(&json!({"log": source.name, "prunedNote": note})).map_err(failed)?;
        }
    }
    Ok(())
}

/// An entry as the independent verifier reads it. Of the audit trail also the line, whose hash is the leaf.
pub fn entry_json(number: u64, values: &[Cell], chain: Option<&str>, look: &Look) -> Result<Value, Error> {
    let value = |cell: &Cell| match cell {
        Cell::Null => Value::Null,
        Cell::Int(int) => (*int).into(),
        Cell::Real(real) => json!({"real": real}),
        Cell::Text(text) => (**text).into(),
        Cell::Blob(blob) => json!({"blob": hex(blob)}),
    };
    let mut entry = json!({"number": number, "values": values.iter().map(value).collect::<Vec<_>>()});
    if let Some(chain) = chain {
        let lines = look.lines(chain, number.cast_signed() - 1, 1)?;
        entry["line"] = lines.first().map(|(_, line)| String::from_utf8_lossy(line).into_owned()).into();
    }
    Ok(entry)
}

/// `audit accept`.
#[derive(Args)]
pub struct Accept {
    /// The folder of the data. No server may use it.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Why the data is to be used as it is. It stands in the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Go on with the trail of this governed workspace, instead of the server's own. A server may run meanwhile.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl Accept {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        if let Some(workspace) = &self.workspace {
            return workspace_trails::accept(shell, self.data_dir.clone(), workspace, &self.reason);
        }
        let mode = Mode { data_dir: self.data_dir.clone(), ..Mode::default() };
        let settings = shell.settings(Flags::new(), mode)?;
        let (clock, ids): (Arc<dyn Clock>, Arc<dyn Ids>) =
            (Arc::new(clock::Real::new()), Arc::new(ids::Random));
        let Some(recorder) = transparency::recorder_settings(&settings, &ids, &Log::off())? else {
            return Err(Failure::new(Code::Configuration, "there is no key that could sign")
                .hinting("set audit.keyFile"));
        };
        let heads = crate::runtime::block_on(accept(&settings, &recorder, &self.reason, clock.now_ms()))?;
        if shell.terminal.json {
            let sizes: BTreeMap<&str, u64> = heads.iter().map(|head| (head.log(), head.size)).collect();
            shell.terminal.value(&json!({"ok": true, "logs": sizes}));
        } else {
            let logs = heads.iter().map(|head| format!("{} with {} entries", head.log(), head.size));
            shell.terminal.data(&format!("accepted: {}", logs.collect::<Vec<_>>().join(", ")));
        }
        Ok(())
    }
}

/// Begins the logs with the rows that are there, says so in the audit trail, and signs heads that earlier ones no longer bind.
async fn accept(
    settings: &Settings,
    recorder: &RecorderSettings,
    reason: &str,
    at_ms: i64,
) -> Result<Vec<TreeHead>, Failure> {
    let Place::File { path, .. } = &settings.store.place else {
        return Err(Failure::new(Code::NotFound, "there is no data file"));
    };
    let options = Options {
        key: crate::runtime::store::key(&settings.store)?,
        logs: tables::LOGS.to_vec(),
        adopt_logs: true,
        ..Options::new(sqlite::Place::File(path.clone()), tables::migrations())
    };
    let store = sqlite::open(options).map_err(crate::runtime::store::failure)?;
    let failed =
        |error: Error| Failure::new(Code::StoreFailed, error.to_string()).hinting("see `orchestr8 doctor`");
    let mut batch = Batch::new();
    for source in &tables::LOGS {
        let set = PrunedSet::load(&store, source).await.map_err(failed)?;
        let origin = format!("{}/{}", recorder.origin, source.name);
        let sign = |digest| orchestr8_tlog::head::sign_pruned(&origin, digest, at_ms, &recorder.key);
        batch.then(set.note(source, &sign));
    }
    let body = json!({
        "tool_name": "audit.accept", "action": "audit.accept", "result": "success", "end": "success",
        "principal": "operator", "tenant": orchestr8_contract::id::Tenant::local(),
        "timestamp": clock::iso(at_ms), "cause": reason,
    });
    batch.link(Link { chain: CHAIN.into(), at_ms, body: canonical::text(&body) });
    store.commit(batch).await.map_err(failed)?;
    let states = store.seal_logs().await.map_err(failed)?;
    let heads: Vec<TreeHead> = states
        .iter()
        .map(|state| TreeHead {
            origin: format!("{}/{}", recorder.origin, state.log),
            size: state.size,
            root: state.root,
            at_ms,
            event: HeadEvent::Accepted,
        })
        .collect();
    let notes = heads.iter().map(|head| head.sign(&recorder.key)).collect();
    let written = states
        .iter()
        .try_for_each(|state| recorder.file.clear_fingerprints(state.log))
        .and_then(|()| recorder.file.append(notes));
    store.close().await;
    written.map_err(|cause| {
        Failure::new(Code::StoreFailed, format!("{}: {cause}", recorder.file.path().display()))
            .hinting("check space and permissions")
    })?;
    Ok(heads)
}
