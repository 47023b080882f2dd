//! Adding, showing, restarting and removing other servers at run time. Models see none of these.

use std::sync::{Arc, Weak};

use orchestr8_contract::{Code, Fault, Kind, Output};
use orchestr8_kernel::action::{self, Cost, Slotting};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use super::entry::{self, ServerEntry, shown_link};
use super::limits;
use super::list_servers::{self, upgrade};
use super::served_server::ServedServer;
use super::servers::ServerRegistry;
use super::stored_servers::StoredServer;
use crate::tables;

/// What the settings allow tenants other than `local`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TenantRights {
    /// To add servers that start programs.
    pub programs: bool,
}

/// Every action of this file.
pub fn all(registry: &Arc<ServerRegistry>) -> Result<Vec<Action>, schema::Error> {
    let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let name = || json!({"name": {"type": "string", "minLength": 1, "maxLength": 256}});
    let read = || Policy { slotting: Slotting::Free, ..Policy::read() };
    let one = |action: &str, about: &str, input: Value, policy: Policy, run: Run| {
        let registry = Arc::downgrade(registry);
        let work = action::work(move |args, context| run(registry.clone(), args, context));
        Action::unlisted(action, about, input, policy, work)
    };
    Ok(vec![
        one(
            "servers.add",
            "Adds another MCP server, for the tenant of the caller.",
            object(entry::schema(), &["name"]),
            changing(),
            |registry, args, context| Box::pin(add(registry, args, context)),
        )?,
        one(
            "servers.remove",
            "Removes a server that was added, with its accepted tools.",
            object(name(), &["name"]),
            changing(),
            |registry, args, context| Box::pin(remove(registry, args, context)),
        )?,
        one(
            "servers.restart",
            "Restarts the instance of a server that serves the caller's tenant.",
            object(name(), &["name"]),
            Policy { refusals: changing().refusals, ..changing() },
            |registry, args, context| Box::pin(restart(registry, args, context)),
        )?,
        one(
            "servers.show",
            "Shows one server, without credentials.",
            object(name(), &["name"]),
            read(),
            |registry, args, context| Box::pin(show(registry, args, context)),
        )?,
        one(
            "servers.logs",
            "The last lines that the instance of the caller's tenant wrote to stderr.",
            object(name(), &["name"]),
            read(),
            |registry, args, context| Box::pin(logs(registry, args, context)),
        )?,
    ])
}

type Answer = futures::future::BoxFuture<'static, Result<Reply, Halt>>;
type Run = fn(Weak<ServerRegistry>, Args, Context) -> Answer;

fn changing() -> Policy {
    const REFUSALS: &[Kind] =
        &[Kind::Invalid, Kind::NotFound, Kind::Forbidden, Kind::Exhausted, Kind::Unavailable, Kind::Conflict];
    Policy { slotting: Slotting::Free, cost: Cost::Work, refusals: REFUSALS, ..Policy::stored() }
}

