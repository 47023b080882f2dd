//! `tokens.create`: takes the hash of a secret that the face has made and shows once.

use std::sync::Arc;

use orchestr8_contract::{AccessRole, Code, Fault, Output, RoleSet};
use orchestr8_kernel::grant::TokenScope;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Row};
use orchestr8_kernel::submission::RESERVED_NAMES;
use orchestr8_kernel::{Args, Context, Halt, Principal, Reply};
use serde_json::{Value, json};

use super::{id, may_hand_out, sha256, tenant_of};
use crate::configured::reuse;
use crate::limits::{NAME_CHARS, ROLES_PER_TOKEN, TOKENS_PER_TENANT};
use crate::record::{TokenRecord, hash};
use crate::{Inner, roles, tables};

/// Names of services of the server itself begin with it.
const RESERVED: &str = "svc:";

pub(super) fn input() -> Value {
    let text = json!({"type": "string", "minLength": 1, "maxLength": 128});
    json!({
        "type": "object", "additionalProperties": false, "required": ["id", "sha256", "name"],
        "properties": {
            "id": id(), "sha256": sha256(),
            "name": {"type": "string", "pattern": format!("^[A-Za-z0-9][A-Za-z0-9._@:-]{{0,{}}}$", NAME_CHARS - 1)},
            "tenant": text,
            "roles": {"type": "array", "maxItems": ROLES_PER_TOKEN, "items": text},
            "scope": {"type": "array", "maxItems": 64, "items": text},
            "expiresAt": {"type": ["string", "null"], "maxLength": 64},
            "reuseName": {"type": "boolean"},
        },
    })
}

pub(super) async fn run(tokens: Arc<Inner>, args: Args, context: Context) -> Result<Reply, Halt> {
    let record = read(&tokens, &args, &context)?;
    may_hand_out(&context.principal, &record)?;
    let is_reused = tokens.check_free(&record, args.get("reuseName") == Some(&Value::Bool(true))).await?;
    let (key, grant) = (hash(&record.sha256)?, record.grant());
    let list = |items: &[String]| Value::from(items.to_vec()).to_string();
    let mut effects = Batch::new();
    effects.then_one(tables::insert(&tables::NewToken {
        id: &record.id,
        tenant: record.tenant.as_str(),
        name: &record.name,
        roles: list(&record.roles),
        scope: list(&record.scope.entries()),
        sha256: &record.sha256,
        created_ms: record.created_ms,
        created_by: &record.created_by,
        expires_ms: record.expires_ms,
        seal: record.sealed(tokens.kernel.row_seal())?,
    }));
    if is_reused {
        may_reuse(&context.principal)?;
        let entry = reuse(record.tenant.as_str(), &record.name, &record.created_by);
        effects.link(entry.link(record.created_ms));
    }
    let shown = Output::json(record.shown(None, record.created_ms));
    Ok(Reply::new(shown, effects).then(move || tokens.table.insert(key, grant)))
}

/// The token that is wanted, checked in itself.
fn read(tokens: &Inner, args: &Args, context: &Context) -> Result<TokenRecord, Fault> {
    let now_ms = tokens.kernel.ports().clock.now_ms();
    let tenant = tenant_of(args, &context.principal)?.unwrap_or_else(|| context.principal.tenant.clone());
    let texts = |name: &str| -> Vec<String> {
        let items = args.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let scope = texts("scope");
    let mut granted = RoleSet::NONE;
    for name in texts("roles") {
        let role = roles::parse(&name).map_err(|what| Fault::invalid(what).with("path", "/roles"))?;
        granted = granted.with(role);
    }
    if granted.is_empty() {
        granted = RoleSet::of(&[AccessRole::Viewer]);
    }
    if granted.has(AccessRole::Planner) && granted.has(AccessRole::Executor) {
        return Err(Fault::invalid("planner and executor exclude each other: give each a token of its own"));
    }
    let text = |name: &str| args.text(name).unwrap_or_default().to_owned();
    let name = text("name");
    check_name(&name)?;
    Ok(TokenRecord {
        id: text("id"),
        tenant,
        name,
        roles: granted.names(),
        scope: TokenScope::parse(&scope).map_err(|what| Fault::invalid(what).with("path", "/scope"))?,
        sha256: text("sha256"),
        created_ms: now_ms,
        created_by: context.principal.name.to_string(),
        expires_ms: expiry(args.text("expiresAt"), now_ms)?,
        rotated_ms: None,
        old_sha256: None,
        old_until_ms: None,
        revoked_ms: None,
        revoked_by: None,
        last_used_ms: None,
        seal: None,
    })
}

/// What belongs to a name is data of the tenant, which an admin has no right to.
fn may_reuse(principal: &Principal) -> Result<(), Fault> {
    match principal.has(AccessRole::Owner) || principal.administers_machine() {
        true => Ok(()),
        false => Err(Fault::new(Code::Unauthorized, "only an owner takes over the name of another token")
            .with("reason", "name_reuse")),
    }
}

/// A token stands for a principal of its name: it must not pass for the server or for the person at this machine.
fn check_name(name: &str) -> Result<(), Fault> {
    match name.starts_with(RESERVED) || RESERVED_NAMES.contains(&name) {
        true => Err(Fault::invalid(format!("the name '{name}' is reserved")).with("path", "/name")),
        false => Ok(()),
    }
}

fn expiry(text: Option<&str>, now_ms: i64) -> Result<Option<i64>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let wrong = |what: &str| Fault::invalid(format!("expiresAt {what}")).with("path", "/expiresAt");
    let at: jiff::Timestamp =
        text.parse().map_err(|_| wrong("must be a moment such as 2027-01-31T00:00:00Z"))?;
    match at.as_millisecond() {
        at_ms if at_ms > now_ms => Ok(Some(at_ms)),
        _ => Err(wrong("is in the past")),
    }
}

impl Inner {
    /// Whether the name is free and the tenant has room; true if a token that is gone had the name, which must be said. The table of
    /// the store is asked again when it is written.
    async fn check_free(&self, record: &TokenRecord, may_reuse: bool) -> Result<bool, Fault> {
        let (store, tenant) = (&self.kernel.ports().store, record.tenant.as_str());
        let is_taken = self.configured.iter().any(|own| own.tenant == tenant && own.name == record.name);
        let holders =
            store.query(tables::earlier_holders(tenant, &record.name)).await.map_err(store_fault)?;
        let is_active = |row: &Row| row.int(1).is_ok_and(|revoked| revoked == 0);
        if is_taken || holders.iter().any(is_active) {
            return Err(Fault::new(
                Code::IdConflict,
                format!("the tenant {tenant} has a token named '{}' already", record.name),
            )
            .with("hint", "choose another name, or rotate or revoke that token"));
        }
        if !holders.is_empty() && !may_reuse {
            return Err(Fault::new(
                Code::IdConflict,
                format!(
                    "the tenant {tenant} had a token named '{}': a new one would inherit its sessions, schedules and workflows",
                    record.name
                ),
            )
            .with("reason", "name_was_used")
            .with("hint", "choose another name, or take over what belongs to it with --reuse-name (reuseName)"));
        }
        let rows = store.query(tables::count(tenant)).await.map_err(store_fault)?;
        let count = rows.first().map(|row| row.int(0)).transpose().map_err(store_fault)?;
        match count.unwrap_or_default() >= TOKENS_PER_TENANT {
            true => Err(Fault::new(
                Code::ResourceExhausted,
                format!("the tenant {tenant} has {TOKENS_PER_TENANT} tokens; revoke some first"),
            )),
            false => Ok(!holders.is_empty()),
        }
    }
}
