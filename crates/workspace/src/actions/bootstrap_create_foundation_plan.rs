//! `bootstrap_create_foundation_plan`: the first plan of a workspace, signed by whoever set it up.

use hmac::{Hmac, Mac};
use jiff::Timestamp;
use orchestr8_contract::Code;
use orchestr8_contract::canonical;
use orchestr8_contract::envelope::Role;
use orchestr8_kernel::ports::store::Batch;
use serde_json::{Map, Value, json};
use sha2::Sha256;

use super::save_plan::put;
use crate::approvals::{Decision, DecisionMethod, PlanRecord, PlanStatus, Proposal, record_decision};
use crate::attest::unhex;
use crate::blocking;
use crate::desk::{Call, Done, Tool};
use crate::fields::missing;
use crate::limits;
use crate::plan::{self, FOLDER, Status, body, hash_of, lint};
use crate::refusal::Refusal;
use crate::session::Session;

pub static TOOL: Tool = Tool {
    name: "bootstrap_create_foundation_plan",
    about: "Creates the first plan of a workspace, approved. The payload {plan, issued_at, nonce} is signed: the HMAC-SHA256 of its canonical JSON with the bootstrap secret, in hexadecimal digits.",
    roles: &[Role::Planner],
    input: || {
        json!({
            "type": "object",
            "properties": {
                "payload": {
                    "type": "object",
                    "properties": {"plan": {"type": "string"}, "issued_at": {"type": "string", "format": "date-time"}, "nonce": {"type": "string"}},
                    "required": ["plan", "issued_at", "nonce"],
                },
                "signature": {"type": "string"},
            },
            "required": ["payload", "signature"],
        })
    },
    changes: true,
    work: |call| Box::pin(work(call)),
};

/// Who approved a plan that is signed with the bootstrap secret.
const BOOTSTRAP: &str = "bootstrap secret";

fn failed(why: &str) -> Refusal {
    Refusal::startup(Code::BootstrapFailure, why)
}

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let payload = call.fields.object("payload")?;
    let signature = unhex(call.fields.required("signature")?).ok_or_else(|| {
        Refusal::new(Code::InvalidInputFormat, "signature must be hexadecimal digits")
            .with("field", "signature")
    })?;
    let text = |name: &str| {
        payload.get(name).and_then(Value::as_str).ok_or_else(|| missing(&format!("payload.{name}")))
    };
    let (content, issued_at) = (text("plan")?.to_owned(), text("issued_at")?);
    text("nonce")?;
    let secret = call.hub.settings().bootstrap_secret.clone();
    let secret = secret
        .ok_or_else(|| failed("this server has no bootstrap secret; see workspace.bootstrapSecretEnvVar"))?;
    is_signed(payload, &signature, &secret)?;
    let issued: Timestamp = issued_at.parse().map_err(|_| {
        Refusal::new(Code::InvalidInputFormat, "payload.issued_at must be a time as ISO 8601 has it")
            .with("field", "payload.issued_at")
    })?;
    let age_ms = call.hub.ports().clock.now_ms().saturating_sub(issued.as_millisecond());
    if age_ms.saturating_abs() > limits::BOOTSTRAP_MS {
        return Err(failed("the signature is too old, or of the future"));
    }
    let findings = lint(body(&content));
    if let Some(first) = findings.first() {
        return Err(failed(&format!("the plan does not pass the lint: {}", first.message))
            .with("errors", plan::shown(&findings)));
    }
    let hub = call.hub.clone();
    if !PlanRecord::of_workspace(&*hub.ports().store, session.place()).await?.is_empty() {
        return Err(failed("the workspace has a plan already"));
    }
    let batch = approval(&call, &session, &content)?;
    blocking::run(move || {
        if session.root.list(FOLDER)?.iter().any(|name| name.ends_with(".md")) {
            return Err(failed("the workspace has a plan already"));
        }
        let hash = hash_of(&content);
        let output = json!({"status": "PLAN_APPROVED", "hash": hash, "path": plan::path_of(&hash).as_str()});
        Ok(Done {
            output,
            batch: Some(batch),
            ..put(&hub, &session.root, &content, &hash, Status::Approved)?
        })
    })
    .await
}

/// The holder of the secret has approved the plan by signing it.
fn approval(call: &Call, session: &Session, content: &str) -> Result<Batch, Refusal> {
    let (principal, at_ms) = (&call.context.principal, call.hub.ports().clock.now_ms());
    let hash = hash_of(content);
    let proposal = Proposal {
        path: session.place(),
        tenant: principal.tenant.as_str(),
        hash: &hash,
        text: content,
        proposer: Some(&principal.name),
        at_ms,
    };
    let (status, method) = (PlanStatus::Approved, DecisionMethod::Bootstrap);
    let decision = Decision { status, principal: BOOTSTRAP, at_ms, method, comment: None };
    record_decision(proposal.record(), &decision, &call.hub.settings().signing_key).map(|(_, batch)| batch)
}

/// Takes the same time whatever was sent.
fn is_signed(payload: &Map<String, Value>, signature: &[u8], secret: &str) -> Result<(), Refusal> {
    let broken = || failed("the bootstrap secret cannot be used");
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|_| broken())?;
    mac.update(canonical::text(&Value::Object(payload.clone())).as_bytes());
    mac.verify_slice(signature).map_err(|_| failed("the signature is not that of this payload"))
}
