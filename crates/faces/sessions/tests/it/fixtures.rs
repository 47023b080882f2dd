//! Sessions to try the face with: they are created, deleted, prompted and renamed, and declared as the domain declares its own.
//!
//! A prompt of `wait 100` takes that many milliseconds, `say 3` has so many events, `fail words` fails with these words;
//! anything else is answered at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::{Code, Event, Fault, Output, Priority};
use orchestr8_kernel::action::{Cost, Effect, OnUnknown, Slotting, Versioning};
use orchestr8_kernel::{Action, Args, Context, Halt, Kernel, Policy, Reply};
use parking_lot::Mutex;
use serde_json::{Value, json};

type Given = Result<Reply, Halt>;

/// Sessions there may be, few enough to be reached in a test.
const SESSIONS: usize = 5;

#[derive(Default)]
pub struct Sessions {
    by_id: Mutex<BTreeMap<String, Session>>,
}

#[derive(Default, Clone)]
struct Session {
    name: Option<String>,
    events: Vec<Value>,
}

impl Sessions {
    fn info(&self, id: &str) -> Result<Value, Fault> {
        let by_id = self.by_id.lock();
        let session = by_id.get(id).ok_or_else(|| not_found(id))?;
        let mut info = json!({"sessionId": id, "thinkingLevel": "off", "isStreaming": false, "messageCount": 0,
                              "createdAt": "2026-01-01T00:00:00.000Z"});
        if let Some(name) = &session.name {
            info["sessionName"] = name.as_str().into();
        }
        Ok(info)
    }

    fn create(&self, id: &str) -> Result<Value, Fault> {
        let mut by_id = self.by_id.lock();
        if by_id.contains_key(id) {
            return Err(Fault::new(Code::StateConflict, format!("Session {id} already exists")));
        }
        if by_id.len() >= SESSIONS {
            let text = format!("Session limit reached ({SESSIONS} sessions)");
            return Err(Fault::new(Code::ResourceExhausted, text));
        }
        by_id.insert(id.to_owned(), Session::default());
        drop(by_id);
        Ok(json!({"sessionId": id, "sessionInfo": self.info(id)?}))
    }

    /// Keeps an event and tells of it; an update is only told.
    pub fn tell(&self, kernel: &Kernel, id: &str, event: Value) {
        let mut by_id = self.by_id.lock();
        let Some(session) = by_id.get_mut(id) else { return };
        session.events.push(event.clone());
        let seq = session.events.len();
        drop(by_id);
        let priority = match event["type"].as_str() {
            Some("message_update") => Priority::Normal,
            Some(_) | None => Priority::Critical,
        };
        let data = json!({"tenant": "local", "sessionId": id, "seq": seq, "event": event});
        kernel.bus().publish(Event {
            name: "session.event",
            subject: id.into(),
            priority,
            at_ms: 0,
            data: Arc::new(data),
        });
    }
}

fn not_found(id: &str) -> Fault {
    Fault::new(Code::NotFound, format!("Session {id} not found"))
}

fn give(value: Value) -> Given {
    Ok(Output::json(value).into())
}

fn session(args: &Args) -> String {
    args.text("sessionId").unwrap_or_default().to_owned()
}

/// The classes of the protocol's commands.
fn read() -> Policy {
    Policy { timeout_ms: Some(30_000), slotting: Slotting::Free, ..Policy::quick_read() }
}

fn change(versioning: Versioning) -> Policy {
    let policy = Policy { slotting: Slotting::Free, timeout_ms: Some(u64::MAX / 2), ..Policy::stored() };
    Policy { versioning, audited: false, cost: Cost::Quick, ..policy }
}

fn long() -> Policy {
    let policy = Policy { slotting: Slotting::Free, timeout_ms: Some(300_000), ..Policy::stored() };
    let effect = Effect::Outside(OnUnknown::Fail);
    Policy { versioning: Versioning::Bump, audited: false, effect, ..policy }
}

