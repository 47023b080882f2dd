//! From a frame to a command: read once, checked whole, refused before anything is told of it (SES-4).

use std::sync::Arc;

use orchestr8_contract::id::{Key, SubmissionId};
use orchestr8_contract::{canonical, limits::DEPENDENCIES};
use orchestr8_kernel::fingerprint::Fingerprint;
use orchestr8_kernel::registry::Registry;
use serde_json::{Map, Value, json};

use crate::commands::{Commands, Known, Plane};
use crate::limits::{ID_CHARS, SESSION_ID_CHARS};
use crate::rules::{Problems, integer, is_blank, is_longer};
use crate::strict;
use crate::wording::INVALID_JSON;

/// Ids of commands that came without one begin with this; clients may not use it.
pub const ANONYMOUS: &str = "anon:";

/// What can be said of a command before it is understood, enough to refuse it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Label {
    pub id: Option<String>,
    pub command: Option<String>,
}

impl Label {
    pub fn of(members: &Map<String, Value>) -> Self {
        let text = |name| members.get(name).and_then(Value::as_str).map(str::to_owned);
        Self { id: text("id"), command: text("type") }
    }
}

/// One command of a client, in order.
pub struct Command {
    pub known: Arc<Known>,
    pub id: Option<String>,
    pub key: Option<String>,
    pub depends_on: Vec<String>,
    pub expected: Option<u64>,
    pub session: Option<Arc<str>>,
    /// The name of a session that comes into being and was not given one.
    pub named: Option<Arc<str>>,
    /// Events after this one were missed (`switch_session`).
    pub after_seq: Option<u64>,
    /// What tells whether a repeat means the same (SES-8.3); only made where there is something to repeat.
    pub fingerprint: Option<Fingerprint>,
    /// It acts on work that is under way.
    pub is_side: bool,
    pub args: Map<String, Value>,
}

/// A command that was not understood, and everything that is wrong with it.
#[derive(Debug)]
pub struct Refused {
    pub label: Label,
    pub problems: Problems,
}

/// Reads a command, or says everything that is wrong with it. Where a session comes into being and the client did not name it,
/// `fresh` does, so that every command names its session.
pub fn command(
    mut members: Map<String, Value>,
    known: Option<Arc<Known>>,
    fresh: impl FnOnce() -> String,
) -> Result<Command, Refused> {
    let mut problems = Problems::default();
    envelope(&members, known.as_deref(), &mut problems);
    if let Some(check) = known.as_ref().and_then(|known| known.check) {
        check(&members, &mut problems);
    }
    let Some(known) = known.filter(|_| problems.is_empty()) else {
        return Err(Refused { label: Label::of(&members), problems });
    };
    let (id, key) = (take_text(&mut members, "id"), take_text(&mut members, "idempotencyKey"));
    let request = Value::Object(members);
    let fingerprint = (id.is_some() || key.is_some()).then(|| Fingerprint::whole(&request));
    let Value::Object(mut members) = request else {
        return Err(Refused { label: Label::default(), problems });
    };
    members.remove("type");
    let depends_on = match members.remove("dependsOn") {
        Some(Value::Array(ids)) => ids.into_iter().filter_map(into_text).collect(),
        Some(_) | None => Vec::new(),
    };
    let expected = members.remove("ifSessionVersion").as_ref().and_then(integer);
    let after_seq = members.get("afterSeq").and_then(integer);
    let session: Option<Arc<str>> = members.get("sessionId").and_then(Value::as_str).map(Arc::from);
    let named = (session.is_none() && known.creates()).then(|| Arc::<str>::from(fresh()));
    if let Some(named) = &named {
        members.insert("sessionId".into(), (**named).into());
    }
    // Whoever takes up events where they were does so to see what is under way.
    let is_side = known.is_side || members.contains_key("streamingBehavior") || after_seq.is_some();
    if let Some(takes) = &known.takes {
        members.retain(|name, _| takes.contains(name));
    }
    let args = match checked(&known, members) {
        Ok(args) => args,
        Err(problems) => {
            let label = Label { id, command: Some(known.name.as_ref().to_owned()) };
            return Err(Refused { label, problems });
        }
    };
    Ok(Command {
        known,
        id,
        key,
        depends_on,
        expected,
        session,
        named,
        after_seq,
        fingerprint,
        is_side,
        args,
    })
}

/// Whether a frame is a command that may go on; if not, what its sender would be told.
pub fn check(frame: &[u8], commands: &Commands, registry: &Registry) -> Result<(), String> {
    let members = strict::object(frame).map_err(|strict::Malformed| INVALID_JSON.to_owned())?;
    let kind = members.get("type").and_then(Value::as_str);
    let known = kind.and_then(|kind| commands.find(registry, kind));
    match command(members, known, String::new) {
        Ok(_) => Ok(()),
        Err(Refused { problems, .. }) => Err(problems.text()),
    }
}

/// The id under which the kernel knows a command. One that it could not keep stands for itself by its hash.
pub fn kernel_id(id: &str) -> Option<SubmissionId> {
    SubmissionId::parse(id).or_else(|_| SubmissionId::parse(&hashed(id))).ok()
}

