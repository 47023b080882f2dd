//! Where every governed call passes: role, session, work, canonical error, record, commit, answer. In this order (ERR-5, ERR-6).

use std::any::Any;
use std::backtrace::Backtrace;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::canonical::sha256_hex;
use orchestr8_contract::envelope::{Role, Surroundings, Thrown, canonical};
use orchestr8_contract::{Code, Envelope, Fault, Output};
use orchestr8_kernel::action::{Halt, Reply};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Args, Context};
use serde_json::{Map, Value, json};

use crate::fields::Fields;
use crate::hub::Hub;
use crate::limits;
use crate::locks::{self, is_hard};
use crate::recorder::Recorder;
use crate::refusal::Refusal;
use crate::root::Placed;
use crate::session::Session;
use crate::trail::{Change, Record, WriteStage};
use crate::write_turn::{TurnSlot, WriteTurn};

/// A governed tool.
pub struct Tool {
    pub name: &'static str,
    pub about: &'static str,
    pub roles: &'static [Role],
    pub input: fn() -> Value,
    /// Whether it changes files of the workspace.
    pub changes: bool,
    pub work: fn(Call) -> BoxFuture<'static, Result<Done, Refusal>>,
}

pub const BOTH: &[Role] = &Role::ALL;

/// One call, as a tool gets it.
pub struct Call {
    pub hub: Hub,
    pub role: Role,
    pub fields: Fields,
    pub context: Context,
    pub conversation: Arc<str>,
    session: Option<Arc<Session>>,
    /// What all entries of this call say.
    at: Surroundings,
    args_hash: String,
    /// The turn to write, held until the outcome is on record.
    turn: TurnSlot,
}

impl Call {
    /// The session of the connection, without which most tools do nothing.
    pub fn session(&self) -> Result<Arc<Session>, Refusal> {
        self.session.clone().ok_or_else(|| {
            Refusal::new(
                Code::SessionNotInitialized,
                "no session has begun on this connection; call begin_session",
            )
        })
    }

    /// Waits for the turn to write and keeps it until the outcome of this call is on record.
    pub async fn take_turn(&self, session: &Session) -> Result<(), Refusal> {
        let turn = WriteTurn::take(session, &self.hub.ports().clock).await?;
        *self.turn.lock() = Some(turn);
        Ok(())
    }

    /// Puts on record how far the write of this call has come.
    pub async fn record_stage(&self, stage: WriteStage, change: Change) -> Result<(), Refusal> {
        let session = self.session()?;
        let known = Envelope::tool_failure(Code::UnknownToolFailure, "", self.at.clone());
        let record = Record::stage(&known, self.args_hash.clone(), stage, change);
        let ports = self.hub.ports();
        let written = session.trail.append(record.body(&ports.redactor), ports.clock.now_ms()).await;
        written.map(|_| ()).map_err(|error| error.refusal())
    }
}

/// What a tool has done, until it is on record.
#[derive(Default)]
pub struct Done {
    pub output: Value,
    pub change: Option<Change>,
    /// Taken back if the record fails.
    pub placed: Option<Placed>,
    /// The session that has begun.
    pub began: Option<Arc<Session>>,
    /// What is committed once it is on record.
    pub batch: Option<Batch>,
}

impl Done {
    pub fn with(output: Value) -> Self {
        Self { output, ..Self::default() }
    }
}

/// Serves a call from one end to the other.
pub async fn serve(hub: Hub, tool: &'static Tool, args: Args, context: Context) -> Result<Reply, Halt> {
    let fields = Fields::new(args.into_value());
    // What answers for a call tells of that call, not of itself.
    let args_hash = match fields.text("args_hash") {
        Ok(Some(hash)) if tool.name == "refused_call" => hash.to_owned(),
        Ok(_) | Err(_) => sha256_hex(fields.value()),
    };
    let named = fields.text("workspace_root").ok().flatten().map(str::to_owned);
    let conversation = context.conversation().unwrap_or_else(|| "none".into());
    let session = hub.session(&conversation);
    let role = Role::ALL.into_iter().find(|role| context.principal.has(role.access()));
    let mut at = surroundings(&hub, tool, &fields, role, session.as_deref());
    let turn = TurnSlot::default();
    let ended = match role {
        None => Err(Refusal::new(Code::InsufficientPermissions, "only a planner or an executor may do this")),
        Some(role) if !tool.roles.contains(&role) => Err(wrong_role(tool, role)),
        Some(role) => {
            let call = Call {
                hub: hub.clone(),
                role,
                fields,
                context: context.clone(),
                conversation: conversation.clone(),
                session: session.clone(),
                at: at.clone(),
                args_hash: args_hash.clone(),
                turn: turn.clone(),
            };
            run(&hub, tool, call).await
        }
    };
    let began = ended.as_ref().ok().and_then(|done| done.began.clone());
    if let Some(session) = &began {
        at.session_id = Some(session.id.clone());
        at.workspace_root = session.root.path().to_str().map(str::to_owned);
    }
    let session = began.clone().or(session);
    let ended = match ended {
        // A question is no end; the call comes again with the answer.
        Err(Refusal { asks: Some(asks), .. }) => return Err(Halt::Asks(asks)),
        ended => ended.map_err(|refusal| envelope(&hub, refusal, at.clone())),
    };
    let named = named.filter(|_| tool.name == "begin_session");
    let recorder = Recorder { hub: &hub, session: session.as_deref(), context: &context, named };
    let recorded = recorder.record(&ended, &at, args_hash.clone()).await;
    if recorded.is_err() && began.is_some() {
        hub.forget(&conversation);
    }
    let ended = match recorded.and(ended) {
        Ok(done) => recorder.commit(done, &at, args_hash).await,
        Err(failed) => Err(failed),
    };
    if let (Some(session), Err(failed)) = (session, &ended)
        && tool.name == "write_file"
        && is_hard(failed.envelope.error_code)
    {
        lock(&hub, &session, &context, failed.envelope.error_code, tool.name).await;
    }
    conclude(ended)
}

