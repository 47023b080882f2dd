//! Reports of failures: they need no plan, so they are small, few, never replaced, and one that ends a lock names the failure.

use orchestr8_contract::Code;

use crate::limits;
use crate::locks::UnreportedFailure;
use crate::refusal::Refusal;
use crate::root::{Found, Inside, Root};
use crate::session::REPORTS;

/// Checks a report before it is written.
pub fn check(
    root: &Root,
    path: &Inside,
    before: Option<&Found>,
    text: &str,
    failure: Option<&UnreportedFailure>,
) -> Result<(), Refusal> {
    if before.is_some() {
        let message = format!("'{path}' is there already; a report is not changed, write another one");
        return Err(Refusal::new(Code::FileAlreadyExists, message));
    }
    if text.len() > limits::REPORT_BYTES {
        let message = format!("a report has at most {} bytes", limits::REPORT_BYTES);
        return Err(Refusal::new(Code::InvalidInputValue, message).with("field", "content"));
    }
    if text.trim().chars().count() < limits::REPORT_CHARACTERS {
        let message =
            format!("a report says in {} characters or more what happened", limits::REPORT_CHARACTERS);
        return Err(Refusal::new(Code::InvalidInputValue, message).with("field", "content"));
    }
    if root.list(REPORTS)?.len() >= limits::REPORTS {
        let message = format!("{REPORTS} has {} files; move older ones away", limits::REPORTS);
        return Err(Refusal::new(Code::InvalidInputValue, message).with("field", "path"));
    }
    match failure {
        Some(failure) if !failure.is_named_in(text) => Err(failure.refusal(format!(
            "the report does not name the failure: its run {}, or {} and {}",
            failure.run, failure.code, failure.tool
        ))),
        Some(_) | None => Ok(()),
    }
}
