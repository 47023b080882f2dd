//! Sessions for clients of MCP: three tools, and each conversation as a resource.

use std::sync::Arc;

use orchestr8_contract::content::{ResourceContents, ResourceData};
use orchestr8_contract::{Event, Fault, Output, Priority};
use orchestr8_kernel::action::{Address, OnUnknown, Resource, Slotting, Tasking};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::registry::RESOURCE_UPDATED;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema, tables};
use serde_json::{Map, Value, json};

use crate::access::SessionAccess;
use crate::commands::{self, session_id, text};
use crate::hub::Hub;
use crate::limits;
use crate::session::Session;
use crate::show;
use crate::speak::{speak, spent_schema};
use crate::tree::Tree;

const MARKDOWN: &str = "text/markdown";

/// The tools have the names that `hub::OWN_TOOLS` keeps from the model of a session.
pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    Ok(vec![start(hub)?, prompt(hub)?, get(hub)?, conversation(hub)?])
}

/// The address of a conversation.
pub fn address(session: &str) -> String {
    format!("session://{session}")
}

/// Tells the subscribers of a conversation, of its tenant only, that it has changed.
pub(crate) fn tell_changed(hub: &Hub, session: &Session) {
    let bus = hub.kernel().bus();
    if bus.has_listeners(RESOURCE_UPDATED) {
        bus.publish(Event {
            name: RESOURCE_UPDATED,
            subject: address(&session.id).into(),
            priority: Priority::Normal,
            at_ms: hub.now_ms(),
            data: Arc::new(json!({"tenant": session.tenant})),
        });
    }
}

