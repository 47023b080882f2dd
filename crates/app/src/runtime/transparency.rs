//! Signed heads of the audit log: the key, the comparison at the start, and what to say when it fails.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_kernel::Log;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::{Clock, Ids};
use orchestr8_stores::Sqlite;
use orchestr8_tlog::witness::compare_with_witnesses;
use orchestr8_tlog::{HeadRecorder, LogKey, RecorderSettings, WitnessProblem, head_file, recorder};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::settings::{KeySource, Settings};
use crate::tables;

/// Compares the store with the newest head, and begins to make heads. None where there is no key and none was asked for.
pub fn start(
    settings: &Settings,
    store: &Sqlite,
    (clock, ids): (&Arc<dyn Clock>, &Arc<dyn Ids>),
    log: &Log,
    stop: &CancellationToken,
) -> Result<Option<HeadRecorder>, Failure> {
    let Some(recorder) = recorder_settings(settings, ids, log)? else { return Ok(None) };
    warn_without_heads(store, &recorder, log);
    let asked = ask_witnesses(store, &recorder, log);
    match asked.and_then(|()| HeadRecorder::start(store, recorder, clock.clone(), log.clone(), stop.clone()))
    {
        Ok(heads) => Ok(Some(heads)),
        Err(error) => {
            log.error("the data must not be used as it is", json!({"cause": error.to_string()}));
            Err(failure(&error))
        }
    }
}

/// Heads that are gone cannot be told from a data directory that came from another machine, so this is said and not refused.
fn warn_without_heads(store: &Sqlite, settings: &RecorderSettings, log: &Log) {
    let has_entries = store.log_heads().is_ok_and(|heads| heads.iter().any(|(_, size, _)| *size > 0));
    if has_entries && !settings.file.path().exists() {
        let fields = json!({"file": settings.file.path()});
        log.warn("there is no signed head of the audit log; the data was not compared with one", fields);
    }
}

/// Compares the store with what the witnesses remember. It cannot wait elsewhere: nothing may be written before it.
fn ask_witnesses(store: &Sqlite, settings: &RecorderSettings, log: &Log) -> Result<(), recorder::Error> {
    if settings.witnesses.witnesses.is_empty() {
        return Ok(());
    }
    let asking = compare_with_witnesses(store, settings);
    let silent = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(asking))?;
    for (witness, cause) in silent {
        let fields = json!({"witness": witness, "cause": cause.to_string()});
        log.warn("a witness of the audit log did not answer; the data was not compared with it", fields);
    }
    Ok(())
}

/// The key that a program prints.
pub fn key_of_command(command: &[String]) -> Result<LogKey, Failure> {
    let text = super::secrets::print(command)
        .map_err(|what| Failure::new(Code::Configuration, format!("audit.keyCommand {what}")))?;
    LogKey::parse(&text).ok_or_else(|| {
        Failure::new(Code::Configuration, "audit.keyCommand does not print a key of a log")
            .hinting("see docs/guide/operations.md#audit")
    })
}

/// What heads are made with, with a key that is made if there is none yet.
pub fn recorder_settings(
    settings: &Settings,
    ids: &Arc<dyn Ids>,
    log: &Log,
) -> Result<Option<RecorderSettings>, Failure> {
    let audit = &settings.audit;
    let Some(file) = audit.head_file.clone() else {
        log.warn("heads of the audit log are not signed: there is no place for them; set audit.keyFile", ());
        return Ok(None);
    };
    let key = match &audit.key {
        KeySource::Given(key) => (**key).clone(),
        KeySource::None => {
            log.warn(
                "heads of the audit log are not signed: there is no place for a key; set audit.keyFile",
                (),
            );
            return Ok(None);
        }
        KeySource::Command(command) => key_of_command(command)?,
        KeySource::File { path, explicit } => match LogKey::load_or_create(path, || seed(ids)) {
            Ok(key) => key,
            Err(cause) if *explicit || path.exists() => {
                return Err(Failure::new(
                    Code::Configuration,
                    format!("audit.keyFile: {}: {cause}", path.display()),
                )
                .hinting("name a file that only this user can read, or one that can be made"));
            }
            Err(cause) => {
                let fields = json!({"path": path, "cause": cause.to_string()});
                log.warn(
                    "heads of the audit log are not signed: a key cannot be made; set audit.keyFile",
                    fields,
                );
                return Ok(None);
            }
        },
    };
    Ok(Some(RecorderSettings {
        key,
        file,
        anchors: audit.anchors.clone(),
        origin: audit.origin.clone(),
        every: audit.every,
        every_entries: audit.every_entries,
        witnesses: audit.witnesses.clone(),
        sources: tables::LOGS.to_vec(),
    }))
}

/// Why the store is not used, as people are told.
pub fn failure(error: &recorder::Error) -> Failure {
    const ACCEPT: &str = "find out what happened with `orchestr8 audit verify`; then restore the data, or go on with it as it is \
                          with `orchestr8 audit accept --reason TEXT`";
    let (code, hint) = match error {
        recorder::Error::Tampered { .. } => (Code::StoreCorrupt, ACCEPT),
        recorder::Error::Rewound { .. } => (
            Code::StoreCorrupt,
            "an old copy of the data was put back, or the data was changed; after a planned restore let the witness forget the log \
             with `orchestr8 witness forget`",
        ),
        recorder::Error::Witness { cause: WitnessProblem::Forged(_), .. } => (
            Code::StoreCorrupt,
            "the key of the log was changed, or the witness is not to be trusted; see `orchestr8 witness list` there",
        ),
        recorder::Error::Witness { .. } => {
            (Code::Unavailable, "audit.requireWitness is set: see that the witness runs and knows the token")
        }
        recorder::Error::Heads(head_file::Error::Note { .. }) => (
            Code::StoreCorrupt,
            "use the key that signed it; after a planned change of the key run `orchestr8 audit accept --reason TEXT`",
        ),
        recorder::Error::Heads(head_file::Error::Io { .. }) | recorder::Error::Write { .. } => {
            (Code::StoreFailed, "check space and permissions, or name another file with audit.anchors")
        }
        recorder::Error::Store(_) => (Code::StoreFailed, "see `orchestr8 doctor`"),
    };
    Failure::new(code, error.to_string()).hinting(hint)
}

/// More random bits than a key has use for, hashed to its length.
fn seed(ids: &Arc<dyn Ids>) -> [u8; 32] {
    let mut seed = Sha256::new();
    for _ in 0..3 {
        seed.update(ids.fresh(For::Record).as_bytes());
    }
    seed.finalize().into()
}
