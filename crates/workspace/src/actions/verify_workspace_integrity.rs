//! `verify_workspace_integrity`: the trail is whole, the plans are what their hashes say, the files are what was written.

use serde_json::{Value, json};

use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::limits;
use crate::plan::{self, FOLDER};
use crate::refusal::Refusal;
use crate::replay::{Filter, Finding, replay};

pub static TOOL: Tool = Tool {
    name: "verify_workspace_integrity",
    about: "Proves the audit trail whole, every plan unchanged, and every file that was written through it as it was written.",
    roles: BOTH,
    input: || json!({"type": "object", "properties": {}}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let end = session.trail.check().await.map_err(|error| error.refusal())?;
    blocking::run(move || {
        let mut replayed = replay(&session.root, &Filter::default(), &end)?;
        replayed.compare(&session.root);
        let mut plans = 0;
        for name in session.root.list(FOLDER)?.into_iter().take(limits::PLANS) {
            let Some(hash) = name.strip_suffix(".md") else { continue };
            plans += 1;
            if let Err(refusal) = plan::load(&session.root, hash) {
                replayed.find(None, Some(plan::path_of(hash).as_str()), refusal.message);
            }
        }
        let findings: Vec<Value> = replayed.findings.iter().map(Finding::shown).collect();
        let verified = replayed.verified.as_ref();
        Ok(Done::with(json!({
            "ok": findings.is_empty(), "verdict": replayed.verdict(), "entries": verified.map(|verified| verified.entries),
            "head": verified.map(|verified| verified.head.as_str()), "plans": plans,
            "files": replayed.all_files.len(), "findings": findings,
        })))
    })
    .await
}