async fn add(registry: Weak<ServerRegistry>, args: Args, context: Context) -> Result<Reply, Halt> {
    let registry = upgrade(&registry)?;
    let Value::Object(mut members) = args.into_value() else {
        return Err(Fault::invalid("no object").into());
    };
    let name = members.remove("name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    let entry = ServerEntry::read(Value::Object(members))?;
    entry.check()?;
    let (principal, kernel) = (&context.principal, &context.kernel);
    if entry.command.is_some() && !principal.administers_machine() && !registry.rights.programs {
        let what = "a program of an added server runs as the user of this server; admins of other tenants than 'local' add servers with a url, \
                    unless gateway.tenantPrograms allows programs";
        return Err(Fault::new(Code::Unauthorized, what).with("reason", "tenant_programs").into());
    }
    registry.check_addition(&principal.tenant, &name, &entry)?;
    let stored = StoredServer {
        tenant: principal.tenant.clone(),
        name,
        entry,
        created_by: principal.name.to_string(),
        created_ms: kernel.ports().clock.now_ms(),
    };
    let mut effects = Batch::new();
    effects.then_one(stored.insert(kernel)?);
    let shown = json!({"name": stored.name, "tenant": stored.tenant, "added": true});
    Ok(Reply::new(Output::json(shown), effects).then(move || registry.add(stored)))
}

async fn remove(registry: Weak<ServerRegistry>, args: Args, context: Context) -> Result<Reply, Halt> {
    let registry = upgrade(&registry)?;
    let served = named(&registry, &args, &context)?;
    let name = served.server.name.clone();
    let Some(owner) = served.key.owner.clone() else {
        let what = format!("the settings name the MCP server '{name}'; remove mcpServers.{name} there");
        return Err(Fault::new(Code::StateConflict, what).with("server", name).into());
    };
    let mut effects = Batch::new();
    effects.then_one(tables::server_delete(owner.as_str(), &name));
    effects.then(tables::pins_delete(owner.as_str(), &name));
    let answer = Output::json(json!({"name": name, "removed": true}));
    Ok(Reply::new(answer, effects).then(move || registry.remove(&served)))
}

/// Restarts the instance of the caller's tenant; for those who administer the machine, all instances of a server of the settings. One
/// that does not run is started.
async fn restart(registry: Weak<ServerRegistry>, args: Args, context: Context) -> Result<Reply, Halt> {
    let registry = upgrade(&registry)?;
    let served = named(&registry, &args, &context)?;
    let principal = &context.principal;
    if served.server.shared && served.key.owner.is_none() && !principal.administers_machine() {
        let what = "all tenants share this server; an admin or owner of the tenant 'local' restarts it";
        return Err(Fault::new(Code::Unauthorized, what).with("reason", "other_tenants").into());
    }
    let is_everywhere = principal.administers_machine() && served.key.owner.is_none();
    let (restarting, registry) = (served.clone(), registry.clone());
    let tenant = principal.tenant.clone();
    registry.check_start(&served)?;
    let answer = Output::json(json!({"name": served.server.name, "restarting": true}));
    Ok(Reply::new(answer, Batch::new()).then(move || registry.restart(&restarting, &tenant, is_everywhere)))
}

async fn show(registry: Weak<ServerRegistry>, args: Args, context: Context) -> Result<Reply, Halt> {
    let registry = upgrade(&registry)?;
    let served = named(&registry, &args, &context)?;
    let mut shown = list_servers::show(&registry, &served, &context);
    let server = &served.server;
    shown["entry"] = shown_link(&server.link, served.key.owner.is_none());
    shown["entry"]["prefix"] = json!(server.prefix);
    shown["entry"]["allow"] = json!(server.allow);
    shown["entry"]["deny"] = json!(server.deny);
    shown["entry"]["maxConcurrent"] = json!(server.max_concurrent);
    shown["entry"]["startTimeoutMs"] = json!(server.start_timeout_ms);
    shown["entry"]["timeoutMs"] = json!(server.timeout_ms);
    shown["entry"]["idleTimeoutMs"] = json!(served.idle_timeout_ms(&context.principal.tenant).unwrap_or(0));
    shown["toolNames"] = json!(served.listed_names());
    let added = served.added.as_ref();
    shown["addedBy"] = json!(added.map(|(by, _)| by));
    shown["addedAt"] = json!(added.map(|(_, at_ms)| iso(*at_ms)));
    Ok(Output::json(shown).into())
}

async fn logs(registry: Weak<ServerRegistry>, args: Args, context: Context) -> Result<Reply, Halt> {
    let registry = upgrade(&registry)?;
    let served = named(&registry, &args, &context)?;
    let lines = registry.stderr_lines(&served, &context.principal.tenant);
    Ok(Output::json(json!({"name": served.server.name, "lines": lines, "limit": limits::STDERR_TAIL_LINES}))
        .into())
}

fn named(registry: &ServerRegistry, args: &Args, context: &Context) -> Result<Arc<ServedServer>, Fault> {
    registry.find(&context.principal.tenant, args.text("name").unwrap_or_default())
}
