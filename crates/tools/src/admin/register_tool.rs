//! `admin.registerTool`: adds a tool of a known kind under a name of one's own.

use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::visible::visible;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::Shown;
use orchestr8_kernel::registry::Table;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::json;

use crate::admin::Desk;
use crate::admin::kind::Kind;
use crate::listing;

/// Tools registered at run time; they are listed with all others and must not drown them.
const DYNAMIC_TOOLS: usize = 1_000;

/// The same of one tenant.
const TENANT_TOOLS: usize = 100;

/// A description is read by models with every list.
const DESCRIPTION_CHARACTERS: usize = 4_096;

const VERSION_CHARACTERS: usize = 64;

pub fn action(desk: Arc<Desk>) -> Result<Action, schema::Error> {
    let input = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "1 to 128 of A-Z a-z 0-9 _ . -, not to be taken for another tool"},
            "description": {"type": "string", "minLength": 1, "maxLength": DESCRIPTION_CHARACTERS},
            "toolType": {"type": "string", "description": "echo, health or agentProxy"},
            "inputSchema": {"type": "object", "description": "If given, it must be the schema of the tool type."},
            "version": {"type": "string", "minLength": 1, "maxLength": VERSION_CHARACTERS}
        },
        "required": ["name", "description", "toolType"],
        "additionalProperties": false
    });
    let work = move |args: Args, context: Context| std::future::ready(register(&desk, &args, &context));
    let about =
        "Registers a tool of a known kind. It is kept in memory until it is unregistered or the server ends.";
    Ok(Action::tool("admin.registerTool", about, input, Policy::stored(), work)?
        .titled("Register a tool")
        .also_called("admin/registerTool"))
}

fn register(desk: &Desk, args: &Args, context: &Context) -> Result<Reply, Halt> {
    let kind = args.text("toolType").unwrap_or_default();
    let kind = Kind::parse(kind).ok_or_else(|| {
        let known = Kind::ALL.map(Kind::as_str);
        wrong("/toolType", format!("there is no tool type '{}'; use one of {}", cut(kind), known.join(", ")))
    })?;
    if args.get("inputSchema").is_some_and(|given| !kind.has_input(given)) {
        return Err(wrong(
            "/inputSchema",
            format!("it is not the schema of the tool type {}", kind.as_str()),
        )
        .with("canonical", kind.input())
        .into());
    }
    let name = args.text("name").unwrap_or_default();
    for field in ["description", "version"] {
        if args.text(field).is_some_and(|text| visible(text) != text) {
            let what = "it has control, bidirectional or other hidden characters, which models and people must not get";
            return Err(
                wrong(if field == "version" { "/version" } else { "/description" }, what.into()).into()
            );
        }
    }
    let mut action = kind.action(name, &desk.settings).map_err(|error| wrong("/name", error.to_string()))?;
    action.about.description = args.text("description").unwrap_or_default().to_owned();
    action.about.title = None;
    action.about.version = args.text("version").map(str::to_owned);
    action.tenant = Some(context.principal.tenant.clone());
    add(desk, action, context)?;
    Ok(Output::json(json!({"name": name, "toolType": kind.as_str(), "registered": true})).into())
}

fn add(desk: &Desk, action: Action, context: &Context) -> Result<(), Fault> {
    let _changing = desk.changing.lock();
    let registry = context.kernel.registry();
    let (table, tenant) = (registry.table(), &context.principal.tenant);
    if table.owned_by(tenant).len() >= TENANT_TOOLS || table.owned() >= DYNAMIC_TOOLS {
        let what = format!("{TENANT_TOOLS} tools have been registered at run time; unregister some first");
        return Err(Fault::new(Code::ResourceExhausted, what).with("reason", "too_many_tools"));
    }
    check_name(&table, tenant, action.name.as_str())?;
    registry.register(action).map_err(|error| wrong("/name", error.to_string()))?;
    Ok(listing::changed(&context.kernel, desk.settings.search_above)?)
}

/// Refuses a name that a model or a person could take for another one.
fn check_name(table: &Table, tenant: &Tenant, name: &str) -> Result<(), Fault> {
    let own = skeleton(name);
    if own.is_empty() {
        return Err(wrong("/name", "a name needs a letter or a digit".into()));
    }
    let of_program = table.all().iter().filter(|action| matches!(action.shown, Shown::Tool));
    for action in of_program.chain(table.owned_by(tenant)) {
        let names =
            std::iter::once(action.name.as_str()).chain(action.about.aliases.iter().map(String::as_str));
        if let Some(like) = names.into_iter().find(|other| skeleton(other) == own) {
            return Err(wrong("/name", format!("it can be taken for '{like}', which exists"))
                .with("reason", "confusable_name"));
        }
    }
    Ok(())
}

/// What is left of a name for the eye: no case, no punctuation, one sign for those that look alike.
fn skeleton(name: &str) -> String {
    let sign = |c: char| match c.to_ascii_lowercase() {
        '0' => 'o',
        '1' | 'i' => 'l',
        other => other,
    };
    name.chars().filter(char::is_ascii_alphanumeric).map(sign).collect()
}

fn wrong(path: &'static str, what: String) -> Fault {
    Fault::invalid(format!("{path}: {what}")).with("path", path)
}

fn cut(text: &str) -> String {
    const SHOWN_CHARACTERS: usize = 64;
    text.chars().take(SHOWN_CHARACTERS).collect()
}