/// The same for idempotency keys.
pub fn kernel_key(key: &str) -> Option<Key> {
    Key::parse(key).or_else(|_| Key::parse(&hashed(key))).ok()
}

fn hashed(text: &str) -> String {
    format!("sha256:{}", canonical::sha256_hex(&json!(text)))
}

/// What the rules above do not know is for the action's own schema to say.
fn checked(known: &Known, members: Map<String, Value>) -> Result<Map<String, Value>, Problems> {
    let args = Value::Object(members);
    let mut problems = Problems::default();
    if let Err(fault) = known.action.input.check(&args) {
        let errors = fault.details.as_ref().and_then(|details| details.get("errors"));
        for error in errors.and_then(Value::as_array).into_iter().flatten() {
            let part = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
            let path = part("path").trim_start_matches('/').replace('/', ".");
            problems.add(if path.is_empty() { "root" } else { &path }, part("message"));
        }
        if problems.is_empty() {
            problems.add("root", &fault.message);
        }
    }
    match args {
        Value::Object(members) if problems.is_empty() => Ok(members),
        _ => Err(problems),
    }
}

/// The members every command may have (SES-4.1), in the order clients know.
fn envelope(members: &Map<String, Value>, known: Option<&Known>, problems: &mut Problems) {
    let kind = members.get("type").and_then(Value::as_str).filter(|kind| !kind.is_empty());
    if kind.is_none() {
        problems.add("type", "Command must have a string 'type' field");
    }
    identity(members, problems);
    depends_on(members, problems);
    let expects = members.get("ifSessionVersion");
    if expects.is_some_and(|expected| integer(expected).is_none()) {
        problems.add("ifSessionVersion", "Must be a non-negative integer");
    }
    let Some(known) = known else {
        if let Some(kind) = kind {
            problems.add("type", format_args!("Unknown command type '{kind}'"));
        }
        return;
    };
    session(members, known, problems);
    if expects.is_some() && !known.guards_version() {
        problems.add("ifSessionVersion", "Only supported for session-targeted commands");
    }
}

fn identity(members: &Map<String, Value>, problems: &mut Problems) {
    let too_long = || format!("Too long (max {ID_CHARS} chars)");
    match members.get("id") {
        None => {}
        Some(id) if is_blank(id) => problems.add("id", "Must be a non-empty string if provided"),
        Some(Value::String(id)) if is_longer(id, ID_CHARS) => problems.add("id", too_long()),
        Some(Value::String(id)) if id.starts_with(ANONYMOUS) => {
            problems.add("id", format_args!("Cannot use reserved prefix '{ANONYMOUS}'"));
        }
        Some(_) => {}
    }
    match members.get("idempotencyKey") {
        None => {}
        Some(key) if is_blank(key) => {
            problems.add("idempotencyKey", "Must be a non-empty string if provided");
        }
        Some(Value::String(key)) if is_longer(key, ID_CHARS) => problems.add("idempotencyKey", too_long()),
        Some(_) => {}
    }
}

fn depends_on(members: &Map<String, Value>, problems: &mut Problems) {
    let ids = match members.get("dependsOn") {
        None => return,
        Some(Value::Array(ids)) => ids,
        Some(_) => return problems.add("dependsOn", "Must be an array of command IDs"),
    };
    if ids.len() > DEPENDENCIES {
        // The rest of them is not looked at: a list of any length would give a refusal of that length.
        return problems.add("dependsOn", format_args!("Too many dependencies (max {DEPENDENCIES})"));
    }
    for (place, id) in ids.iter().enumerate() {
        if is_blank(id) {
            problems.add(&format!("dependsOn[{place}]"), "Must be a non-empty command ID string");
        }
    }
    if !ids.is_empty() && !members.get("id").is_some_and(Value::is_string) {
        problems.add("id", "Required when dependsOn is provided");
    }
}

fn session(members: &Map<String, Value>, known: &Known, problems: &mut Problems) {
    let given = members.get("sessionId");
    match (given, known.plane) {
        (Some(id), _) if !is_blank(id) => {}
        (Some(_) | None, Plane::Data) => {
            return problems.add("sessionId", "Session commands must have a non-empty string 'sessionId'");
        }
        (Some(_) | None, Plane::Control) if known.needs_session => {
            return problems.add("sessionId", "Required non-empty string");
        }
        (Some(_) | None, Plane::Control) => return,
    }
    let Some(id) = given.and_then(Value::as_str) else { return };
    if is_longer(id, SESSION_ID_CHARS) {
        problems.add("sessionId", format_args!("Session ID too long (max {SESSION_ID_CHARS} characters)"));
    } else if !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')) {
        let what = "Session ID must contain only alphanumeric characters, underscores, dashes, and dots";
        problems.add("sessionId", what);
    }
}

fn take_text(members: &mut Map<String, Value>, name: &str) -> Option<String> {
    members.remove(name).and_then(into_text)
}

fn into_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