fn schema(members: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": members, "required": required, "additionalProperties": false})
}

/// Plane, lane and whether a session is needed.
struct Class(&'static str, &'static str, bool);

const SERVER: Class = Class("control", "session", false);
const TARGETED: Class = Class("control", "session", true);
const SESSION: Class = Class("data", "session", true);
const SIDE: Class = Class("data", "side", true);

fn action<F, R>(name: &str, class: &Class, input: Value, policy: Policy, work: F) -> Action
where
    F: Fn(Args, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Given> + Send + 'static,
{
    let mut action =
        Action::tool(&format!("session.{name}"), "A command.", input, policy, work).unwrap().hidden();
    let Class(plane, lane, target) = class;
    let meta = json!({"plane": plane, "lane": lane, "target": target});
    action.about.meta = meta.as_object().unwrap().clone();
    action
}

pub fn register(kernel: &Kernel) -> Arc<Sessions> {
    let sessions = Arc::new(Sessions::default());
    let all = of_the_server(&sessions).into_iter().chain(of_a_session(&sessions)).chain(others(&sessions));
    for action in all {
        kernel.registry().register(action).unwrap();
    }
    sessions
}

fn of_the_server(sessions: &Arc<Sessions>) -> Vec<Action> {
    let id = json!({"sessionId": {"type": "string"}});
    let (s1, s2, s3, s4) = (sessions.clone(), sessions.clone(), sessions.clone(), sessions.clone());
    let create = action(
        "create_session",
        &TARGETED,
        schema(json!({"sessionId": {"type": "string"}, "cwd": {"type": "string"}}), &["sessionId"]),
        change(Versioning::Create),
        move |args, _| {
            let given = s1.create(&session(&args)).map_err(Halt::from).and_then(give);
            async { given }
        },
    );
    let delete = action(
        "delete_session",
        &TARGETED,
        schema(id.clone(), &["sessionId"]),
        change(Versioning::Remove),
        move |args, _| {
            let id = session(&args);
            let gone = s2.by_id.lock().remove(&id).ok_or_else(|| not_found(&id));
            async { gone.map_err(Halt::from).and_then(|_| give(json!({"deleted": true}))) }
        },
    );
    let switch = action(
        "switch_session",
        &TARGETED,
        schema(json!({"sessionId": {"type": "string"}, "afterSeq": {"type": "integer"}}), &["sessionId"]),
        read(),
        move |args, _| {
            let info = s3.info(&session(&args));
            async { info.map_err(Halt::from).and_then(|info| give(json!({"sessionInfo": info}))) }
        },
    );
    let list = action("list_sessions", &SERVER, schema(json!({}), &[]), read(), move |_, _| {
        let ids: Vec<String> = s4.by_id.lock().keys().cloned().collect();
        let all: Vec<Value> = ids.iter().map(|id| s4.info(id).unwrap()).collect();
        async move { give(json!({"sessions": all})) }
    });
    vec![create, delete, switch, list]
}

fn of_a_session(sessions: &Arc<Sessions>) -> Vec<Action> {
    let id = json!({"sessionId": {"type": "string"}});
    let (s1, s2, s3) = (sessions.clone(), sessions.clone(), sessions.clone());
    let state = action("get_state", &SESSION, schema(id.clone(), &["sessionId"]), read(), move |args, _| {
        let info = s1.info(&session(&args));
        async { info.map_err(Halt::from).and_then(give) }
    });
    let name = json!({"sessionId": {"type": "string"}, "name": {"type": "string"}});
    let name = action(
        "set_session_name",
        &SESSION,
        schema(name, &["sessionId", "name"]),
        change(Versioning::Bump),
        move |args, _| {
            let (id, name) = (session(&args), args.text("name").unwrap_or_default().to_owned());
            let named = s2.by_id.lock().get_mut(&id).map(|session| session.name = Some(name));
            async move { named.ok_or_else(|| not_found(&id).into()).and_then(|()| give(Value::Null)) }
        },
    );
    let message = json!({"sessionId": {"type": "string"}, "message": {"type": "string"},
                         "streamingBehavior": {"type": "string"}, "images": {"type": "array", "maxItems": 2}});
    let prompt = action(
        "prompt",
        &SESSION,
        schema(message.clone(), &["sessionId", "message"]),
        long(),
        move |args, context| prompt(s3.clone(), args, context),
    );
    let steer = action("steer", &SIDE, schema(message, &["sessionId", "message"]), long(), |_, _| async {
        give(Value::Null)
    });
    let usage =
        action("get_context_usage", &SESSION, schema(id.clone(), &["sessionId"]), read(), |_, _| async {
            give(Value::Null)
        });
    let ui = json!({"sessionId": {"type": "string"}, "requestId": {"type": "string"}, "response": {"type": "object"}});
    let ui = action("extension_ui_response", &SIDE, schema(ui, &["sessionId"]), read(), |_, _| async {
        give(Value::Null)
    });
    vec![state, name, prompt, steer, usage, ui]
}

async fn prompt(sessions: Arc<Sessions>, args: Args, context: Context) -> Given {
    let id = session(&args);
    sessions.info(&id)?;
    let message = args.text("message").unwrap_or_default();
    let (word, rest) = message.split_once(' ').unwrap_or((message, ""));
    let number = rest.parse::<u64>().unwrap_or_default();
    match word {
        "wait" => context.kernel.ports().clock.sleep(Duration::from_millis(number)).await,
        "fail" => return Err(Fault::new(Code::AgentFailed, rest.to_owned()).into()),
        "say" => (1..=number).for_each(|n| {
            sessions.tell(&context.kernel, &id, json!({"type": "message_end", "n": n}));
        }),
        "update" => (1..=number).for_each(|n| {
            sessions.tell(&context.kernel, &id, json!({"type": "message_update", "n": n}));
        }),
        _ => {}
    }
    give(Value::Null)
}

fn others(sessions: &Arc<Sessions>) -> Vec<Action> {
    let s1 = sessions.clone();
    let events = json!({"sessionId": {"type": "string"}, "afterSeq": {"type": "integer"}, "limit": {"type": "integer"}});
    let events = Action::tool(
        "session.events",
        "Events.",
        schema(events, &["sessionId"]),
        read(),
        move |args, _| {
            let number = |name| args.get(name).and_then(Value::as_u64).unwrap_or_default();
            let events =
                s1.by_id.lock().get(&session(&args)).map(|found| found.events.clone()).unwrap_or_default();
            let (after, limit) = (number("afterSeq"), usize::try_from(number("limit")).unwrap());
            let numbered = (1_u64..).zip(&events).filter(|(seq, _)| *seq > after);
            let page: Vec<Value> =
                numbered.take(limit).map(|(seq, event)| json!({"seq": seq, "event": event})).collect();
            async move { give(json!({"complete": page.len() < limit, "events": page, "lastSeq": events.len()})) }
        },
    );
    let metrics = action("get_metrics", &SERVER, schema(json!({}), &[]), read(), |_, _| async {
        give(json!({"sessionCount": 1, "commandsRejected": {"sessionLimit": 0}}))
    });
    let health = action("health_check", &SERVER, schema(json!({}), &[]), read(), |_, _| async {
        give(json!({"healthy": true, "issues": [], "hasOpenCircuit": false, "hasOpenBashCircuit": false}))
    });
    vec![events.unwrap().hidden(), metrics, health]
}

/// The action that tells of the last start; only some tests have it.
pub fn recovery() -> Action {
    action("get_startup_recovery", &SERVER, schema(json!({}), &[]), read(), |_, _| async {
        give(json!({"enabled": true, "journalPath": "/var/lib/orchestr8", "recoveredOutcomes": 1,
                    "recoveredOutcomeIds": ["c1"], "recoveredOutcomeIdsTruncated": false}))
    })
}
