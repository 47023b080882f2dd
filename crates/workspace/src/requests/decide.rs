//! `plans.decide`: a person approves or rejects a plan. The decision is in the trail of the workspace, then in the store.

use std::sync::Arc;

use orchestr8_contract::envelope::{Surroundings, Thrown};
use orchestr8_contract::{Code, Envelope};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::{Args, Context, Transport};
use serde_json::{Value, json};

use super::plans::{find, missing};
use crate::actions::put_plan;
use crate::approvals::{Decision, DecisionMethod, PlanRecord, PlanStatus, Proposal, record_decision};
use crate::blocking;
use crate::desk::Done;
use crate::hub::Hub;
use crate::plan::{self, body, lint, unfit};
use crate::refusal::Refusal;
use crate::root::Root;
use crate::trail::{Record, Trail};

pub async fn decide(hub: Hub, args: Args, context: Context) -> Result<Value, Refusal> {
    let hash = args.text("id").unwrap_or_default().to_owned();
    let known = find(&hub, &context, &hash, args.text("workspace")).await?;
    let folder = match (&known, args.text("workspace")) {
        (Some(plan), _) => plan.path.clone(),
        (None, Some(folder)) => folder.to_owned(),
        (None, None) => return Err(missing(&hash)),
    };
    let status = match args.text("decision") {
        Some("approve") => PlanStatus::Approved,
        _ => PlanStatus::Rejected,
    };
    let is_known = known.is_some();
    // Whether a folder is there that is no workspace is not told.
    let place = Place::open(&hub, &context, folder, is_known).await;
    let place = place.map_err(|refusal| match refusal.code {
        Code::InsufficientPermissions if !is_known => missing(&hash),
        _ => refusal,
    })?;
    let (record, done) = prepare(&hub, &context, &place, known, &hash, status).await?;
    let decision = Decision {
        status,
        principal: &context.principal.name,
        at_ms: hub.ports().clock.now_ms(),
        method: DecisionMethod::Request,
        comment: args.text("comment"),
    };
    decision.check(&record, hub.settings().self_approval)?;
    let (decided, batch) = record_decision(record, &decision, &hub.settings().signing_key)?;
    let body = entry(&hub, &context, &decided, &done);
    place.trail.append(body, decision.at_ms).await.map_err(|error| error.refusal())?;
    hub.ports().store.commit(batch).await.map_err(Refusal::of_store)?;
    if let Some(placed) = done.placed {
        placed.keep();
    }
    Ok(decided.to_json(false))
}

/// The workspace of a plan.
struct Place {
    root: Arc<Root>,
    trail: Arc<Trail>,
}

impl Place {
    /// A folder in which the server keeps a plan of the tenant is a workspace; any other one must be one of the settings'.
    async fn open(hub: &Hub, context: &Context, folder: String, is_known: bool) -> Result<Self, Refusal> {
        let (hub, tenant) = (hub.clone(), context.principal.tenant.clone());
        let transport = match context.transport {
            Transport::Internal => Transport::Internal,
            Transport::Stdio | Transport::Http | Transport::WebSocket => Transport::Http,
        };
        blocking::run(move || {
            let root = match is_known {
                true => Arc::new(Root::open(&folder)?),
                false => hub.enter(&folder, transport, &tenant)?,
            };
            let (trail, _) = hub.place(&root)?;
            Ok(Self { root, trail })
        })
        .await
    }
}

/// The plan to decide on, and its file with the decision shown in it.
async fn prepare(
    hub: &Hub,
    context: &Context,
    place: &Place,
    known: Option<PlanRecord>,
    hash: &str,
    status: PlanStatus,
) -> Result<(PlanRecord, Done), Refusal> {
    let (hub, root, hash) = (hub.clone(), place.root.clone(), hash.to_owned());
    let tenant = context.principal.tenant.clone();
    blocking::run(move || {
        let kept = match plan::load(&root, &hash) {
            Ok(kept) => kept,
            // A plan whose file is gone or changed can still be rejected.
            Err(refusal) => {
                return match (known, status) {
                    (Some(record), PlanStatus::Rejected) => Ok((record, Done::default())),
                    (Some(_) | None, _) => Err(refusal),
                };
            }
        };
        if status == PlanStatus::Approved {
            let findings = lint(body(&kept.text));
            if !findings.is_empty() {
                return Err(unfit(&findings));
            }
        }
        let path = root.path().to_string_lossy().into_owned();
        let found = Proposal {
            path: &path,
            tenant: tenant.as_str(),
            hash: &hash,
            text: &kept.text,
            proposer: None,
            at_ms: hub.ports().clock.now_ms(),
        };
        let record = known.unwrap_or_else(|| found.record());
        Ok((record, put_plan(&hub, &root, &kept.text, &hash, status.in_file())?))
    })
    .await
}

/// The entry of a decision in the trail of the workspace.
fn entry(hub: &Hub, context: &Context, decided: &PlanRecord, done: &Done) -> String {
    let at = Surroundings {
        tool_name: String::from("plans.decide"),
        timestamp: iso(hub.ports().clock.now_ms()),
        workspace_root: Some(decided.path.clone()),
        plan_hash: Some(decided.hash.clone()),
        ..Surroundings::default()
    };
    let cause = Thrown::Value(json!({
        "decision": decided.status.as_str(), "principal": &*context.principal.name,
        "tenant": context.principal.tenant.as_str(),
    }));
    let told = Envelope::tool_failure(Code::UnknownToolFailure, "", at).caused_by(cause);
    let output = decided.to_json(false);
    let args_hash = orchestr8_contract::canonical::sha256_hex(&json!({"id": decided.hash}));
    Record::success(&told, args_hash, &output, done.change.clone()).body(&hub.ports().redactor)
}
