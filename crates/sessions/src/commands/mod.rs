//! Every command of the session protocol, declared once: its payload, its class, its plane and its work. A face reads what it
//! needs of this from the registered actions.

mod bash;
mod conversation;
mod files;
mod models;
mod overview;
mod registry;
mod settings;
mod tree;

pub(crate) use conversation::lane;
pub(crate) use registry::create;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::action::{Cost, Effect, OnUnknown, Slotting, Versioning, Work};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use crate::access::SessionAccess;
use crate::hub::Hub;
use crate::limits;
use crate::session::Session;

/// Actions of commands are named so, with the command's type behind it.
pub const PREFIX: &str = "session.";

/// What a command changes, and how long it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Reads; short.
    Read,
    /// Answers somebody who waits; short, and no change of the session.
    Special,
    /// Works with the outside: models, programs. Long, and can be stopped.
    Work,
    /// Changes the store only; long, and can be stopped.
    Change,
    /// Stops something; short.
    Stop,
    /// Changes the store, and is never cut off.
    Steady,
    Create,
    Remove,
}

/// Which rate limit counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plane {
    Data,
    Control,
}

/// Whether it waits for its turn, or acts on what is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Session,
    Side,
}

type Run = fn(Hub, Args, Context) -> BoxFuture<'static, Result<Reply, Halt>>;

struct Row {
    name: &'static str,
    class: Class,
    plane: Plane,
    lane: Lane,
    /// The members of its payload, and those it cannot do without.
    members: Value,
    required: &'static [&'static str],
    run: Run,
}

/// Every command as an action.
pub fn all(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    of_server().into_iter().chain(of_session()).chain(of_machine()).map(|row| action(hub, row)).collect()
}

macro_rules! row {
    ($name:literal, $class:ident, $plane:ident, $lane:ident, $members:tt, [$($required:literal),*], $run:path) => {
        Row {
            name: $name,
            class: Class::$class,
            plane: Plane::$plane,
            lane: Lane::$lane,
            members: json!($members),
            required: &[$($required),*],
            run: |hub, args, context| $run(hub, args, context).boxed(),
        }
    };
}

