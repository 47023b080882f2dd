//! `/admin/…`: for whoever runs the server. Which tenants they may look after is decided here, once.

pub(crate) mod dead;
pub(crate) mod keys;
pub(crate) mod slo;

use http::HeaderName;
use http::header::{FORWARDED, HOST};
use orchestr8_contract::AccessRole;
use orchestr8_contract::id::Tenant;
use orchestr8_edge::Caller;

use crate::call::Call;
use crate::failure::Failure;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The tenant that is meant: one, or with none all of them.
pub(super) fn tenant(call: &Call, asked: Option<&str>) -> Result<Option<Tenant>, Failure> {
    let parse =
        |text: &str| Tenant::parse(text).map_err(|error| Failure::invalid("?tenant_id", error.to_string()));
    let asked = asked.map(parse).transpose()?;
    match whose(call)? {
        None => Ok(asked),
        Some(own) if asked.as_ref().is_none_or(|asked| *asked == own) => Ok(Some(own)),
        Some(_) => Err(Failure::forbidden("this token looks after another tenant")),
    }
}

/// None: everybody's. A person at this machine runs the server; elsewhere a token of the edge says who does.
pub(super) fn whose(call: &Call) -> Result<Option<Tenant>, Failure> {
    // Not over the edge: a command of this very process.
    let Some(caller) = Caller::of(&call.parts.extensions) else { return Ok(None) };
    if !caller.verified {
        return match caller.name.is_empty() || passed_on(call) {
            true => Err(Failure::unauthenticated(
                "this needs a token of auth.tokens with the role admin or owner",
            )),
            false => Ok(None),
        };
    }
    let roles = caller.role_set();
    if roles.has(AccessRole::Admin) {
        return Ok(None);
    }
    if !roles.has(AccessRole::Owner) {
        return Err(Failure::forbidden("this needs a token with the role admin or owner"));
    }
    let tenant = Tenant::parse(&caller.tenant).map_err(|error| Failure::forbidden(error.to_string()))?;
    Ok(Some(tenant))
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
