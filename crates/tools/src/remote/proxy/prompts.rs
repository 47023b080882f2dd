//! Prompts of other servers, and suggestions for the arguments of their prompts and templates.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use orchestr8_contract::content::{Content, PromptMessage, Role};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{Action, Policy, Shown};
use orchestr8_kernel::{Args, Context, Halt, schema};
use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, CompletionContext, GetPromptRequestParams, Reference,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::desk::{Desk, InstanceUse};
use super::super::names::names;
use super::catalog::PromptDefinition;
use super::exchange::{Wanted, exchange};
use super::{Upstreams, address, resources};

pub const GET: &str = "upstream.prompt";
pub const COMPLETE: &str = "upstream.complete";

pub fn get_action(upstreams: Upstreams, timeout_ms: u64) -> Result<Action, schema::Error> {
    let policy = Policy { timeout_ms: Some(timeout_ms), open_world: true, ..Policy::read() };
    let input = json!({"type": "object", "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["name"]});
    Action::tool(GET, "Makes a prompt of another MCP server ready.", input, policy, move |args, context| {
        let upstreams = upstreams.clone();
        async move { get(&upstreams, args, context).await.map(Into::into) }
    })
    .map(Action::hidden)
}

pub fn complete_action(upstreams: Upstreams, timeout_ms: u64) -> Result<Action, schema::Error> {
    let policy = Policy { timeout_ms: Some(timeout_ms), open_world: true, ..Policy::read() };
    let input = json!({"type": "object", "properties": {"prompt": {"type": "string"}, "uri": {"type": "string"},
        "argument": {"type": "string"}, "value": {"type": "string"}, "known": {"type": "object"}},
        "required": ["argument", "value"]});
    let about = "Suggests values for an argument of a prompt or a template of another MCP server.";
    Action::tool(COMPLETE, about, input, policy, move |args, context| {
        let upstreams = upstreams.clone();
        async move { complete(&upstreams, args, context).await.map(Into::into) }
    })
    .map(Action::hidden)
}

/// A prompt as it is called here.
pub struct NamedPrompt {
    pub name: String,
    pub desk: Arc<Desk>,
    pub own: String,
    pub listed: Map<String, Value>,
    pub quarantined: bool,
}

impl NamedPrompt {
    /// The instance of its server, started if it does not run.
    fn start(&self, upstreams: &Upstreams, context: &Context) -> Result<InstanceUse, Fault> {
        let name = self.desk.server.name.as_str();
        let gone = || Fault::new(Code::NotFound, format!("there is no MCP server named '{name}'"));
        upstreams.instance(&context.principal.tenant, name).ok_or_else(gone)?
    }
}

/// The prompts of all servers, each under a name that no other prompt has.
pub fn named(upstreams: &Upstreams, context: &Context) -> Vec<NamedPrompt> {
    let table = context.kernel.registry().table();
    let is_ours = |name: &str| table.find(name).is_some_and(|own| matches!(own.shown, Shown::Prompt { .. }));
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut prompts = Vec::new();
    for desk in upstreams.all(&context.principal.tenant) {
        let catalog = desk.catalog.get();
        let own: Vec<&str> = catalog.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        let prefix = desk.server.prefix.as_deref().unwrap_or(&desk.server.name);
        let given = names(prefix, &own, |name| is_ours(name) || taken.contains(name));
        for (PromptDefinition { name: own, listed, quarantined }, name) in catalog.prompts.iter().zip(given) {
            taken.insert(name.clone());
            let (listed, quarantined) = (listed.clone(), *quarantined);
            prompts.push(NamedPrompt { name, desk: desk.clone(), own: own.clone(), listed, quarantined });
        }
    }
    prompts
}

fn find(upstreams: &Upstreams, name: &str, context: &Context) -> Result<NamedPrompt, Fault> {
    let found = named(upstreams, context).into_iter().find(|prompt| prompt.name == name);
    let prompt = found.ok_or_else(|| {
        Fault::new(Code::NotFound, format!("there is no prompt named '{name}'")).with("name", name)
    })?;
    match prompt.quarantined {
        false => Ok(prompt),
        true => {
            let server = &prompt.desk.server.name;
            let what = format!(
                "the definition of the prompt '{}' of the MCP server '{server}' has changed since it was accepted",
                prompt.own
            );
            Err(Fault::new(Code::Quarantined, what)
                .with("server", server.as_str())
                .with("prompt", prompt.own))
        }
    }
}

async fn get(upstreams: &Upstreams, args: Args, context: Context) -> Result<Output, Halt> {
    let prompt = find(upstreams, args.text("name").unwrap_or_default(), &context)?;
    let mut params = GetPromptRequestParams::new(prompt.own.clone());
    params.arguments = args.get("arguments").and_then(Value::as_object).cloned();
    let result = exchange(prompt.start(upstreams, &context)?, &context, Wanted::Prompt(params)).await?;
    let broken = || prompt.desk.fault(Code::Unavailable, "gave a prompt that cannot be read");
    let items = result.get("messages").and_then(Value::as_array).ok_or_else(broken)?;
    let server = prompt.desk.server.name.as_str();
    let mut messages = Vec::with_capacity(items.len());
    for item in items {
        let role = item.get("role").unwrap_or(&Value::Null);
        let role = Role::deserialize(role).map_err(|error| broken().because(error))?;
        let content = item.get("content").cloned().unwrap_or_default();
        let text = content.to_string();
        // A kind of content that only its server knows is shown as its JSON.
        let content = serde_json::from_value(content).unwrap_or_else(|_| Content::text(text));
        messages.push(PromptMessage { role, content: address::content(server, content) });
    }
    let description = result.get("description").and_then(Value::as_str).map(str::to_owned);
    Ok(Output::Prompt { description, messages })
}

async fn complete(upstreams: &Upstreams, args: Args, context: Context) -> Result<Output, Halt> {
    let (in_use, about) = match (args.text("prompt"), args.text("uri")) {
        (Some(name), _) => {
            let prompt = find(upstreams, name, &context)?;
            (prompt.start(upstreams, &context)?, Reference::for_prompt(prompt.own))
        }
        (None, Some(uri)) => {
            let (in_use, own) = resources::found(upstreams, uri, &context)?;
            (in_use, Reference::for_resource(own))
        }
        (None, None) => return Err(Fault::invalid("either prompt or uri says what is completed").into()),
    };
    let desk = in_use.desk().clone();
    if !desk.catalog.get().can.completions {
        return Ok(Output::json(json!({"values": [], "total": 0, "hasMore": false})));
    }
    let text = |name: &str| args.text(name).unwrap_or_default().to_owned();
    let mut params = CompleteRequestParams::new(about, ArgumentInfo::new(text("argument"), text("value")));
    let known = args.get("known").and_then(Value::as_object).into_iter().flatten();
    let known: HashMap<String, String> =
        known.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    if !known.is_empty() {
        params.context = Some(CompletionContext::with_arguments(known));
    }
    let result = exchange(in_use, &context, Wanted::Completion(params)).await?;
    let completion = result.get("completion").filter(|completion| completion["values"].is_array());
    let broken = || desk.fault(Code::Unavailable, "gave suggestions that cannot be read");
    Ok(Output::json(completion.cloned().ok_or_else(broken)?))
}
