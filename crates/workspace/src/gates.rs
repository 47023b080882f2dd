//! The way of a write, gate after gate. Each takes what the one before let through, so their order is these signatures:
//!
//! 1 intend, 2 locate, 3 compare, 4 draft, 5 plan, 6 scope, 7 police, 8 prove, 9 place; then the desk records it. What is to be
//! done is on record before the commands of the plan run, and once more before the file is put in its place.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::Batch;
use serde_json::json;

use crate::blocking;
use crate::desk::{Call, Done};
use crate::fields::{Fields, missing};
use crate::hub::Hub;
use crate::limits;
use crate::patch;
use crate::plan::{self, Kept, Pattern, Phase};
use crate::policy::{self, Purpose};
use crate::preflight::{self, Candidate, Discarded};
use crate::recovery::temporary_name;
use crate::refusal::Refusal;
use crate::reports;
use crate::root::{FRESH_MODE, Found, Inside, Placed, Root, sha256};
use crate::session::{Session, is_report};
use crate::trail::{Change, WriteStage, is_of_trail};
use crate::write_grants::WriteGrants;

/// Its reason is given.
struct Intended {
    fields: Fields,
}

/// Its path is inside, and nothing that is kept by other means.
struct Located {
    fields: Fields,
    path: Inside,
    is_report: bool,
}

/// What is there is what the caller believes is there.
struct Compared {
    located: Located,
    before: Option<Found>,
}

/// What is to be written is known.
struct Drafted {
    compared: Compared,
    text: String,
}

/// There is an approved plan, and it is whole. A report needs none.
struct Planned {
    drafted: Drafted,
    plan: Option<Kept>,
}

/// The plan allows this path.
struct Scoped(Planned);

/// The text breaks no rule.
struct Policed(Scoped);

/// The commands of the plan succeed with it.
struct Proven {
    policed: Policed,
    discarded: Vec<Discarded>,
}

/// It is in its place, and goes back if it is dropped.
struct InPlace {
    placed: Placed,
    path: Inside,
    plan: Option<Kept>,
    is_report: bool,
    bytes: usize,
    discarded: Vec<Discarded>,
}

/// Sends a write through all gates.
pub async fn write(mut call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    call.take_turn(&session).await?;
    // With the turn, so that what the write before has locked counts.
    let grants = WriteGrants::load(&call, &session).await?;
    let (at, fields, held) = (session.clone(), std::mem::take(&mut call.fields), grants.clone());
    let policed = blocking::run(move || pass(&at, fields, &held)).await?;
    call.record_stage(WriteStage::Intent, policed.change()).await?;
    let proven = prove(&call.hub, &session, policed).await?;
    if proven.policed.plan().is_some() {
        call.record_stage(WriteStage::Verified, proven.policed.change()).await?;
    }
    let (hub, root) = (call.hub.clone(), session.root.clone());
    let in_place = blocking::run(move || place(&hub, &root, proven)).await?;
    let unlock = grants.release(&session, &call.context, in_place.is_report);
    Ok(finish(in_place, unlock))
}

/// The gates that need nothing but the files.
fn pass(session: &Session, fields: Fields, grants: &WriteGrants) -> Result<Policed, Refusal> {
    let intended = intend(&session.root, fields)?;
    let located = locate(&session.root, intended)?;
    let compared = compare(&session.root, located)?;
    let drafted = draft(compared)?;
    let planned = plan(&session.root, drafted, grants)?;
    let scoped = scope(planned)?;
    police(scoped)
}

impl Policed {
    fn plan(&self) -> Option<&Kept> {
        self.0.0.plan.as_ref()
    }

    fn drafted(&self) -> &Drafted {
        &self.0.0.drafted
    }

    fn change(&self) -> Change {
        let Drafted { compared, text } = self.drafted();
        Change {
            path: compared.located.path.as_str().to_owned(),
            before: compared.before.as_ref().map(Found::hash),
            after: sha256(text.as_bytes()),
        }
    }

    fn candidate(&self) -> Candidate {
        let Drafted { compared, text } = self.drafted();
        Candidate {
            path: compared.located.path.clone(),
            bytes: text.as_bytes().into(),
            mode: compared.before.as_ref().map_or(FRESH_MODE, |before| before.mode),
        }
    }
}

