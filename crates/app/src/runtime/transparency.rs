//! Signed heads of the audit log: the key, the comparison at the start, and what to say when it fails.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_kernel::Log;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::{Clock, Ids};
use orchestr8_stores::Sqlite;
use orchestr8_tlog::{HeadRecorder, LogKey, RecorderSettings, head_file, recorder};
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
    match HeadRecorder::start(store, recorder, clock.clone(), log.clone(), stop.clone()) {
        Ok(heads) => Ok(Some(heads)),
        Err(error) => {
            log.error("the data must not be used as it is", json!({"cause": error.to_string()}));
            Err(failure(&error))
        }
    }
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
        sources: tables::LOGS.to_vec(),
    }))
}

/// Why the store is not used, as people are told.
pub fn failure(error: &recorder::Error) -> Failure {
    const ACCEPT: &str = "find out what happened with `orchestr8 audit verify`; then restore the data, or go on with it as it is \
                          with `orchestr8 audit accept --reason TEXT`";
    let (code, hint) = match error {
        recorder::Error::Tampered { .. } => (Code::StoreCorrupt, ACCEPT),
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
