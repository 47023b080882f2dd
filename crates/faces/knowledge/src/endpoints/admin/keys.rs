//! The keys of agents: taken up, rotated, revoked and listed (KNO-3). Only their public halves ever come here.

use http::StatusCode;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::ports::clock;
use serde_json::{Map, Value, json};

use super::{audited, may_grant, tenant, whose};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::limits::KEY_LIFE_MS;
use crate::security::jose;
use crate::security::keys::{self, KeyTable, Owner, Record};

pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["after"])?;
    let of = tenant(&call, query.text("tenant_id")).await?;
    let store = &call.face.kernel.ports().store;
    let of = of.as_ref().map(|of| of.as_str());
    let keys = keys::list(&**store, of, query.text("after").unwrap_or_default()).await?;
    let now_ms = call.face.now_ms();
    let next = keys.last().map(|key| key.kid.clone());
    let shown: Vec<Value> = keys.iter().map(|key| shown(key, now_ms)).collect();
    Ok(answer::success(StatusCode::OK, &json!({"keys": shown, "next": next})))
}

/// `POST /admin/keys {kid, public, tenant_id, principal, roles}`
pub(crate) async fn add(call: Call) -> Outcome {
    let body = call.json()?;
    let of = Tenant::parse(text(&body, "tenant_id")?)
        .map_err(|error| Failure::invalid("/tenant_id", error.to_string()))?;
    tenant(&call, Some(of.as_str())).await?;
    let roles = body.get("roles").and_then(Value::as_array);
    let roles = roles.and_then(|roles| roles.iter().map(|role| role.as_str().map(str::to_owned)).collect());
    let owner = Owner {
        tenant: of.as_str().to_owned(),
        principal: text(&body, "principal")?.to_owned(),
        roles: roles.ok_or_else(|| Failure::invalid("/roles", "it must be a list of texts"))?,
    };
    may_grant(&call, &owner.roles)?;
    let record = record(&call, &body, owner)?;
    let detail = json!({"principal": record.owner.principal, "roles": record.owner.roles});
    let audit = audited(&call, "keys.add", Some(&of), &record.kid, detail);
    keys::add(KeyTable::of(&call.face.kernel), &record, Some(audit)).await?;
    Ok(answer::success(StatusCode::CREATED, &shown(&record, call.face.now_ms())))
}

/// `POST /admin/keys/{kid}/rotate {kid, public}`: the new key speaks for whom the old one speaks for.
pub(crate) async fn rotate(call: Call) -> Outcome {
    let body = call.json()?;
    let old = known(&call).await?;
    may_grant(&call, &old.owner.roles)?;
    let record = record(&call, &body, Owner::default())?;
    let of = Tenant::parse(&old.owner.tenant).ok();
    let audit = audited(&call, "keys.rotate", of.as_ref(), &old.kid, json!({"newKid": record.kid}));
    let record = keys::replace(KeyTable::of(&call.face.kernel), &old.kid, record, Some(audit)).await?;
    Ok(answer::success(StatusCode::CREATED, &shown(&record, call.face.now_ms())))
}

pub(crate) async fn revoke(call: Call) -> Outcome {
    let old = known(&call).await?;
    let (table, now_ms) = (KeyTable::of(&call.face.kernel), call.face.now_ms());
    let of = Tenant::parse(&old.owner.tenant).ok();
    let audit = audited(&call, "keys.revoke", of.as_ref(), &old.kid, Value::Null);
    keys::revoke(table, &old.kid, now_ms, Some(audit)).await?;
    let record = keys::find(table, &old.kid).await?.unwrap_or(old);
    Ok(answer::success(StatusCode::OK, &shown(&record, now_ms)))
}

/// The key of the path, if it is for this caller to see.
async fn known(call: &Call) -> Result<Record, Failure> {
    let (of, kid) = (whose(call).await?, call.param("kid")?);
    let found = keys::find(KeyTable::of(&call.face.kernel), kid).await?;
    found
        .filter(|key| of.as_ref().is_none_or(|of| of.as_str() == key.owner.tenant))
        .ok_or_else(|| Failure::not_found(format!("there is no key {kid}")))
}

fn record(call: &Call, body: &Map<String, Value>, owner: Owner) -> Result<Record, Failure> {
    let public = jose::decode(text(body, "public")?).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    Ok(Record {
        kid: text(body, "kid")?.to_owned(),
        owner,
        public: public.ok_or_else(|| Failure::invalid("/public", "it must be 32 bytes in base64url"))?,
        created_ms: call.face.now_ms(),
        revoked_ms: None,
    })
}

fn text<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, Failure> {
    let found = body.get(name).and_then(Value::as_str);
    found.ok_or_else(|| Failure::invalid(&format!("/{name}"), "it is required and must be a text"))
}

fn shown(key: &Record, now_ms: i64) -> Value {
    let expires_ms = key.created_ms.saturating_add(KEY_LIFE_MS);
    let ends_ms = key.revoked_ms.map_or(expires_ms, |revoked_ms| revoked_ms.min(expires_ms));
    let status = match (key.revoked_ms, now_ms < ends_ms) {
        (None, true) => "active",
        (Some(_), true) => "rotated",
        (Some(revoked_ms), false) if revoked_ms <= expires_ms => "revoked",
        (Some(_) | None, false) => "expired",
    };
    json!({
        "kid": key.kid, "tenant_id": key.owner.tenant, "principal": key.owner.principal, "roles": key.owner.roles,
        "public": jose::encode(&key.public), "created_at": clock::iso(key.created_ms),
        "expires_at": clock::iso(expires_ms), "ends_at": clock::iso(ends_ms), "status": status,
        "age_days": now_ms.saturating_sub(key.created_ms).max(0) / 86_400_000,
    })
}
