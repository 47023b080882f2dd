//! The journal: what ran, when and how it ended. Arguments and outputs are not in it; secrets cannot leak from it.

use orchestr8_contract::id::{Lane, SubmissionId};
use serde_json::{Value, json};

use crate::fingerprint::Fingerprint;
use crate::outcome::End;
use crate::pipeline::Admitted;
use crate::ports::store::Statement;
use crate::run::Trace;
use crate::tables::{self, JournalRow};

/// What others know by an id is told with whom it waited for and what it expected, so that a client can retrace it.
pub fn entry(admitted: &Admitted, entry: &'static str, at_ms: i64, mut data: Value) -> Statement {
    let submission = &admitted.submission;
    if submission.id.is_some() {
        data["dependsOn"] = json!(submission.depends_on);
        data["expected"] = json!(submission.version.as_ref().and_then(|version| version.expected));
        data["fingerprint"] = json!(submission.fingerprint.as_ref().map(Fingerprint::as_str));
    }
    tables::journal_append(JournalRow {
        tenant: submission.principal.tenant.as_str(),
        at_ms,
        run: admitted.run.to_string(),
        action: admitted.action.name.as_str(),
        entry,
        correlation: submission.correlation.as_str(),
        lane: submission.lane.as_ref().map(Lane::as_str),
        id: submission.id.as_ref().map(SubmissionId::as_str),
        data: data.to_string(),
    })
}

/// Work that ended after it was answered for.
pub fn late(trace: &Trace, end: End, at_ms: i64, duration_ms: u64) -> Statement {
    tables::journal_append(JournalRow {
        tenant: trace.tenant.as_str(),
        at_ms,
        run: trace.run.to_string(),
        action: trace.action.name.as_str(),
        entry: end.as_str(),
        correlation: trace.correlation.as_str(),
        lane: None,
        id: None,
        data: json!({"durationMs": duration_ms}).to_string(),
    })
}