/// What is asked of all sessions, or about one of them.
#[rustfmt::skip]
fn of_server() -> Vec<Row> {
    let (id, prompt) = (session_id(), text(limits::PROMPT_CHARS));
    vec![
        row!("list_sessions", Read, Control, Session, {}, [], registry::list),
        row!("create_session", Create, Control, Session, {"sessionId": id, "cwd": text(limits::PATH_BYTES),
            "sessionName": text(limits::NAME_CHARS), "systemPrompt": prompt, "provider": text(100), "modelId": text(200),
            "thinkingLevel": level(), "tools": {"type": "array", "maxItems": 1000, "items": text(128)}}, ["sessionId"], registry::create),
        row!("delete_session", Remove, Control, Session, {"sessionId": id}, ["sessionId"], registry::delete),
        row!("switch_session", Read, Control, Session, {"sessionId": id, "afterSeq": {"type": "integer", "minimum": 0}},
            ["sessionId"], registry::switch),
        row!("get_metrics", Read, Control, Session, {}, [], overview::metrics),
        row!("health_check", Read, Control, Session, {}, [], overview::health),
        row!("get_startup_recovery", Read, Control, Session, {}, [], overview::recovery),
        row!("get_command_history", Read, Control, Session, {"sessionIdFilter": id, "commandId": text(limits::ID_CHARS),
            "fromTimestamp": {"type": "number", "minimum": 0}, "toTimestamp": {"type": "number", "minimum": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": limits::HISTORY_PAGE_MAX}}, [], overview::history),
        row!("load_session", Create, Control, Session, {"sessionId": id, "sessionPath": text(limits::PATH_BYTES)},
            ["sessionId", "sessionPath"], files::load),
        row!("list_stored_sessions", Read, Control, Session, {}, [], files::list_stored),
        row!("events", Read, Control, Side, {"sessionId": id, "afterSeq": {"type": "integer", "minimum": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000}}, ["sessionId"], overview::events),
    ]
}

/// What is asked of one session.
#[rustfmt::skip]
fn of_session() -> Vec<Row> {
    let (id, prompt, flag) = (session_id(), text(limits::PROMPT_CHARS), json!({"type": "boolean"}));
    let entry = json!({"type": "string", "minLength": 1, "maxLength": 64});
    let images = json!({"type": "array", "maxItems": limits::IMAGES, "items": {"type": "object", "required": ["data", "mimeType"],
        "properties": {"type": {"const": "image"}, "data": {"type": "string"}, "mimeType": {"type": "string", "maxLength": 100}}}});
    vec![
        row!("prompt", Work, Data, Session, {"sessionId": id, "message": prompt, "images": images,
            "streamingBehavior": {"enum": ["steer", "followUp"]}}, ["sessionId", "message"], conversation::prompt),
        row!("steer", Change, Data, Side, {"sessionId": id, "message": prompt, "images": images}, ["sessionId", "message"],
            conversation::steer),
        row!("follow_up", Change, Data, Side, {"sessionId": id, "message": prompt, "images": images}, ["sessionId", "message"],
            conversation::follow_up),
        row!("abort", Stop, Data, Side, {"sessionId": id}, ["sessionId"], conversation::abort),
        row!("abort_retry", Stop, Data, Side, {"sessionId": id}, ["sessionId"], conversation::abort_retry),
        row!("compact", Work, Data, Session, {"sessionId": id, "customInstructions": text(limits::PROMPT_CHARS)}, ["sessionId"],
            conversation::compact),
        row!("abort_compaction", Stop, Data, Side, {"sessionId": id}, ["sessionId"], conversation::abort_compaction),
        row!("extension_ui_response", Special, Data, Side, {"sessionId": id, "requestId": text(limits::ID_CHARS),
            "response": {"type": "object", "required": ["method"]}}, ["sessionId", "requestId", "response"], conversation::respond),

        row!("get_state", Read, Data, Session, {"sessionId": id}, ["sessionId"], overview::state),
        row!("get_messages", Read, Data, Session, {"sessionId": id}, ["sessionId"], tree::messages),
        row!("get_session_stats", Read, Data, Session, {"sessionId": id}, ["sessionId"], overview::stats),
        row!("get_last_assistant_text", Read, Data, Session, {"sessionId": id}, ["sessionId"], tree::last_text),
        row!("get_context_usage", Read, Data, Session, {"sessionId": id}, ["sessionId"], tree::usage),
        row!("get_commands", Read, Data, Session, {"sessionId": id}, ["sessionId"], overview::commands),
        row!("get_skills", Read, Data, Session, {"sessionId": id}, ["sessionId"], overview::skills),
        row!("get_tools", Read, Data, Session, {"sessionId": id}, ["sessionId"], overview::tools),

        row!("get_available_models", Read, Data, Session, {"sessionId": id}, ["sessionId"], models::list),
        row!("set_model", Steady, Data, Session, {"sessionId": id, "provider": text(100), "modelId": text(200)},
            ["sessionId", "provider", "modelId"], models::set),
        row!("cycle_model", Steady, Data, Session, {"sessionId": id, "direction": {"enum": ["forward", "backward"]}}, ["sessionId"],
            models::cycle),
        row!("set_thinking_level", Steady, Data, Session, {"sessionId": id, "level": level()}, ["sessionId", "level"],
            models::set_thinking),
        row!("cycle_thinking_level", Steady, Data, Session, {"sessionId": id}, ["sessionId"], models::cycle_thinking),

        row!("set_auto_compaction", Steady, Data, Session, {"sessionId": id, "enabled": flag}, ["sessionId", "enabled"],
            settings::auto_compaction),
        row!("set_auto_retry", Steady, Data, Session, {"sessionId": id, "enabled": flag}, ["sessionId", "enabled"],
            settings::auto_retry),
        row!("set_session_name", Steady, Data, Session, {"sessionId": id, "name": text(limits::NAME_CHARS)}, ["sessionId", "name"],
            settings::name),

        row!("share_session", Steady, Data, Session, {"sessionId": id, "principal": text(limits::NAME_CHARS),
            "access": {"enum": ["read", "write", "none"]}}, ["sessionId", "principal", "access"], registry::share),

        row!("new_session", Change, Data, Session, {"sessionId": id, "parentSession": text(limits::PATH_BYTES)}, ["sessionId"],
            tree::new_session),
        row!("fork", Change, Data, Session, {"sessionId": id, "entryId": entry}, ["sessionId", "entryId"], tree::fork),
        row!("get_fork_messages", Read, Data, Session, {"sessionId": id}, ["sessionId"], tree::fork_messages),
        row!("get_tree", Read, Data, Session, {"sessionId": id}, ["sessionId"], tree::show),
        row!("navigate_tree", Work, Data, Session, {"sessionId": id, "targetId": entry, "options": {"type": "object", "properties": {
            "summarize": flag, "customInstructions": {"type": "string", "maxLength": limits::PROMPT_CHARS},
            "replaceInstructions": flag, "label": {"type": "string", "maxLength": limits::NAME_CHARS}}}},
            ["sessionId", "targetId"], tree::navigate),
    ]
}

/// What of a session is in files, and what happens on the machine it works on.
#[rustfmt::skip]
fn of_machine() -> Vec<Row> {
    let (id, path, flag) = (session_id(), text(limits::PATH_BYTES), json!({"type": "boolean"}));
    vec![
        row!("list_session_files", Read, Data, Session, {"sessionId": id}, ["sessionId"], files::list),
        row!("switch_session_file", Change, Data, Session, {"sessionId": id, "sessionPath": path},
            ["sessionId", "sessionPath"], files::switch),
        row!("export_session", Steady, Data, Session, {"sessionId": id, "outputPath": path, "inline": flag}, ["sessionId"],
            files::export),
        row!("export_html", Steady, Data, Session, {"sessionId": id, "outputPath": path, "inline": flag}, ["sessionId"],
            files::export_html),

        row!("bash", Work, Data, Session, {"sessionId": id, "command": text(limits::BASH_CHARS), "excludeFromContext": flag},
            ["sessionId", "command"], bash::run),
        row!("abort_bash", Stop, Data, Side, {"sessionId": id}, ["sessionId"], bash::abort),
    ]
}

pub(crate) fn text(max: usize) -> Value {
    json!({"type": "string", "maxLength": max, "minLength": 1})
}

pub(crate) fn session_id() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": limits::ID_CHARS, "pattern": "^[a-zA-Z0-9_.-]+$"})
}

pub(crate) fn level() -> Value {
    json!({"enum": ["none", "off", "minimal", "low", "medium", "high", "xhigh"]})
}

fn action(hub: &Hub, row: Row) -> Result<Action, schema::Error> {
    let (hub, run) = (hub.clone(), row.run);
    let schema = json!({"type": "object", "properties": row.members, "required": row.required});
    let name = format!("{PREFIX}{}", row.name);
    let work: Arc<dyn Work> = Arc::new(Command { hub: hub.clone(), run, access: access(&row) });
    let policy = policy(row.class, hub.settings());
    let mut action = Action::unlisted(&name, "A command of the session protocol.", schema, policy, work)?;
    let plane = match row.plane {
        Plane::Data => "data",
        Plane::Control => "control",
    };
    let lane = match row.lane {
        Lane::Session => "session",
        Lane::Side => "side",
    };
    action.about.meta.insert("plane".to_owned(), plane.into());
    action.about.meta.insert("lane".to_owned(), lane.into());
    action.about.meta.insert("target".to_owned(), row.required.contains(&"sessionId").into());
    Ok(action)
}

struct Command {
    hub: Hub,
    run: Run,
    /// What it does with the session it names; none: it names none that exists.
    access: Option<SessionAccess>,
}

impl Work for Command {
    fn run(&self, args: Args, context: Context) -> BoxFuture<'static, Result<Reply, Halt>> {
        let id = args.text("sessionId").unwrap_or_default();
        let opened = self.access.map(|access| self.hub.open(&context.principal, id, access));
        match opened {
            Some(Err(fault)) => std::future::ready(Err(fault.into())).boxed(),
            Some(Ok(_)) | None => (self.run)(self.hub.clone(), args, context),
        }
    }
}

/// What a command does with its session.
fn access(row: &Row) -> Option<SessionAccess> {
    if !row.required.contains(&"sessionId") {
        return None;
    }
    match row.class {
        Class::Create => None,
        Class::Read => Some(SessionAccess::Read),
        Class::Special | Class::Work | Class::Change | Class::Stop | Class::Steady | Class::Remove => {
            Some(SessionAccess::Write)
        }
    }
}

fn policy(class: Class, settings: &crate::hub::Settings) -> Policy {
    let (long, short, never) = (settings.long_ms, settings.short_ms, limits::NEVER_MS);
    let (effect, versioning, timeout_ms) = match class {
        Class::Read => (Effect::Read, Versioning::None, short),
        Class::Special => (Effect::Stored, Versioning::None, short),
        Class::Work => (Effect::Outside(OnUnknown::Fail), Versioning::Bump, long),
        Class::Change => (Effect::Stored, Versioning::Bump, long),
        Class::Stop => (Effect::Stored, Versioning::Bump, short),
        Class::Steady => (Effect::Stored, Versioning::Bump, never),
        Class::Create => (Effect::Stored, Versioning::Create, never),
        Class::Remove => (Effect::Stored, Versioning::Remove, never),
    };
    let changes = !matches!(class, Class::Read | Class::Special);
    Policy {
        cost: if class == Class::Work { Cost::Work } else { Cost::Quick },
        effect,
        versioning,
        timeout_ms: Some(timeout_ms),
        payload_bytes: Some(limits::PAYLOAD_BYTES),
        slotting: Slotting::Free,
        journalled: changes,
        // The answer to a question of an extension too: it decides what a session may do.
        audited: class != Class::Read,
        destructive: class == Class::Remove,
        ..Policy::read()
    }
}

/// The session a command is for, if the caller may read it; whether it may do more was checked before the command ran.
fn session(hub: &Hub, args: &Args, context: &Context) -> Result<Arc<Session>, Fault> {
    hub.open(&context.principal, args.text("sessionId").unwrap_or_default(), SessionAccess::Read)
}

fn answer(value: Value) -> Result<Reply, Halt> {
    Ok(Output::json(value).into())
}