/// Gate 1: why it is written, in more than a word. A report says so itself.
fn intend(root: &Root, fields: Fields) -> Result<Intended, Refusal> {
    let is_report =
        fields.text("path")?.and_then(|path| root.inside(path).ok()).is_some_and(|path| is_report(&path));
    if is_report {
        return Ok(Intended { fields });
    }
    let intent = fields.text("intent")?.ok_or_else(|| missing("intent"))?;
    if intent.trim().chars().count() <= limits::INTENT_CHARACTERS {
        let message = format!(
            "intent must say in more than {} characters why this is written",
            limits::INTENT_CHARACTERS
        );
        return Err(Refusal::new(Code::InvalidInputValue, message).with("field", "intent"));
    }
    Ok(Intended { fields })
}

/// Gate 2: the path stays inside, and away from what only other tools write.
fn locate(root: &Root, Intended { fields }: Intended) -> Result<Located, Refusal> {
    let path = root.inside(fields.required("path")?)?;
    if is_of_trail(path.as_str()) {
        return Err(Refusal::invariant(
            "AUDIT_APPEND_ONLY",
            "the audit trail is written by the server alone",
        ));
    }
    if path.is_in(plan::FOLDER) || path.as_str() == plan::FOLDER {
        let message = "plans are written by save_plan and approve_plan alone";
        return Err(Refusal::invariant("PLANS_IMMUTABLE", message));
    }
    if path.as_str().split('/').any(|name| name == ".git") {
        return Err(Refusal::invariant(
            "REPOSITORY_INTERNALS",
            "the inside of a repository is not written to",
        ));
    }
    let is_report = is_report(&path);
    Ok(Located { fields, path, is_report })
}

/// Gate 3: what is there is found on an opened handle, and compared with what the caller has seen.
fn compare(root: &Root, located: Located) -> Result<Compared, Refusal> {
    let before = match root.look(&located.path) {
        // A folder cannot be replaced by a file.
        Err(refusal) if refusal.code == Code::InvalidPath && refusal.thrown.is_none() => {
            return Err(Refusal { code: Code::FileWriteFailed, ..refusal });
        }
        found => found?,
    };
    if let Some(expected) = located.fields.text("previousHash")? {
        let found = before.as_ref().map(Found::hash);
        if found.as_deref() != Some(expected) {
            let message = format!("'{}' is not what previousHash says", located.path);
            return Err(Refusal::new(Code::HashMismatch, message).with("hash", found));
        }
    }
    Ok(Compared { located, before })
}

/// Gate 4: the new text, given whole or as a patch.
fn draft(compared: Compared) -> Result<Drafted, Refusal> {
    let fields = &compared.located.fields;
    let text = match (fields.text("content")?, fields.text("patch")?) {
        (Some(content), None) => content.to_owned(),
        (None, Some(patch)) => {
            let before = compared.before.as_ref().map_or(&b""[..], |before| &before.bytes);
            let before = std::str::from_utf8(before).map_err(|_| {
                Refusal::new(Code::PatchApplyFailed, "the file is no text, so it cannot be patched")
            })?;
            patch::apply(before, patch)?
        }
        (Some(_), Some(_)) => {
            return Err(Refusal::new(Code::InvalidInputValue, "give content or patch, not both"));
        }
        (None, None) => return Err(Refusal::new(Code::InvalidInputValue, "give content or patch")),
    };
    if text.len() > limits::FILE_BYTES {
        let message = format!("a file has at most {} bytes", limits::FILE_BYTES);
        return Err(Refusal::new(Code::InvalidInputValue, message));
    }
    Ok(Drafted { compared, text })
}

/// Gate 5: the plan exists, is approved, and is what its hash says.
fn plan(root: &Root, drafted: Drafted, grants: &WriteGrants) -> Result<Planned, Refusal> {
    let located = &drafted.compared.located;
    if located.is_report {
        let before = drafted.compared.before.as_ref();
        reports::check(root, &located.path, before, &drafted.text, grants.unreported())?;
        return Ok(Planned { drafted, plan: None });
    }
    let hash = located.fields.plan_hash("plan")?.ok_or_else(|| missing("plan"))?;
    let plan = Some(plan::load_approved(root, &hash, grants.approval())?);
    Ok(Planned { drafted, plan })
}

