//! `tokens.create`, `tokens.list`, `tokens.rotate` and `tokens.revoke`: for admins and owners of a tenant.

mod create;
mod list;
mod revoke;
mod rotate;

use std::future::Future;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, Kind, RoleSet};
use orchestr8_kernel::action::{self, Slotting};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Principal, Reply, schema};
use serde_json::{Value, json};

use crate::Inner;
use crate::record::TokenRecord;
use crate::{roles, tables};

pub(crate) fn all(tokens: &Arc<Inner>) -> Result<Vec<Action>, schema::Error> {
    let read = Policy { slotting: Slotting::Free, ..Policy::read() };
    Ok(vec![
        action(
            tokens,
            "tokens.create",
            "Creates an API token from the hash of its secret.",
            create::input(),
            write(),
            create::run,
        )?,
        action(
            tokens,
            "tokens.list",
            "Lists API tokens, never their secrets.",
            list::input(),
            read,
            list::run,
        )?,
        action(
            tokens,
            "tokens.rotate",
            "Gives an API token another secret.",
            rotate::input(),
            write(),
            rotate::run,
        )?,
        action(tokens, "tokens.revoke", "Ends an API token at once.", revoke::input(), write(), revoke::run)?,
    ])
}

/// Work that finds something wrong before it changes anything did nothing. A right that is missing is recorded.
fn write() -> Policy {
    const REFUSALS: &[Kind] = &[Kind::Invalid, Kind::NotFound, Kind::Conflict];
    Policy { refusals: REFUSALS, slotting: Slotting::Free, ..Policy::stored() }
}

fn action<F, R>(
    tokens: &Arc<Inner>,
    name: &str,
    about: &str,
    input: Value,
    policy: Policy,
    run: F,
) -> Result<Action, schema::Error>
where
    F: Fn(Arc<Inner>, Args, Context) -> R + Copy + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Halt>> + Send + 'static,
{
    let tokens = tokens.clone();
    let work = action::work(move |args, context| run(tokens.clone(), args, context));
    Action::unlisted(name, about, input, policy, work)
}

/// An id in a schema.
fn id() -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9]{1,32}$"})
}

/// The SHA-256 of a secret in a schema.
fn sha256() -> Value {
    json!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
}

/// The tenant an action is about: the caller's own, or for those who administer the machine any.
fn tenant_of(args: &Args, principal: &Principal) -> Result<Option<Tenant>, Fault> {
    let Some(asked) = args.text("tenant") else { return Ok(None) };
    let asked = Tenant::parse(asked).map_err(|error| Fault::invalid(error.to_string()))?;
    if asked != principal.tenant && !principal.administers_machine() {
        return Err(Fault::new(Code::Unauthorized, "you administer another tenant")
            .with("reason", "tenant")
            .with("hint", format!("leave the tenant out, or name your own: {}", principal.tenant)));
    }
    Ok(Some(asked))
}

/// The token of an id that is not revoked, if the caller may look after it. One of another tenant does not exist.
async fn known(tokens: &Inner, args: &Args, principal: &Principal) -> Result<TokenRecord, Fault> {
    let id = args.text("id").unwrap_or_default();
    let rows = tokens.kernel.ports().store.query(tables::find(id)).await.map_err(store_fault)?;
    let record = rows.first().map(TokenRecord::read).transpose()?;
    record.filter(|record| record.tenant == principal.tenant || principal.administers_machine()).ok_or_else(
        || {
            Fault::new(Code::NotFound, format!("there is no token '{id}'"))
                .with("hint", "list them with `orchestr8 tokens list`")
        },
    )
}

fn still_valid(record: TokenRecord) -> Result<TokenRecord, Fault> {
    match record.revoked_ms {
        None => Ok(record),
        Some(_) => Err(Fault::new(Code::IdConflict, format!("the token '{}' was revoked", record.id))
            .with("hint", "create another one with `orchestr8 tokens create`")),
    }
}

/// The bearer of a token acts with its roles and its scope: only a caller that has them may hand it out.
fn may_hand_out(principal: &Principal, record: &TokenRecord) -> Result<(), Fault> {
    let granted = RoleSet::named(&record.roles);
    if let Some(role) = granted.roles().find(|role| !roles::may_grant(principal, *role)) {
        let role = role.as_str();
        return Err(Fault::new(
            Code::Unauthorized,
            format!("you cannot grant the role '{role}', which you do not have"),
        )
        .with("reason", "role_escalation"));
    }
    match &principal.grant {
        Some(grant) if !grant.scope.covers(&record.scope) => {
            Err(Fault::new(Code::Unauthorized, "the scope is wider than the scope of your own token")
                .with("reason", "scope_escalation"))
        }
        Some(_) | None => Ok(()),
    }
}
