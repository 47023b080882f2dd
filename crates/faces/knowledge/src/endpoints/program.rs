//! What this server can do, who of its peers is alive, and its figures (KNO-7, KNO-11).

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use orchestr8_contract::{AccessRole, Fault};
use orchestr8_edge::Caller;
use orchestr8_kernel::Principal;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::ports::store::{Batch, Row};
use serde_json::{Value, json};

use crate::actions;
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::limits;
use crate::openapi;
use crate::tables;
use crate::tend;
use crate::versions;
use crate::wire::{Capabilities, Capability};

const EXPOSITION: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Appendix D, from the registry.
pub(crate) async fn capabilities(call: Call) -> Outcome {
    let kernel = &call.face.kernel;
    let max_concurrent = kernel.limits().concurrent_runs;
    let actions = actions::public(kernel);
    let actions = actions.iter().map(|action| Capability {
        action: action.name.as_str().to_owned(),
        action_version: actions::version(action).to_owned(),
        max_payload_bytes: actions::max_payload_bytes(action),
        max_concurrent: action.policy.concurrent_runs.unwrap_or(max_concurrent).min(max_concurrent),
    });
    let mut transports = vec!["http-sync"];
    if call.face.settings.pubsub.is_some() {
        transports.push("pubsub-async");
    }
    let offered = Capabilities {
        envelope_versions: versions::ENVELOPES.to_vec(),
        actions: actions.collect(),
        transports,
        deprecations: tend::notices(kernel).await?,
    };
    Ok(answer::json(StatusCode::OK, &offered))
}

/// A peer says that it is alive.
pub(crate) async fn heartbeat(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    call.authorize("peers.heartbeat", &principal).await?;
    let body = call.json()?;
    let status = match body.get("status").and_then(Value::as_str) {
        Some(status @ ("healthy" | "degraded")) => status,
        Some(_) | None => return Err(Failure::invalid("/status", "it must be healthy or degraded")),
    };
    let short = |text: &String| text.len() <= limits::NAME_BYTES;
    let revision = match body.get("revision") {
        Some(Value::String(text)) => Some(text.clone()).filter(short),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(_) | None => None,
    };
    let Some(revision) = revision else {
        return Err(Failure::invalid("/revision", "it must be a number or a short text"));
    };
    let name = match body.get("name") {
        None => principal.name.to_string(),
        Some(Value::String(name)) if !name.is_empty() && short(name) => {
            check_name(name, &principal)?;
            name.clone()
        }
        Some(_) => return Err(Failure::invalid("/name", "it must be a short text")),
    };
    let now_ms = call.face.now_ms();
    let mut batch = Batch::new();
    batch.then(tables::peer_seen(principal.tenant.as_str(), &name, status, &revision, now_ms));
    call.face.kernel.ports().store.commit(batch).await.map_err(store_fault)?;
    let data =
        json!({"name": name, "status": status, "last_seen_at": clock::iso(now_ms), "revision": revision});
    Ok(answer::success(StatusCode::OK, &data))
}

/// A peer speaks for itself and for its instances, which are named after it; an owner speaks for all.
fn check_name(name: &str, principal: &Principal) -> Result<(), Failure> {
    let rest = name.strip_prefix(&*principal.name);
    let is_own = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match is_own || principal.has(AccessRole::Owner) {
        true => Ok(()),
        false => {
            let (own, name) = (&principal.name, name.chars().take(64).collect::<String>());
            Err(Failure::forbidden(format!(
                "'{own}' does not speak for the peer '{name}'; use '{own}' or '{own}/…'"
            )))
        }
    }
}

/// The peers of a tenant, each with when it was last heard of.
pub(crate) async fn peers(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    call.authorize("peers.list", &principal).await?;
    let found = tables::peers(principal.tenant.as_str(), limits::PEERS);
    let rows = call.face.kernel.ports().store.query(found).await.map_err(store_fault)?;
    let now_ms = call.face.now_ms();
    let peers = rows.iter().map(|row| peer(row, now_ms)).collect::<Result<Vec<Value>, _>>();
    Ok(answer::success(StatusCode::OK, &json!({"peers": peers.map_err(store_fault)?})))
}

fn peer(row: &Row, now_ms: i64) -> Result<Value, orchestr8_kernel::ports::store::Error> {
    let last_seen_ms = row.int(3)?;
    Ok(json!({
        "name": row.text(0)?, "status": row.text(1)?, "revision": row.text(2)?,
        "last_seen_at": clock::iso(last_seen_ms), "stale": now_ms - last_seen_ms > limits::STALE_MS,
    }))
}

/// The figures of all tenants for those who administer the machine; for others those of their own tenant.
pub(crate) async fn metrics(call: Call) -> Outcome {
    let metrics = &call.face.settings.metrics;
    let caller =
        Caller::of(&call.parts.extensions).map_or(Ok(None), |caller| caller.principal())?.map(Arc::new);
    if let Some(principal) = &caller {
        call.authorize("server.metrics", principal).await?;
    }
    let text = match caller {
        Some(principal) if !principal.administers_machine() => metrics.text(Some(principal.tenant.as_str())),
        Some(_) | None => metrics.text(None),
    };
    Ok(answer::bytes(StatusCode::OK, EXPOSITION, text))
}

/// This API, described.
pub(crate) async fn describe(_: Call) -> Outcome {
    Ok(answer::json(StatusCode::OK, &openapi::document()))
}

pub(crate) async fn not_this_method(call: Call) -> Outcome {
    let message = format!("this path does not take {}", call.parts.method);
    let fault = Fault::invalid(message).with("hint", "the Allow header lists the methods this path takes");
    Err(Failure::from(fault).status(StatusCode::METHOD_NOT_ALLOWED))
}
