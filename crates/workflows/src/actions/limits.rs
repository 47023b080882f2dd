//! `limits.*`: limits of queues, agents and tenants that are changed while the server runs.

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::{self, Batch};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Principal, Reply, schema};
use serde_json::{Value, json};

use super::{answer, changing, hidden, number, object, reading};
use crate::agents::WorkLocation;
use crate::limits::{LIMIT_NAME_CHARACTERS, LIMIT_OVERRIDES, WORKER_QUEUE_TASKS};
use crate::runtime::{ChangeableLimit, Hub, LimitSubject, TENANT_LIMITS, fault, tables};

const SCOPES: [&str; 3] = ["agent", "queue", "tenant"];

pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let tenant = json!({"type": "string", "minLength": 1, "maxLength": 128});
    let one = json!({
        "scope": {"enum": SCOPES}, "name": {"type": "string", "minLength": 1, "maxLength": LIMIT_NAME_CHARACTERS},
        "tenant": tenant,
    });
    let mut set = one.clone();
    set["value"] = json!({"type": "integer", "minimum": 1});
    let policy = Policy { idempotent: true, ..changing() };
    Ok(vec![
        hidden(
            "limits.list",
            "Lists the limits of a tenant, and where each comes from.",
            object(json!({"tenant": tenant}), &[]),
            reading(),
            hub,
            list,
        )?,
        hidden(
            "limits.set",
            "Changes a limit at once, until it is unset.",
            object(set, &["scope", "name", "value"]),
            policy.clone(),
            hub,
            self::set,
        )?,
        hidden(
            "limits.unset",
            "Lets a limit be what the settings say.",
            object(one, &["scope", "name"]),
            policy,
            hub,
            unset,
        )?,
    ])
}

/// The tenant a call is about: the caller's own. Those who administer the machine may name another.
fn tenant_of(args: &Args, principal: &Principal) -> Result<Tenant, Fault> {
    let Some(named) = args.text("tenant") else { return Ok(principal.tenant.clone()) };
    let tenant = Tenant::parse(named)
        .map_err(|wrong| Fault::invalid(format!("/tenant: {wrong}")).with("path", "/tenant"))?;
    match tenant == principal.tenant || principal.administers_machine() {
        true => Ok(tenant),
        false => Err(Fault::new(
            Code::Unauthorized,
            "only those who administer the machine change the limits of other tenants",
        )
        .with("tenant", named)),
    }
}

/// What the arguments name, if this caller may change it.
struct NamedLimit {
    tenant: Tenant,
    scope: String,
    name: String,
    limit: ChangeableLimit,
}

impl NamedLimit {
    fn read(hub: &Hub, args: &Args, principal: &Principal) -> Result<Self, Fault> {
        let mut tenant = tenant_of(args, principal)?;
        let (scope, name) = (args.text("scope").unwrap_or_default(), args.text("name").unwrap_or_default());
        let limit = hub.changeable_limit(&tenant, scope, name)?;
        if limit.is_shared() {
            // All tenants share it, so it is kept once, with the machine's own tenant.
            if !principal.administers_machine() {
                let text = format!(
                    "all tenants share the agent '{name}': only those who administer the machine change its limit"
                );
                return Err(Fault::new(Code::Unauthorized, text).with("name", name));
            }
            tenant = Tenant::local();
        }
        Ok(Self { tenant, scope: scope.to_owned(), name: name.to_owned(), limit })
    }

    fn shown(&self, value: Option<usize>, change: Option<(&str, i64)>) -> Value {
        shown(&self.tenant, (&self.scope, &self.name), &self.limit, value, change)
    }
}

async fn set(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let named = NamedLimit::read(&hub, &args, &context.principal)?;
    let value = number(&args, "value").unwrap_or_default();
    let most = named.limit.maximum;
    let Some(value) = usize::try_from(value).ok().filter(|value| (1..=most).contains(value)) else {
        return Err(Fault::invalid(format!("/value: must be a whole number from 1 to {most}"))
            .with("path", "/value")
            .with("maximum", most)
            .into());
    };
    let rows = rows_of(&hub, &named.tenant).await?;
    let is_new = !rows.iter().any(|row| row.scope == named.scope && row.name == named.name);
    if is_new && rows.len() >= LIMIT_OVERRIDES {
        let text = format!("a tenant has at most {LIMIT_OVERRIDES} changed limits; unset one first");
        return Err(Fault::new(Code::ResourceExhausted, text).with("limit", LIMIT_OVERRIDES).into());
    }
    let (by, now_ms) = (context.principal.name.to_string(), hub.ports().clock.now_ms());
    let mut effects = Batch::new();
    effects.then(tables::limit_override_put(&tables::LimitOverride {
        tenant: named.tenant.as_str(),
        scope: &named.scope,
        name: &named.name,
        value: i64::try_from(value).unwrap_or(i64::MAX),
        set_by: &by,
        set_ms: now_ms,
    }));
    let answer = named.shown(Some(value), Some((&by, now_ms)));
    Ok(Reply::new(Output::json(answer), effects).then(move || hub.apply_limit(&named.limit, Some(value))))
}

