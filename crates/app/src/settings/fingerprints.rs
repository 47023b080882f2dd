//! Hashes of the settings in force, by which two processes on one data directory find out where they differ without telling each
//! other what they say.

use std::collections::BTreeMap;

use orchestr8_contract::canonical;

use crate::config::{Entry, Origin};

/// What every connection has for itself, what only a server has, and where the data is.
const OWN: [&str; 10] = [
    "server.",
    "tools.filter",
    "tools.maxResultBytes",
    "protocol.",
    "logging.",
    "http.",
    "auth.",
    "store.",
    "sessions.port",
    "knowledge.pubsub.",
];

/// A hash of each setting that is not at its default and acts on all who share the data.
pub fn of(entries: &[Entry]) -> BTreeMap<String, String> {
    let shared = entries.iter().filter(|entry| !matches!(entry.origin, Origin::Default));
    let named = shared.map(|entry| (entry.place.to_string(), canonical::sha256_hex(&entry.value)));
    named.filter(|(name, _)| !OWN.iter().any(|own| name.starts_with(own))).collect()
}
