//! The tools of another server as actions of ours.

use std::sync::Arc;

use orchestr8_contract::access::FOREIGN_TOOLS;
use orchestr8_contract::visible::{visible, visible_line};
use orchestr8_kernel::action::{Effect, OnUnknown, Tasking};
use orchestr8_kernel::registry::QUARANTINED;
use orchestr8_kernel::resilience::{Resilience, breaker};
use orchestr8_kernel::{Action, Halt, Policy, schema};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::Server;
use super::call;
use super::lift::{Support, support};
use super::limits::GRACE_MS;
use super::names::names;
use super::pins::Standing;
use super::served_server::{ServedServer, ServerKey};
use super::supervise::Surroundings;
use super::tool_call::ToolCall;

/// Facts about a tool of another server, in its `_meta`: the server, and its own name there.
pub const SERVER: &str = "orchestr8/server";
pub const TOOL: &str = "orchestr8/tool";

/// What becomes of the tools of a server.
#[derive(Default)]
pub struct Offer {
    pub actions: Vec<Action>,
    pub quarantined: Vec<String>,
    pub refused: Vec<(String, String)>,
}

/// Makes actions of tools.
pub fn offer(
    around: &Arc<Surroundings>,
    served: &Arc<ServedServer>,
    tools: &[(Tool, Standing)],
    is_taken: impl Fn(&str) -> bool,
) -> Offer {
    let server = &served.server;
    let own: Vec<&str> = tools.iter().map(|(tool, _)| &*tool.name).collect();
    let names = names(server.prefix.as_deref().unwrap_or(&server.name), &own, is_taken);
    let mut offer = Offer::default();
    for ((tool, standing), name) in tools.iter().zip(names) {
        let made = match standing {
            Standing::Accepted => accepted(around, served, tool, &name),
            Standing::Quarantined => {
                offer.quarantined.push(tool.name.to_string());
                quarantined(served, tool, &name)
            }
            Standing::Refused(why) => {
                offer.refused.push((tool.name.to_string(), why.clone()));
                continue;
            }
        };
        match made {
            Ok(mut action) => {
                action.about.meta.insert(SERVER.into(), server.name.as_str().into());
                action.about.meta.insert(TOOL.into(), tool.name.as_ref().into());
                action.tenant = served.key.owner.clone();
                offer.actions.push(action);
            }
            Err(error) => offer.refused.push((tool.name.to_string(), error.to_string())),
        }
    }
    offer
}

/// The breaker of a server: one for all its tools.
pub fn breaker_key(server: &Server) -> String {
    breaker::key("mcp", Some(&server.name))
}

/// Whether an action is one of this server's.
pub fn is_of(action: &Action, key: &ServerKey) -> bool {
    let server = action.about.meta.get(SERVER).and_then(Value::as_str);
    server == Some(&key.name) && action.tenant == key.owner
}

fn accepted(
    around: &Arc<Surroundings>,
    served: &Arc<ServedServer>,
    tool: &Tool,
    name: &str,
) -> Result<Action, schema::Error> {
    let server = &served.server;
    // Where the server has no limit of its own, it is that of all tools.
    let timeout_ms = server.timeout_ms.unwrap_or(around.kernel.limits().timeout_ms);
    let hints = Hints::of(tool.annotations.as_ref());
    let mut input = Value::Object(tool.input_schema.as_ref().clone());
    show_hidden_characters(&mut input);
    drop_unreadable_patterns(&mut input);
    if let Value::Object(input) = &mut input {
        // The protocol says that it is an object; some servers do not.
        input.entry("type").or_insert_with(|| "object".into());
    }
    let description = tool.description.as_deref().unwrap_or_default();
    let description = if description.is_empty() {
        format!("{} of {}", tool.name, server.name)
    } else {
        visible(description).into_owned()
    };
    let support = support(tool);
    let work = ToolCall {
        around: Arc::downgrade(around),
        served: served.clone(),
        tool: tool.name.to_string(),
        repeatable: hints.is_repeatable(),
        insists: Arc::default(),
        timeout_ms,
    };
    let policy = Policy { tasking: tasking(support), ..hints.policy(timeout_ms, server) };
    let mut action =
        Action::new(name, &description, input, policy, Arc::new(work))?.allowed_to(FOREIGN_TOOLS);
    let annotated = tool.annotations.as_ref().and_then(|annotations| annotations.title.clone());
    action.about.title = tool.title.clone().or(annotated).map(|title| visible_line(&title).into_owned());
    match tool.output_schema.as_ref().map(|output| Value::Object(output.as_ref().clone())) {
        Some(mut output) => {
            show_hidden_characters(&mut output);
            drop_unreadable_patterns(&mut output);
            action.giving(output)
        }
        None => Ok(action),
    }
}