async fn unset(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let named = NamedLimit::read(&hub, &args, &context.principal)?;
    let mut effects = Batch::new();
    effects.then(tables::limit_override_delete(named.tenant.as_str(), &named.scope, &named.name));
    let answer = named.shown(None, None);
    Ok(Reply::new(Output::json(answer), effects).then(move || hub.apply_limit(&named.limit, None)))
}

/// A limit that was changed, as it is stored.
struct ChangedLimit {
    scope: String,
    name: String,
    value: usize,
    set_by: String,
    set_ms: i64,
}

impl ChangedLimit {
    fn read(row: &store::Row) -> Result<Self, Fault> {
        Ok(Self {
            scope: row.text(1).map_err(fault)?.to_owned(),
            name: row.text(2).map_err(fault)?.to_owned(),
            value: usize::try_from(row.int(3).map_err(fault)?).unwrap_or(1),
            set_by: row.text(4).map_err(fault)?.to_owned(),
            set_ms: row.int(5).map_err(fault)?,
        })
    }
}

async fn rows_of(hub: &Hub, tenant: &Tenant) -> Result<Vec<ChangedLimit>, Fault> {
    let rows = hub.ports().store.query(tables::limit_overrides_of(tenant.as_str())).await.map_err(fault)?;
    rows.iter().map(ChangedLimit::read).collect()
}

/// Those of the tenant, of the agents that all share, of its queues that were changed, and what holds for its other queues.
async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let tenant = tenant_of(&args, &context.principal)?;
    let changed = rows_of(&hub, &tenant).await?;
    let shared = rows_of(&hub, &Tenant::local()).await?;
    let mut shown = Vec::new();
    let mut show = |scope: &str, name: &str| {
        if let Ok(limit) = hub.changeable_limit(&tenant, scope, name) {
            let rows = if limit.is_shared() { &shared } else { &changed };
            let found = rows.iter().find(|row| row.scope == scope && row.name == name);
            let change = found.map(|row| (row.set_by.as_str(), row.set_ms));
            shown.push(self::shown(&tenant, (scope, name), &limit, found.map(|row| row.value), change));
        }
    };
    TENANT_LIMITS.into_iter().for_each(|name| show("tenant", name));
    for agent in hub.agents().all() {
        let is_remote = matches!(agent.location(), WorkLocation::Remote { .. });
        if is_remote && !agent.id().ends_with('/') {
            show("agent", agent.id());
        }
    }
    for row in changed.iter().filter(|row| row.scope == "queue") {
        show("queue", &row.name);
    }
    shown.push(json!({
        "scope": "queue", "name": OTHER_QUEUES, "tenant": tenant, "value": WORKER_QUEUE_TASKS,
        "setting": WORKER_QUEUE_TASKS, "maximum": WORKER_QUEUE_TASKS, "origin": "setting",
    }));
    answer(json!({"tenant": tenant, "limits": shown}))
}

/// Stands for the queues without a limit of their own.
const OTHER_QUEUES: &str = "*";

fn shown(
    tenant: &Tenant,
    (scope, name): (&str, &str),
    limit: &ChangeableLimit,
    value: Option<usize>,
    change: Option<(&str, i64)>,
) -> Value {
    let mut shown = json!({
        "scope": scope, "name": name, "tenant": tenant, "value": value.or(limit.setting), "setting": limit.setting,
        "maximum": limit.maximum, "origin": if value.is_some() { "runtime" } else { "setting" },
    });
    if limit.is_shared() {
        shown["tenant"] = Value::Null;
    }
    if let Some((by, at_ms)) = change {
        shown["setBy"] = by.into();
        shown["setAt"] = iso(at_ms).into();
    }
    shown
}

impl ChangeableLimit {
    /// Whether all tenants share it.
    fn is_shared(&self) -> bool {
        match &self.subject {
            LimitSubject::Remote(key) => key.tenant.is_none(),
            LimitSubject::StepSlots(_) | LimitSubject::Executions(_) | LimitSubject::StartsPerMinute(_) => {
                false
            }
        }
    }
}