fn tool<F, R>(
    hub: &Hub,
    name: &str,
    about: &str,
    io: [Value; 2],
    policy: Policy,
    work: F,
) -> Result<Action, schema::Error>
where
    F: Fn(Hub, Args, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Halt>> + Send + 'static,
{
    let hub = hub.clone();
    let [input, output] = io;
    Action::tool(name, about, input, policy, move |args, context| work(hub.clone(), args, context))?
        .giving(output)
}

fn closed(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn open(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// A member with a word about it.
fn member(mut schema: Value, about: &str) -> Value {
    schema["description"] = about.into();
    schema
}

fn which() -> Value {
    member(session_id(), "The id that start_session gave.")
}

fn start(hub: &Hub) -> Result<Action, schema::Error> {
    let name = json!({"type": "string", "maxLength": 128, "minLength": 1});
    let input = closed(
        json!({
            "cwd": member(text(limits::PATH_BYTES), "The folder it works in, as an absolute path; without it the server's own."),
            "name": member(text(limits::NAME_CHARS), "What people call it."),
            "model": member(text(300), "provider/id, for example offline/echo; without it the default model."),
            "systemPrompt": member(text(limits::PROMPT_CHARS), "What the agent is told before everything else."),
            "tools": {"type": "array", "maxItems": 1000, "items": name,
                      "description": "The names of the tools it may use; without it all that you may use."},
        }),
        &[],
    );
    let plain = json!({"type": "string"});
    let output = open(
        json!({"sessionId": plain, "model": plain, "cwd": plain, "createdAt": plain, "uri": plain, "name": plain}),
        &["sessionId", "model", "cwd", "createdAt", "uri"],
    );
    let about = "Starts a session: an agent with a conversation of its own that is kept, here and over restarts. Then send it \
                 messages with prompt_session.";
    let policy = Policy { slotting: Slotting::Free, ..Policy::stored() };
    Ok(tool(hub, "start_session", about, [input, output], policy, start_session)?.titled("Start a session"))
}

/// The session comes into being in the commit of the outcome: a call that is repeated under its key gets the same one.
async fn start_session(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let id = hub.kernel().ports().ids.fresh(For::Session).to_string();
    let mut wanted = Map::new();
    for (ours, theirs) in
        [("cwd", "cwd"), ("sessionName", "name"), ("systemPrompt", "systemPrompt"), ("tools", "tools")]
    {
        wanted.extend(args.get(theirs).map(|value| (ours.to_owned(), value.clone())));
    }
    if let Some(model) = args.text("model") {
        let (provider, model) = model.split_once('/').ok_or_else(|| {
            Fault::invalid("model: write provider/id, for example offline/echo").with("path", "/model")
        })?;
        wanted.insert("provider".to_owned(), provider.into());
        wanted.insert("modelId".to_owned(), model.into());
    }
    wanted.insert("sessionId".to_owned(), id.as_str().into());
    let tenant = context.principal.tenant.clone();
    let mut reply = commands::create(hub, Args::new(wanted), context).await?;
    reply.effects.then_one(tables::version_create(tenant.as_str(), &id));
    if let Output::Json { value } = &mut reply.output {
        let info = value["sessionInfo"].take();
        let mut told = json!({"sessionId": id, "model": show::model_name(&info), "cwd": info["cwd"],
                              "createdAt": info["createdAt"], "uri": address(&id)});
        if info["sessionName"].is_string() {
            told["name"] = info["sessionName"].clone();
        }
        *value = told;
    }
    Ok(reply)
}

fn prompt(hub: &Hub) -> Result<Action, schema::Error> {
    let message = member(text(limits::PROMPT_CHARS), "What to say to the agent.");
    let input = closed(json!({"sessionId": which(), "message": message}), &["sessionId", "message"]);
    let output = open(
        json!({"sessionId": {"type": "string"}, "text": {"type": "string", "description": "What the agent said last."},
               "stopReason": {"enum": ["stop", "length", "toolUse"]}, "usage": spent_schema()}),
        &["sessionId", "text", "stopReason", "usage"],
    );
    let about = "Sends a message to a session and waits until its agent is done, tool calls included. While the session works on \
                 something else, the message waits for its turn. Tells progress; may run as a task.";
    let policy = Policy {
        // The agent's own tool calls need slots: prompts that held all of them would starve each other.
        slotting: Slotting::Free,
        timeout_ms: Some(hub.settings().long_ms),
        tasking: Tasking::Optional,
        ..Policy::outside(OnUnknown::Fail)
    };
    Ok(tool(hub, "prompt_session", about, [input, output], policy, prompt_session)?
        .titled("Prompt a session"))
}

async fn prompt_session(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context, "sessionId")?;
    let said = speak(&context, &session.id, args.text("message").unwrap_or_default()).await?;
    Ok(Output::json(said.told(&session.id)).into())
}

fn get(hub: &Hub) -> Result<Action, schema::Error> {
    let input = closed(json!({"sessionId": which()}), &["sessionId"]);
    let about = "Says how a session stands: whether it works, what its agent said last, the newest messages, and what it has \
                 used. The whole conversation is the resource session://<id>.";
    let policy = Policy { slotting: Slotting::Free, ..Policy::read() };
    Ok(tool(hub, "get_session", about, [input, show::schema()], policy, get_session)?
        .titled("Look at a session"))
}

async fn get_session(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context, "sessionId")?;
    let (header, tree) = Tree::of(&hub, &session).await?;
    Ok(Output::json(show::state(&hub, &session, header, &tree)).into())
}

fn conversation(hub: &Hub) -> Result<Action, schema::Error> {
    let resource = Resource {
        address: Address::Template(address("{id}")),
        mime_type: Some(MARKDOWN.into()),
        size: None,
    };
    let about = "The conversation of a session as Markdown. Subscribe to hear when it has grown.";
    let hub = hub.clone();
    Action::resource("session", about, resource, move |args: Args, context: Context| {
        let hub = hub.clone();
        async move {
            let session = session(&hub, &args, &context, "id")?;
            let (header, tree) = Tree::of(&hub, &session).await?;
            let contents = ResourceContents {
                uri: args.text("uri").unwrap_or_default().to_owned(),
                mime_type: Some(MARKDOWN.into()),
                data: ResourceData::Text(show::markdown(&hub, &session, &header, &tree)),
                meta: None,
            };
            Ok(Output::Resource { contents: vec![contents] }.into())
        }
    })
}

fn session(hub: &Hub, args: &Args, context: &Context, member: &str) -> Result<Arc<Session>, Fault> {
    hub.open(&context.principal, args.text(member).unwrap_or_default(), SessionAccess::Read)
}
