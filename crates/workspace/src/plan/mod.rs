//! Plans: what may be written, where, and what proves that it was written well.
//!
//! ```text
//! <!--
//! PLAN_HASH: <sha256>
//! ROLE: ANTIGRAVITY
//! STATUS: APPROVED
//! -->
//! # Plan: …
//! ## Plan Metadata … ## Rollback / Failure Policy
//! ```
//!
//! The hash is that of the text without the comment, so approving a plan does not change it. The comment is for readers: whether a
//! plan is approved is a record in the store of the server (`approvals`).

pub mod allowlist;
mod gate_proof;
mod gate_words;
mod hash;
mod lint;
mod markup;
mod parse;
mod path_breadth;

#[cfg(test)]
mod tests;

use orchestr8_contract::Code;

use crate::refusal::Refusal;
use crate::root::{Inside, Root};

pub use allowlist::Pattern;
pub use hash::{Head, Status, body, hash_of, is_hash, with_head};
pub use lint::{Finding, is_phase_id, lint};
pub use parse::{Command, Phase, Plan, parse};

/// Where plans are kept.
pub const FOLDER: &str = "docs/plans";

/// The path of a plan.
pub fn path_of(hash: &str) -> Inside {
    Inside::own(format!("{FOLDER}/{hash}.md"))
}

/// A plan as it is kept.
#[derive(Debug)]
pub struct Kept {
    pub head: Head,
    pub hash: String,
    pub plan: Plan,
    pub text: String,
}

/// Reads a plan and proves that it is what its name says.
pub fn load(root: &Root, hash: &str) -> Result<Kept, Refusal> {
    let missing = || Refusal::new(Code::PlanNotFound, format!("there is no plan {hash}"));
    let found = root.read(&path_of(hash)).map_err(|refusal| match refusal.code {
        Code::FileNotFound | Code::PathNotFound => missing(),
        _ => refusal,
    })?;
    let broken = |why: &str| Refusal::new(Code::PlanEnforcementFailed, format!("plan {hash}: {why}"));
    let text = String::from_utf8(found.bytes).map_err(|_| broken("it is no text"))?;
    let head = Head::read(&text).ok_or_else(|| broken("its header comment is missing or incomplete"))?;
    let is = hash_of(&text);
    if is != hash || head.hash != hash {
        return Err(broken("its hash does not match its text").with("lint_code", "PLAN_HASH_MISMATCH"));
    }
    let plan = parse(body(&text));
    Ok(Kept { head, hash: is, plan, text })
}

/// A plan under which something may be written now: one with an approval in the store of the server.
pub fn load_approved(root: &Root, hash: &str, approval: &Result<(), Refusal>) -> Result<Kept, Refusal> {
    let kept = load(root, hash)?;
    approval.clone()?;
    let findings = lint(body(&kept.text));
    match findings.is_empty() {
        true => Ok(kept),
        false => Err(unfit(&findings)),
    }
}

/// The refusal of a plan that does not pass the lint.
pub fn unfit(findings: &[Finding]) -> Refusal {
    let first = findings.first().map_or_else(String::new, |finding| format!(": {}", finding.message));
    let message = format!("the plan has {} mistakes{first}", findings.len());
    Refusal::new(Code::PlanEnforcementFailed, message).with("errors", lint::shown(findings))
}

pub use lint::shown;