/// Gate 6: the plan allows the path, and so does the phase that is named; without a name, one of its phases.
fn scope(planned: Planned) -> Result<Scoped, Refusal> {
    let located = &planned.drafted.compared.located;
    if let Some(Kept { plan, hash, .. }) = &planned.plan {
        let refuse = |why: String| Err(Refusal::new(Code::PlanScopeViolation, format!("plan {hash} {why}")));
        let allows = |patterns: &[(usize, String)]| {
            patterns
                .iter()
                .any(|(_, text)| Pattern::parse(text).is_ok_and(|pattern| pattern.allows(&located.path)))
        };
        if !allows(&plan.paths) {
            return refuse(format!("does not allow '{}'", located.path));
        }
        let admits = |phase: &Phase| phase.paths.is_empty() || allows(&phase.paths);
        match located.fields.phase_id()? {
            Some(id) => match plan.phase(id) {
                None => return refuse(format!("has no phase {id}")),
                Some(phase) if !admits(phase) => {
                    return refuse(format!("does not allow '{}' in phase {id}", located.path));
                }
                Some(_) => {}
            },
            None if !plan.phases.iter().any(admits) => {
                return refuse(format!("does not allow '{}' in any phase", located.path));
            }
            None => {}
        }
    }
    Ok(Scoped(planned))
}

/// Gate 7: no placeholders, no swallowed errors.
fn police(scoped: Scoped) -> Result<Policed, Refusal> {
    let Drafted { compared, text } = &scoped.0.drafted;
    let claimed = match compared.located.fields.text("role")? {
        None => None,
        Some(word) => Some(Purpose::parse(word).ok_or_else(|| {
            let message = "role must be EXECUTABLE, BOUNDARY, INFRASTRUCTURE or VERIFICATION";
            Refusal::new(Code::InvalidInputValue, message).with("field", "role")
        })?),
    };
    policy::check(&compared.located.path, text, claimed)?;
    Ok(Policed(scoped))
}

/// Gate 8: the commands of the plan succeed in a view of the workspace as it would be.
async fn prove(hub: &Hub, session: &Session, policed: Policed) -> Result<Proven, Refusal> {
    let discarded = match policed.plan() {
        Some(Kept { plan, .. }) => {
            let candidate = policed.candidate();
            let clock = &hub.ports().clock;
            preflight::run(&session.root, &candidate, &plan.commands, hub.settings(), clock).await?
        }
        None => Vec::new(),
    };
    Ok(Proven { policed, discarded })
}

/// Gate 9: all of it or nothing.
fn place(hub: &Hub, root: &Arc<Root>, Proven { policed, discarded }: Proven) -> Result<InPlace, Refusal> {
    let Planned { drafted: Drafted { compared: Compared { located, before }, text }, plan } = policed.0.0;
    let temporary = temporary_name(hub.ports().ids.fresh(For::Record).simple());
    let placed = Placed::put(root, &located.path, before, text.as_bytes(), temporary)?;
    let Located { path, is_report, .. } = located;
    Ok(InPlace { placed, path, plan, is_report, bytes: text.len(), discarded })
}

fn finish(in_place: InPlace, unlock: Option<Batch>) -> Done {
    let InPlace { placed, path, plan, is_report: _, bytes, discarded } = in_place;
    let (before, after) = (placed.hash_before(), placed.hash().to_owned());
    let mut output = json!({
        "status": "OK", "path": path.as_str(), "bytes": bytes, "hash": after, "previousHash": before,
        "plan": plan.map(|plan| plan.hash), "unlocked": unlock.is_some(),
    });
    if !discarded.is_empty() {
        output["discarded"] = discarded.iter().map(Discarded::shown).collect();
    }
    let change = Change { path: path.as_str().to_owned(), before, after };
    Done { output, change: Some(change), placed: Some(placed), batch: unlock, ..Done::default() }
}
