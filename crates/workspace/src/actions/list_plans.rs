//! `list_plans`: the plans of the workspace.

use serde_json::{Value, json};

use crate::approvals::{PlanRecord, shown_status};
use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::limits;
use crate::plan::{self, FOLDER};
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "list_plans",
    about: "Lists the plans of the workspace with their hash, title and status.",
    roles: BOTH,
    input: || json!({"type": "object", "properties": {}}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let known = PlanRecord::of_workspace(&*call.hub.ports().store, session.place()).await?;
    let status = move |hash: &str| shown_status(known.iter().find(|plan| plan.hash == hash)).shown();
    blocking::run(move || {
        let names = session.root.list(FOLDER)?;
        let hashes = names.iter().filter_map(|name| name.strip_suffix(".md")).filter(|name| plan::is_hash(name));
        let plans: Vec<Value> = hashes
            .take(limits::PLANS)
            .map(|hash| match plan::load(&session.root, hash) {
                Ok(kept) => json!({"hash": hash, "path": plan::path_of(hash).as_str(), "title": kept.plan.title, "status": status(hash)}),
                Err(refusal) => json!({"hash": hash, "path": plan::path_of(hash).as_str(), "title": null, "status": "BROKEN", "error": refusal.message}),
            })
            .collect();
        Ok(Done::with(json!({"plans": plans})))
    })
    .await
}
