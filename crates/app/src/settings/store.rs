//! What the settings of the store mean: where the data is, how safely it is written, how long it is kept, whether it is encrypted.

use std::time::Duration;

use orchestr8_stores::sqlite::Sync;

use super::{KeyLocation, Place};
use crate::config::{self, Environment};
use crate::failure::Failure;

pub struct Store {
    pub place: Place,
    /// With it the data file and its backups are encrypted.
    pub key: Option<KeyLocation>,
    pub sync: Sync,
    pub journal_kept: Duration,
    pub audit_kept: Duration,
    pub max_bytes: Option<u64>,
}

/// The setting that says where the key is.
pub const STORE_KEY: &str = "store.key";

impl Store {
    pub(super) fn new(
        config: &config::Store,
        place: Place,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        Ok(Self {
            key: KeyLocation::configured(STORE_KEY, &config.key, &place, environment)?,
            place,
            sync: match config.sync {
                config::Sync::Full => Sync::Full,
                config::Sync::Normal => Sync::Normal,
            },
            journal_kept: days(config.retention_days),
            audit_kept: days(config.audit_retention_days),
            max_bytes: config.max_bytes,
        })
    }
}

fn days(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 86_400)
}
