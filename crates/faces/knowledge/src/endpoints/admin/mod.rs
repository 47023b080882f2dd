//! `/admin/…`: for whoever runs the server. Which tenants they may look after is decided here, once.

pub(crate) mod dead;
pub(crate) mod keys;
pub(crate) mod slo;

use std::sync::Arc;

use http::HeaderName;
use http::header::{FORWARDED, HOST};
use orchestr8_contract::AccessRole;
use orchestr8_contract::id::Tenant;
use orchestr8_edge::Caller;
use orchestr8_kernel::Transport;
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ports::store::Link;
use serde_json::Value;

use crate::call::Call;
use crate::failure::Failure;

/// The row of the access table that these endpoints share.
const MANAGE: &str = "keys.manage";

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The tenant that is meant: one, or with none all of them.
pub(super) async fn tenant(call: &Call, asked: Option<&str>) -> Result<Option<Tenant>, Failure> {
    let parse =
        |text: &str| Tenant::parse(text).map_err(|error| Failure::invalid("?tenant_id", error.to_string()));
    let asked = asked.map(parse).transpose()?;
    match whose(call).await? {
        None => Ok(asked),
        Some(own) if asked.as_ref().is_none_or(|asked| *asked == own) => Ok(Some(own)),
        Some(_) => Err(Failure::forbidden("this token looks after another tenant")),
    }
}

/// None: everybody's. A person at this machine runs the server; elsewhere a token of the edge says who does.
pub(super) async fn whose(call: &Call) -> Result<Option<Tenant>, Failure> {
    // Not over the edge: a command of this very process.
    let Some(caller) = Caller::of(&call.parts.extensions) else { return Ok(None) };
    if !caller.verified {
        return match caller.name.is_empty() || passed_on(call) {
            true => Err(Failure::unauthenticated("this needs a token with the role admin or owner")),
            false => Ok(None),
        };
    }
    let Some(principal) = caller.principal()?.map(Arc::new) else { return Ok(None) };
    call.authorize(MANAGE, &principal).await?;
    Ok((!principal.administers_machine()).then(|| principal.tenant.clone()))
}

/// The audit entry of an operation of these endpoints. It is about one tenant, or else in the operator's own trail.
pub(super) fn audited(
    call: &Call,
    action: &'static str,
    tenant: Option<&Tenant>,
    object: &str,
    detail: Value,
) -> Link {
    let principal = Caller::of(&call.parts.extensions).map_or("local", |caller| caller.name.as_str());
    let own = Tenant::local();
    let change = StateChange {
        action,
        tenant: tenant.unwrap_or(&own).as_str(),
        principal,
        transport: Transport::Http,
        source: call.source(),
        object: Some(object),
        code: None,
        detail,
    };
    change.link(call.face.now_ms())
}

/// Refuses to hand out a role that the caller does not have. A person at this machine has all of them.
pub(super) fn may_grant(call: &Call, roles: &[String]) -> Result<(), Failure> {
    let Some(caller) = Caller::of(&call.parts.extensions) else { return Ok(()) };
    let Some(principal) = caller.principal()? else { return Ok(()) };
    let has = |role: AccessRole| {
        role == AccessRole::Viewer || principal.has(AccessRole::Owner) || principal.has(role)
    };
    match roles.iter().find(|role| AccessRole::parse(role).is_some_and(|role| !has(role))) {
        Some(role) => {
            Err(Failure::forbidden(format!("you cannot grant the role '{role}', which you do not have")))
        }
        None => Ok(()),
    }
}

/// A proxy on this machine makes strangers look like people of it.
fn passed_on(call: &Call) -> bool {
    let headers = &call.parts.headers;
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    let ours = name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    !ours || headers.contains_key(&FORWARDED) || headers.contains_key(&FORWARDED_FOR)
}
