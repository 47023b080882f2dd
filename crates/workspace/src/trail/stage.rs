//! Entries of writes that are not done yet, and the search for those that never were: what a killed server left.

use orchestr8_contract::{Envelope, canonical};
use serde_json::{Value, json};

use super::{Change, Error, Record, tail};
use crate::limits;
use crate::root::Root;

/// How far a write has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteStage {
    /// It is allowed, and its commands are about to run. Nothing is changed yet.
    Intent,
    /// Its commands succeeded; the file is about to be put in its place.
    Verified,
}

impl WriteStage {
    const ALL: [Self; 2] = [Self::Intent, Self::Verified];

    /// The `result` of its entry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Verified => "verified",
        }
    }
}

/// A write of which the trail has no outcome.
#[derive(Debug, Clone)]
pub struct OpenWrite {
    pub intent: Record,
    pub change: Change,
    pub is_verified: bool,
}

impl Record {
    /// Of a write at a stage before its outcome.
    pub fn stage(of: &Envelope, args_hash: String, stage: WriteStage, change: Change) -> Self {
        Self {
            result: stage.as_str().to_owned(),
            result_hash: canonical::sha256_hex(&json!(change)),
            error_code: None,
            change: Some(change),
            ..Self::of(of, args_hash)
        }
    }

    /// None: it is the outcome of a call.
    pub fn write_stage(&self) -> Option<WriteStage> {
        WriteStage::ALL.into_iter().find(|stage| stage.as_str() == self.result)
    }
}

/// The writes among the newest entries that have no outcome, the oldest first. While a turn to write is held, they have none
/// because their server ended.
pub fn open_writes(root: &Root) -> Result<Vec<OpenWrite>, Error> {
    let mut open: Vec<OpenWrite> = Vec::new();
    for line in tail(root, limits::RECOVERY_ENTRIES)? {
        let Ok(record) = serde_json::from_str::<Record>(&line) else { continue };
        let is_same = |write: &OpenWrite| {
            let intent = &write.intent;
            (&intent.tool_name, &intent.session_id, &intent.args_hash)
                == (&record.tool_name, &record.session_id, &record.args_hash)
        };
        match (record.write_stage(), record.change.clone()) {
            (Some(WriteStage::Intent), Some(change)) => {
                open.push(OpenWrite { intent: record, change, is_verified: false });
            }
            (Some(WriteStage::Verified), _) => {
                if let Some(write) = open.iter_mut().find(|write| is_same(write)) {
                    write.is_verified = true;
                }
            }
            (Some(WriteStage::Intent) | None, _) => {
                if let Some(at) = open.iter().position(is_same) {
                    open.remove(at);
                }
            }
        }
    }
    Ok(open)
}

impl OpenWrite {
    /// The outcome that is recorded later, with what was found out about it.
    pub fn outcome(self, timestamp: String, is_in_place: bool, cause: Value) -> Record {
        let Self { intent, change, .. } = self;
        let found = json!({"recovered": true, "in_place": is_in_place});
        Record {
            result: String::from(if is_in_place { "success" } else { "failure" }),
            result_hash: canonical::sha256_hex(&found),
            error_code: (!is_in_place).then_some(orchestr8_contract::Code::UnknownToolFailure),
            change: is_in_place.then_some(change),
            cause,
            timestamp,
            ..intent
        }
    }
}