/// Keeps the principal from writing on until the failure is reported.
async fn lock(hub: &Hub, session: &Session, context: &Context, code: Code, tool: &str) {
    let mut batch = Batch::new();
    batch.then(locks::lock(session, context, code, tool, hub.ports().clock.now_ms()));
    if let Err(error) = hub.ports().store.commit(batch).await {
        context
            .log()
            .error("a failed write could not lock its workspace", json!({"cause": error.to_string()}));
    }
}

/// The work, within its time; whatever it throws comes back as a refusal.
async fn run(hub: &Hub, tool: &Tool, call: Call) -> Result<Done, Refusal> {
    let log = call.context.log();
    let limit = Duration::from_millis(hub.settings().call_ms);
    // Making the future is caught too: a tool may fail before its first wait.
    let work = AssertUnwindSafe(async move { (tool.work)(call).await }).catch_unwind();
    tokio::select! {
        biased;
        ended = work => ended.unwrap_or_else(|panic| {
            log.error("a governed tool panicked", json!({"tool": tool.name, "panic": panic_text(panic.as_ref())}));
            let thrown = Thrown::error("Panic", None, "the tool failed unexpectedly");
            Err(Refusal::new(Code::InternalError, "the tool failed unexpectedly").because(thrown))
        }),
        () = hub.ports().clock.sleep(limit) => {
            let message = format!("no answer within {} ms; what was begun is taken back", limit.as_millis());
            Err(Refusal::new(Code::Timeout, message))
        }
    }
}

fn wrong_role(tool: &Tool, role: Role) -> Refusal {
    let allowed: Vec<&str> = tool.roles.iter().map(|role| role.as_str()).collect();
    let message = format!(
        "{} is for the {}; this connection is the {}'s",
        tool.name,
        allowed.join(" and "),
        role.as_str()
    );
    Refusal::new(Code::UnauthorizedAction, message)
}

fn surroundings(
    hub: &Hub,
    tool: &Tool,
    fields: &Fields,
    role: Option<Role>,
    session: Option<&Session>,
) -> Surroundings {
    // What is not well formed is refused by the tool; here it just is not told.
    let plan = |name| fields.plan_hash(name).ok().flatten();
    let phase = fields.phase_id().ok().flatten().map(str::to_owned);
    Surroundings {
        tool_name: match (tool.name, fields.text("name")) {
            ("unknown_tool" | "refused_call", Ok(Some(name))) => {
                hub.ports().redactor.text(&name.chars().take(128).collect::<String>()).into_owned()
            }
            _ => tool.name.to_owned(),
        },
        timestamp: iso(hub.ports().clock.now_ms()),
        role,
        session_id: session.map(|session| session.id.clone()),
        workspace_root: session.and_then(|session| session.root.path().to_str().map(str::to_owned)),
        phase_id: phase,
        plan_hash: plan("plan").or_else(|| plan("plan_hash")).or_else(|| plan("hash")),
    }
}

/// The canonical error of a refusal, made by the constructor that fits, without secrets.
pub fn envelope(hub: &Hub, refusal: Refusal, at: Surroundings) -> Box<Failed> {
    let redactor = &hub.ports().redactor;
    let Refusal { code, message, details, invariant, thrown, unknown, startup, asks: _ } = refusal;
    let thrown = thrown.map(|thrown| *thrown).or_else(|| {
        (canonical(code) != code).then(|| Thrown::error("Fault", Some(code.as_str()), message.clone()))
    });
    let mut envelope = match (invariant, startup, thrown.clone().filter(|_| unknown)) {
        (Some(id), _, _) => Envelope::invariant_violation(id, message, at),
        (None, true, _) => Envelope::startup_failure(canonical(code), message, at),
        (None, false, Some(thrown)) => Envelope::from_unknown(thrown, None, at),
        (None, false, None) => Envelope::tool_failure(canonical(code), message, at),
    };
    if let Some(thrown) = thrown {
        envelope = envelope.caused_by(thrown);
    }
    envelope.human_message = redactor.text(&envelope.human_message).into_owned();
    envelope.cause = redactor.value(&envelope.cause).into_owned();
    if envelope.cause.to_string().len() > limits::CAUSE_BYTES {
        envelope.cause = Value::String(String::from("[too long to be told]"));
    }
    if hub.settings().debug_stack {
        envelope.stack_trace = Some(Backtrace::force_capture().to_string());
    }
    let details = redactor.value(&Value::Object(details)).into_owned();
    let details = match details {
        Value::Object(details) => details,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    Box::new(Failed { envelope, code, details })
}

pub type Ended = Result<Done, Box<Failed>>;

/// A canonical error, and what is told beside it.
pub struct Failed {
    pub envelope: Envelope,
    /// Its code in our own words, which may say more.
    code: Code,
    details: Map<String, Value>,
}

fn conclude(ended: Ended) -> Result<Reply, Halt> {
    match ended {
        Ok(done) => {
            if let Some(placed) = done.placed {
                placed.keep();
            }
            Ok(Output::json(done.output).into())
        }
        Err(failed) => {
            let Failed { envelope, code, details } = *failed;
            let mut fault: Fault = envelope.into_fault();
            fault.code = code;
            for (name, value) in details {
                fault = fault.with(&name, value);
            }
            Err(fault.into())
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}
