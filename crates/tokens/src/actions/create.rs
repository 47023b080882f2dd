//! `tokens.create`: takes the hash of a secret that the face has made and shows once.

use std::sync::Arc;

use orchestr8_contract::{AccessRole, Code, Fault, Output, RoleSet};
use orchestr8_kernel::grant::TokenScope;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::submission::RESERVED_NAMES;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::{id, may_hand_out, sha256, tenant_of};
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
        },
    })
}

pub(super) async fn run(tokens: Arc<Inner>, args: Args, context: Context) -> Result<Reply, Halt> {
    let record = read(&tokens, &args, &context)?;
    may_hand_out(&context.principal, &record)?;
    tokens.check_free(&record).await?;
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
    }));
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
    })
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
    /// Whether the name is free and the tenant has room. The table of the store is asked again when it is written.
    async fn check_free(&self, record: &TokenRecord) -> Result<(), Fault> {
        let (store, tenant) = (&self.kernel.ports().store, record.tenant.as_str());
        let is_taken = self.taken.iter().any(|(of, name)| of == tenant && *name == record.name);
        let named = store.query(tables::named(tenant, &record.name)).await.map_err(store_fault)?;
        if is_taken || !named.is_empty() {
            return Err(Fault::new(
                Code::IdConflict,
                format!("the tenant {tenant} has a token named '{}' already", record.name),
            )
            .with("hint", "choose another name, or rotate or revoke that token"));
        }
        let rows = store.query(tables::count(tenant)).await.map_err(store_fault)?;
        let count = rows.first().map(|row| row.int(0)).transpose().map_err(store_fault)?;
        match count.unwrap_or_default() >= TOKENS_PER_TENANT {
            true => Err(Fault::new(
                Code::ResourceExhausted,
                format!("the tenant {tenant} has {TOKENS_PER_TENANT} tokens; revoke some first"),
            )),
            false => Ok(()),
        }
    }
}
