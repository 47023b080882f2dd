//! Opens the store: where the settings say, or in memory for a command that needs no data when another process owns it.

use std::path::Path;

use orchestr8_contract::Code;
use orchestr8_kernel::Log;
use orchestr8_stores::Sqlite;
use orchestr8_stores::sqlite::{self, EncryptionKey, Look, OnFatal, Options};
use serde_json::json;

use super::secrets::key_text;
use crate::failure::Failure;
use crate::settings::{KeyLocation, Place, STORE_KEY, Settings, Store};
use crate::tables;

/// What to do when another process has the data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenHeld {
    Refuse,
    /// For commands that only look at what the program offers: they have no use for the data, and keep nothing.
    UseMemory,
}

pub struct Opened {
    pub store: Sqlite,
    /// Whether what is acknowledged outlives the process.
    pub durable: bool,
}

pub fn open(
    settings: &Settings,
    when_held: WhenHeld,
    log: &Log,
    on_fatal: OnFatal,
) -> Result<Opened, Failure> {
    let (place, explicit) = match &settings.store.place {
        Place::Memory => (sqlite::Place::Memory, true),
        Place::File { path, explicit } => (sqlite::Place::File(path.clone()), *explicit),
    };
    let durable = place != sqlite::Place::Memory;
    // What ends with the process is on no disk.
    let key = if durable { key(&settings.store)? } else { None };
    let options = |place, key| Options {
        key,
        sync: settings.store.sync,
        pages_max: settings
            .store
            .max_bytes
            .map(|bytes| u32::try_from(bytes / PAGE_BYTES).unwrap_or(u32::MAX)),
        on_fatal: on_fatal.clone(),
        logs: tables::LOGS.to_vec(),
        ..Options::new(place, tables::migrations())
    };
    match sqlite::open(options(place, key)) {
        Ok(store) => Ok(Opened { store, durable }),
        Err(sqlite::Error::Held { path, pid }) if when_held == WhenHeld::UseMemory && !explicit => {
            log.warn(
                "another orchestr8 has the data file; this command does without the data",
                json!({"path": path, "pid": pid}),
            );
            let store = sqlite::open(options(sqlite::Place::Memory, None)).map_err(failure)?;
            Ok(Opened { store, durable: false })
        }
        Err(error) => Err(failure(error)),
    }
}

/// The key of the data file, if the settings say where one is.
pub fn key(store: &Store) -> Result<Option<EncryptionKey>, Failure> {
    store.key.as_ref().map(key_at).transpose()
}

/// The key at a place.
pub fn key_at(location: &KeyLocation) -> Result<EncryptionKey, Failure> {
    let unusable = |what: String| {
        Failure::new(Code::StoreKey, format!("the key of the data file cannot be used: {what}"))
            .hinting("correct store.key; `openssl rand -base64 32` makes a key for a new data file")
    };
    let text = key_text(STORE_KEY, location).map_err(unusable)?;
    EncryptionKey::parse(&text).map_err(|error| unusable(error.to_string()))
}

/// The data file, to look at while a server may use it.
pub fn look(store: &Store, path: &Path) -> Result<Look, Failure> {
    Look::at(path, key(store)?.as_ref()).map_err(failure)
}

/// The page size of our data files.
const PAGE_BYTES: u64 = 8192;

/// Why the store did not open, as people are told.
pub fn failure(error: sqlite::Error) -> Failure {
    let (code, hint) = match &error {
        sqlite::Error::Exposed(exposure) => (Code::Configuration, exposure.mend.as_str()),
        sqlite::Error::Held { .. } => (
            Code::Unavailable,
            "stop that process, or give this one a place of its own with --data-dir DIR or --ephemeral",
        ),
        sqlite::Error::Io { .. } => {
            (Code::StoreFailed, "check that the folder exists, can be written and has room")
        }
        sqlite::Error::Foreign { .. } => {
            (Code::Configuration, "name another data file with --data-dir or store.path")
        }
        sqlite::Error::KeyMissing { .. } => {
            (Code::StoreKey, "name the key with store.key.env, store.key.file or store.key.command")
        }
        sqlite::Error::WrongKey { .. } => (
            Code::StoreKey,
            "give the key that it was encrypted with, or that `orchestr8 store rekey` gave it; nothing was changed",
        ),
        sqlite::Error::NotEncrypted { .. } => {
            (Code::Configuration, "run `orchestr8 store encrypt`, or remove store.key; nothing was changed")
        }
        sqlite::Error::LogDamaged { .. } => (
            Code::StoreCorrupt,
            "restore a backup; to use what is whole before the damage, start once with store.sync = \"normal\"",
        ),
        sqlite::Error::CopyDiffers { .. } => {
            (Code::StoreCorrupt, "the data file is as it was; see `orchestr8 doctor`")
        }
        sqlite::Error::NoLog { .. } => {
            (Code::Configuration, "network file systems cannot be trusted with this; use a local disk")
        }
        sqlite::Error::Migrations(_) | sqlite::Error::Migration { .. } | sqlite::Error::NotStrict(_) => {
            (Code::StoreCorrupt, "nothing was changed; use the version that wrote it, or restore a backup")
        }
        sqlite::Error::Store(_) => (Code::StoreFailed, "see `orchestr8 doctor`"),
    };
    let hint = hint.to_owned();
    let is_data_held = matches!(error, sqlite::Error::Held { .. });
    let failure = Failure::new(code, format!("the store cannot be opened: {error}")).hinting(hint);
    Failure { is_data_held, ..failure }
}
