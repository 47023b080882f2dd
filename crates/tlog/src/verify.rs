//! Compares all rows of a data file with the signed heads.

use orchestr8_kernel::ports::store;
use orchestr8_stores::merkle::{KnownHead, LogDifference, LogReport, LogSource};
use orchestr8_stores::sqlite::Look;

use crate::head::{TreeHead, is_pruned_note};
use crate::head_file::HeadFile;
use crate::key::LogPublicKey;

/// What a check of all logs has found.
#[derive(Debug, Clone, Default)]
pub struct LogVerification {
    pub reports: Vec<LogReport>,
    /// The first difference of the first log that has one.
    pub difference: Option<LogDifference>,
}

impl LogVerification {
    /// Takes in what was found in one log. What was deleted for its age must be signed.
    pub fn add(&mut self, report: LogReport, origin: &str, key: &LogPublicKey) {
        let origin = format!("{origin}/{}", report.log);
        let is_unsigned = report
            .pruned_note
            .as_ref()
            .is_some_and(|(note, digest)| report.heads > 0 && !is_pruned_note(note, &origin, digest, key));
        let unsigned = || LogDifference {
            log: report.log,
            number: 0,
            label: None,
            what: String::from(
                "entries were deleted, and the server has not signed that it did so for their age",
            ),
        };
        let difference = report.difference.clone().or_else(|| is_unsigned.then(unsigned));
        self.difference = self.difference.take().or(difference);
        self.reports.push(report);
    }

    /// How many signed heads agree.
    pub fn heads(&self) -> usize {
        self.reports.iter().map(|report| report.heads).sum()
    }
}

/// Checks a data file from outside.
pub fn verify(
    look: &Look,
    sources: &[LogSource],
    heads: &[TreeHead],
    file: &HeadFile,
    origin: &str,
    key: &LogPublicKey,
) -> Result<LogVerification, store::Error> {
    let mut found = LogVerification::default();
    for source in sources {
        let known = heads_of(heads, source.name);
        let report = look.verify_log(source, &known, &file.fingerprints(source.name))?;
        found.add(report, origin, key);
    }
    Ok(found)
}

/// The heads of one log, in the order of their sizes.
pub fn heads_of(heads: &[TreeHead], log: &str) -> Vec<KnownHead> {
    let mut known: Vec<KnownHead> =
        heads.iter().filter(|head| head.log() == log).map(TreeHead::known).collect();
    known.sort_by_key(|head| head.size);
    known
}
