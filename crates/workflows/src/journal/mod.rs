//! What may stand in the journal of an execution (WF-19.7): everything is hidden but what is allowed, and nothing is long.
//!
//! Pure functions, no store. The common entry is small and all its fields are allowed: it is written once, straight from
//! the value it came as, without a copy in between.

mod fields;
mod look;
mod reason;
mod rules;
mod shorten;
mod write;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;

use orchestr8_contract::canonical;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::definition::model::JournalRules;
use orchestr8_kernel::redact::SecretMask;
use write::{Bounds, Writer};

pub use fields::{ALLOWED_FIELDS, ENGINE_FIELDS};
pub use reason::without_values;

/// The data of an entry, fit to be stored and shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// A JSON object.
    pub data: String,
    /// `{originalSize, truncatedFields, checksum}` as JSON, if something was cut. Size and checksum are those of the data
    /// after it was redacted and before it was cut: a hash of what is hidden would let a short secret be guessed.
    pub truncated: Option<String>,
}

/// Hides, then cuts. Doing it twice changes nothing more.
pub fn prepare(data: impl Borrow<Value>, rules: &JournalRules, secrets: &SecretMask) -> Prepared {
    let data = data.borrow();
    let written = Writer::new(rules, secrets, Bounds::Journal).write(data);
    if written.cut.is_empty() {
        return Prepared { data: written.text, truncated: None };
    }
    let whole = Writer::new(rules, secrets, Bounds::None).write(data).text;
    let truncated = json!({
        "originalSize": whole.len(),
        "truncatedFields": written.cut,
        "checksum": canonical::hex(&Sha256::digest(whole.as_bytes())),
    });
    Prepared { data: written.text, truncated: Some(truncated.to_string()) }
}

/// What stands for an entry when the journal of its execution is full: that there was one, and how large.
pub fn left_out(prepared: &Prepared) -> Prepared {
    let truncated = json!({
        "originalSize": prepared.data.len(),
        "truncatedFields": ["*"],
        "checksum": canonical::hex(&Sha256::digest(prepared.data.as_bytes())),
    });
    Prepared { data: String::from("{}"), truncated: Some(truncated.to_string()) }
}

/// Whether anything of a field at the top of an entry would be shown, so that large values need not be copied for nothing.
pub fn shows(rules: &JournalRules, name: &str) -> bool {
    rules::shown(rules, name, name) != rules::Shown::Not || !rules.rules.is_empty()
}