/// Writes hidden characters of titles and descriptions out, at every depth: models and people read them, and must see what is there.
fn show_hidden_characters(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if matches!(name.as_str(), "description" | "title" | "$comment") => {
                        *text = visible(text).into_owned();
                    }
                    Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
                    Value::Array(_) | Value::Object(_) => show_hidden_characters(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(show_hidden_characters),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Drops patterns that no engine here can read. Their server checks them, and its tool would be lost because of one.
fn drop_unreadable_patterns(schema: &mut Value) {
    let is_readable = |pattern: &str| {
        let probe = json!({"type": "object", "properties": {"text": {"type": "string", "pattern": pattern}}});
        schema::Schema::compile(probe).is_ok()
    };
    match schema {
        Value::Object(members) => {
            members.retain(|name, member| match (name.as_str(), &*member) {
                ("pattern", Value::String(pattern)) => is_readable(pattern),
                _ => true,
            });
            if let Some(Value::Object(by_pattern)) = members.get_mut("patternProperties") {
                by_pattern.retain(|pattern, _| is_readable(pattern));
            }
            members.values_mut().for_each(drop_unreadable_patterns);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_unreadable_patterns),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Through us a tool that must be a task there can be called in either way: whoever waits for the answer gets it.
fn tasking(support: Support) -> Tasking {
    match support {
        Support::Forbidden => Tasking::Forbidden,
        Support::Optional | Support::Required => Tasking::Optional,
    }
}

/// Not listed, and answered with what is wrong.
fn quarantined(served: &ServedServer, tool: &Tool, name: &str) -> Result<Action, schema::Error> {
    let (server, own) = (served.server.name.clone(), tool.name.to_string());
    let work = move |_, _| std::future::ready(Err(Halt::Fault(call::quarantined(&server, &own))));
    let about = "Its definition has changed since it was accepted.";
    let action = Action::tool(name, about, schema::any_object(), Policy::quick_read(), work)?;
    let mut action = action.allowed_to(FOREIGN_TOOLS).hidden();
    action.about.meta.insert(QUARANTINED.into(), true.into());
    Ok(action)
}

/// What the server says about the effects of a tool, with the defaults of the protocol.
struct Hints {
    read_only: bool,
    idempotent: bool,
    destructive: bool,
    open_world: bool,
}

impl Hints {
    fn of(annotations: Option<&ToolAnnotations>) -> Self {
        let hint = |pick: fn(&ToolAnnotations) -> Option<bool>, default| {
            annotations.and_then(pick).unwrap_or(default)
        };
        let read_only = hint(|a| a.read_only_hint, false);
        Self {
            read_only,
            idempotent: hint(|a| a.idempotent_hint, false),
            destructive: !read_only && hint(|a| a.destructive_hint, true),
            open_world: hint(|a| a.open_world_hint, true),
        }
    }

    fn is_repeatable(&self) -> bool {
        self.read_only || self.idempotent
    }

    fn policy(&self, timeout_ms: u64, server: &Server) -> Policy {
        let effect = match (self.read_only, self.idempotent) {
            (true, _) => Effect::Read,
            (false, true) => Effect::Outside(OnUnknown::Retry),
            (false, false) => Effect::Outside(OnUnknown::Fail),
        };
        let resilience = Resilience {
            // Only what may happen twice is tried twice.
            max_attempts: if self.is_repeatable() { Resilience::default().max_attempts } else { 1 },
            timeout_ms,
            total_budget_ms: timeout_ms,
            ..Resilience::default()
        };
        Policy {
            effect,
            timeout_ms: Some(timeout_ms.saturating_add(GRACE_MS)),
            // Without instances of their own, tenants share the calls of the one instance.
            concurrent_runs: server.shared.then_some(server.max_concurrent.max(1)),
            resilience: Some(resilience),
            // What fails is the server or the way to it: a tool that only fails at its task says so in a result.
            breaker: Some(breaker_key(server).into()),
            journalled: !self.read_only,
            audited: true,
            idempotent: self.is_repeatable(),
            destructive: self.destructive,
            open_world: self.open_world,
            ..Policy::read()
        }
    }
}
