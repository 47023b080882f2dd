//! Sessions come, are listed, are followed, and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Event, Fault, Output, Priority};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Args, Context, Halt, Reply, Transport};
use orchestr8_models::Thinking;
use serde_json::{Value, json};

use super::{answer, session};
use crate::access::SessionAccess;
use crate::hub::{Hub, Room};
use crate::limits;
use crate::news;
use crate::record::{self, Header, Stats};
use crate::session::{Draft, Session, Slot};
use crate::tables;

pub async fn list(hub: Hub, _: Args, context: Context) -> Result<Reply, Halt> {
    let sessions: Vec<Value> =
        hub.visible_to(&context.principal).iter().map(|session| hub.info(session)).collect();
    answer(json!({"sessions": sessions}))
}

pub async fn create(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let id: Arc<str> = args.text("sessionId").unwrap_or_default().into();
    let room = hub.room(&context.principal.tenant, &id)?;
    let cwd = match args.text("cwd") {
        Some(cwd) => folder(&hub, &context.principal.tenant, cwd).await?,
        None => hub.settings().cwd_of(&context.principal.tenant).display().to_string(),
    };
    let mut header = blank(&hub, cwd);
    header.owner = Some(context.principal.name.to_string());
    header.name = args.text("sessionName").map(str::to_owned);
    header.system = args.text("systemPrompt").map(str::to_owned);
    if let (Some(provider), Some(model)) = (args.text("provider"), args.text("modelId")) {
        hub.model_named(provider, model)?;
        (header.provider, header.model) = (provider.to_owned(), model.to_owned());
    }
    header.thinking = args.text("thinkingLevel").and_then(|level| level.parse().ok()).unwrap_or_default();
    header.tools = args.get("tools").and_then(|tools| serde_json::from_value(tools.clone()).ok());
    let session = Arc::new(Session::new(context.principal.tenant.clone(), id, hub.now_ms(), 0, header));
    Ok(begin(&hub, &context, session, room, Batch::new()))
}

/// The reply of whatever makes a session: it is there once it is durable.
pub fn begin(hub: &Hub, context: &Context, session: Arc<Session>, room: Room, entries: Batch) -> Reply {
    let mut effects = Batch::new();
    let record = record::text(&session.header());
    effects.then_one(tables::session_insert(session.whose(), session.created_ms, record));
    effects.merge(entries);
    let output = json!({"sessionId": &*session.id, "sessionInfo": hub.info(&session)});
    let (hub, transport) = (hub.clone(), context.transport);
    Reply::new(Output::json(output), effects).then(move || {
        hub.put(session.clone());
        drop(room);
        tell(&hub, transport, news::CREATED, &session, json!({"sessionInfo": hub.info(&session)}));
    })
}

/// What a fresh session begins with.
pub fn blank(hub: &Hub, cwd: String) -> Header {
    let model = hub.catalog().default();
    Header {
        owner: None,
        shared: BTreeMap::new(),
        name: None,
        cwd,
        provider: model.about().provider.clone(),
        model: model.about().id.clone(),
        thinking: Thinking::Off,
        auto_compaction: true,
        auto_retry: true,
        system: None,
        tools: None,
        parent: None,
        file: None,
        leaf: None,
        next: 0,
        messages: 0,
        stats: Stats::default(),
    }
}

/// The real path of a folder that sessions may work in.
pub async fn folder(hub: &Hub, tenant: &Tenant, path: &str) -> Result<String, Fault> {
    let (hub, tenant, path) = (hub.clone(), tenant.clone(), path.to_owned());
    let resolve = move || hub.settings().roots.of_tenant(&tenant).resolve(&path);
    let resolved = tokio::task::spawn_blocking(resolve).await;
    let resolved = resolved.map_err(|error| Fault::internal("a folder was not resolved").because(error))?;
    Ok(resolved?.display().to_string())
}

pub async fn delete(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    check_belongs(&session, &context, "deletes it")?;
    for slot in [Slot::Turn, Slot::Compaction, Slot::Bash] {
        session.doing.stop(slot).await;
    }
    let [first, rest @ ..] = tables::session_delete(session.whose());
    let mut effects = Batch::new();
    effects.then_one(first);
    for statement in rest {
        effects.then(statement);
    }
    let reply = Reply::new(Output::json(json!({"deleted": true})), effects);
    Ok(reply.then(move || {
        hub.remove(&session);
        tell(&hub, context.transport, news::DELETED, &session, json!({}));
    }))
}

/// What a session is shared for does not include giving it away.
fn check_belongs(session: &Session, context: &Context, what: &str) -> Result<(), Fault> {
    match session.with_header(|header| header.belongs_to(&context.principal)) {
        true => Ok(()),
        false => {
            let text = format!("only the principal that a session belongs to {what}");
            Err(Fault::new(Code::Unauthorized, text))
        }
    }
}

/// Shares a session with another principal, or ends that. Only the one it belongs to decides it.
pub async fn share(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    check_belongs(&session, &context, "shares it")?;
    let name = args.text("principal").unwrap_or_default().to_owned();
    let access = match args.text("access") {
        Some("read") => Some(SessionAccess::Read),
        Some("write") => Some(SessionAccess::Write),
        Some(_) | None => None,
    };
    let mut draft = Draft::new(&session, hub.now_ms());
    let shared = &mut draft.header.shared;
    match access {
        Some(access) => shared.insert(name, access),
        None => shared.remove(&name),
    };
    if shared.len() > limits::SHARED {
        let text = format!("a session is shared with at most {} principals", limits::SHARED);
        return Err(Fault::new(Code::ResourceExhausted, text).into());
    }
    let told = json!({"shared": shared});
    Ok(draft.into_reply(told, hub.kernel()))
}

/// The face does the following; here is only what it is told.
pub async fn switch(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    answer(json!({"sessionInfo": hub.info(&session), "lastSeq": session.last_seq()}))
}

/// A face tells its own clients, in its own order; what came another way is told here.
fn tell(hub: &Hub, transport: Transport, name: &'static str, session: &Session, more: Value) {
    if transport != Transport::Internal {
        return;
    }
    let mut data = json!({"sessionId": &*session.id});
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    hub.kernel().bus().publish(Event {
        name,
        subject: session.tenant.as_str().into(),
        priority: Priority::Critical,
        at_ms: hub.now_ms(),
        data: Arc::new(data),
    });
}
