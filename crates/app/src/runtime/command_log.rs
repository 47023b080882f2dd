//! The log of a process that has no kernel: one that is attached to another.

use std::sync::Arc;

use orchestr8_kernel::Log;
use orchestr8_kernel::redact::Redactor;

use super::sink::Stderr;
use super::{FLUSH_LIMIT, ports};
use crate::settings::Settings;

/// Writes to stderr, as the log of an owner does.
pub struct CommandLog {
    pub log: Log,
    sink: Stderr,
}

impl CommandLog {
    pub fn start(settings: &Settings) -> Self {
        let (clock, _, _) = ports(settings.mode.deterministic);
        let (sink, redactor) = (Stderr::start(), Arc::new(Redactor::new(&settings.redact_keys)));
        Self { log: Log::new(settings.log_level, sink.clone(), redactor, clock), sink }
    }

    /// Waits until what was logged is written.
    pub fn flush(&self) {
        self.sink.flush(FLUSH_LIMIT);
    }
}
