//! One command from its admission to its answer: what is told of it, to whom, and in which order (SES-7.2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orchestr8_contract::id::{CorrelationId, Lane};
use orchestr8_contract::{AccessRole, Code, Fault, Kind};
use orchestr8_kernel::follow::Follow;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::submission::{Identity, Version, past};
use orchestr8_kernel::{Args, Halt, Principal, Settled, Started, Submission};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::buckets::{Bucket, Charge};
use crate::commands::{Known, Plane};
use crate::connection::Connection;
use crate::face::may_see;
use crate::following::Follower;
use crate::from_wire::{Command, kernel_id, kernel_key};
use crate::metrics::count;
use crate::outbox::Weight;
use crate::to_wire::{self, Outcome};
use crate::wire::{Frame, Lifecycle, Told};
use crate::wording::{self, Asked, ID_SCOPE};

/// Commands that are about one session and counted by it, though they are about the sessions there are.
const COUNTED_BY_SESSION: [&str; 2] = ["delete_session", "switch_session"];
const SWITCH: &str = "switch_session";
const UI_RESPONSE: &str = "extension_ui_response";

/// A command on its way.
struct Pursuit {
    connection: Arc<Connection>,
    known: Arc<Known>,
    id: Option<String>,
    key: Option<String>,
    depends_on: Vec<String>,
    session: Option<Arc<str>>,
    after_seq: Option<u64>,
    lifecycle: Lifecycle,
    is_accepted: AtomicBool,
    is_answered: AtomicBool,
    charge: Mutex<Option<Charge>>,
    /// The events of the session this connection switches to, kept back until it has the answer.
    follower: Option<Arc<Follower>>,
}

/// Submits a command. What ends at once is answered at once; anything else is answered from a task of its own.
pub fn start(connection: &Arc<Connection>, mut command: Command) {
    let face = &connection.face;
    let follower = match follow(connection, &command) {
        Ok(follower) => follower,
        Err(fault) => return connection.refuse_fault(&command, &fault),
    };
    let args = std::mem::take(&mut command.args);
    let (submission, pursuit) = submission(connection, args, command, follower);
    match face.kernel.start(submission) {
        Started::Done(settled) => pursuit.conclude(&settled),
        Started::Running(task) => {
            connection.begin();
            face.under_way.spawn(async move {
                match task.await {
                    Ok(settled) => pursuit.conclude(&settled),
                    Err(_) => pursuit.answer(&Outcome::lost(&pursuit.asked())),
                }
                pursuit.connection.end();
            });
        }
    }
}

/// Following begins before the command runs, so that no event falls between its answer and the first one sent.
fn follow(connection: &Arc<Connection>, command: &Command) -> Result<Option<Arc<Follower>>, Fault> {
    match &command.session {
        Some(session) if &*command.known.name == SWITCH => connection.follow(session).map(Some),
        Some(_) | None => Ok(None),
    }
}

fn submission(
    connection: &Arc<Connection>,
    args: Map<String, Value>,
    command: Command,
    follower: Option<Arc<Follower>>,
) -> (Submission, Arc<Pursuit>) {
    let face = &connection.face;
    let ids = &face.kernel.ports().ids;
    let known = command.known.clone();
    let lane = lane(&command);
    let key_scope = command
        .key
        .as_ref()
        .map(|_| format!("session-key:{}", command.session.as_deref().unwrap_or("_server_")))
        .map(|scope| face.scope_of(&scope, &connection.principal));
    let subject = command.session.clone().or_else(|| command.named.clone());
    let correlation = CorrelationId::from_uuid(ids.fresh(For::Correlation));
    let args = Args::new(args);
    let mut submission =
        Submission::new(known.action_name.clone(), args, connection.principal.clone(), correlation);
    submission.transport = connection.transport;
    submission.source = connection.source;
    submission.timeout_is_final = true;
    submission.lane = lane;
    submission.depends_on = command.depends_on.iter().filter_map(|id| kernel_id(id)).collect();
    submission.version = subject
        .filter(|_| known.has_session)
        .map(|session| Version { subject: session, expected: command.expected });
    // The key is looked at before the id, as the protocol's processing order has it.
    if let (Some(scope), Some(key)) = (key_scope, command.key.as_deref().and_then(kernel_key)) {
        submission.identities.push(Identity { scope, key, ttl_ms: face.settings.key_ttl_ms });
    }
    submission.id_scope = face.scope_of(ID_SCOPE, &connection.principal);
    if let Some(id) = command.id.as_deref().and_then(kernel_id) {
        submission.identities.push(past(&submission.id_scope, &id, face.settings.id_ttl_ms));
        submission.id = Some(id);
    }
    submission.fingerprint.clone_from(&command.fingerprint);
    let pursuit = Arc::new(Pursuit::new(connection.clone(), command, follower));
    submission.follow = Some(pursuit.clone());
    (submission, pursuit)
}

/// SES-7.3, and beside it a lane for what acts on work that is under way.
fn lane(command: &Command) -> Option<Lane> {
    let name = match (&command.session, command.is_side) {
        (Some(session), false) => format!("session:{session}"),
        (Some(session), true) => format!("session:{session}:side"),
        (None, _) => String::from("server"),
    };
    Lane::parse(&name).ok()
}

impl Follow for Pursuit {
    fn admit(&self) -> Result<(), Fault> {
        let face = &self.connection.face;
        let now_us = face.kernel.ports().clock.elapsed_us();
        match face.buckets.take(&self.connection.principal.tenant, self.buckets(), now_us) {
            Ok(charge) => {
                *self.charge.lock() = Some(charge);
                count(&face.metrics.executed);
                Ok(())
            }
            Err(full) => {
                face.metrics.limited(full);
                Err(full.fault())
            }
        }
    }

    fn accepted(&self) {
        self.is_accepted.store(true, Ordering::Release);
        self.tell(&self.lifecycle.accepted());
    }

    fn started(&self) {
        self.tell(&self.lifecycle.started());
    }

    fn word(&self, mut fault: Fault) -> Fault {
        fault.message = wording::of(&fault, &self.asked()).text;
        fault
    }

    /// Told before the next command of the lane begins, so that clients see the order things happen in (SES-7.3).
    fn finished(&self, settled: &Settled) {
        self.conclude(settled);
    }
}

impl Pursuit {
    fn new(connection: Arc<Connection>, command: Command, follower: Option<Arc<Follower>>) -> Self {
        let anonymous = command.id.is_none().then(|| connection.face.anonymous_id());
        let told = Told {
            command_id: command.id.as_deref().or(anonymous.as_deref()).unwrap_or_default(),
            command_type: &command.known.name,
            session_id: command.session.as_deref(),
            depends_on: &command.depends_on,
            if_session_version: command.expected,
            idempotency_key: command.key.as_deref(),
        };
        let lifecycle = Lifecycle::of(&told);
        Self {
            connection,
            lifecycle,
            is_accepted: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
            charge: Mutex::new(None),
            follower,
            known: command.known,
            id: command.id,
            key: command.key,
            depends_on: command.depends_on,
            session: command.session,
            after_seq: command.after_seq,
        }
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            command: &self.known.name,
            id: self.id.as_deref(),
            key: self.key.as_deref(),
            session: self.session.as_deref(),
            depends_on: &self.depends_on,
            dependency_wait_ms: self.connection.face.kernel.limits().dependency_wait_ms,
        }
    }

    fn buckets(&self) -> Vec<Bucket> {
        let name = &*self.known.name;
        match (&self.session, self.known.plane) {
            (Some(session), Plane::Data) if name == UI_RESPONSE => {
                vec![Bucket::Session(session.clone()), Bucket::Ui(session.clone())]
            }
            (Some(session), Plane::Data) => vec![Bucket::Session(session.clone())],
            (Some(session), Plane::Control) if COUNTED_BY_SESSION.contains(&name) => {
                vec![Bucket::ControlOf(session.clone())]
            }
            (Some(_), Plane::Control) | (None, _) => vec![Bucket::Control],
        }
    }

    fn conclude(&self, settled: &Settled) {
        if self.is_answered.load(Ordering::Acquire) {
            return;
        }
        let refused = match &settled.result {
            Err(Halt::Fault(fault)) => Some(fault),
            Err(Halt::Asks(_)) | Ok(_) => None,
        };
        if let Some(fault) = refused.filter(|fault| wording::is_busy(fault)) {
            self.refund(fault);
        }
        // A repeat, a conflict and a full bucket end before they are accepted; for the client they were admitted, since
        // there was nothing wrong with them (SES-7.1, SES-7.4).
        let is_admitted = settled.replayed || refused.is_some_and(is_admitted);
        if is_admitted && !self.is_accepted.load(Ordering::Acquire) {
            self.accepted();
        }
        let mut outcome = Outcome::of(settled, &self.asked());
        self.add_own(&mut outcome);
        self.answer(&outcome);
    }

    /// The last event, then the response, then what follows from it.
    fn answer(&self, outcome: &Outcome<'_>) {
        if self.is_answered.swap(true, Ordering::AcqRel) {
            return;
        }
        let connection = &self.connection;
        if let Some(session) = &self.session {
            connection.face.topics.pump(&connection.principal.tenant, session);
        }
        if self.is_accepted.load(Ordering::Acquire) {
            self.tell(&self.lifecycle.finished(&outcome.finish()));
        }
        let response = outcome.response(self.id.as_deref(), &self.known.name);
        connection.outbox.push(response, Weight::Critical);
        if let Some(follower) = &self.follower {
            connection.settle_following(follower, self.after_seq, outcome.result.is_ok());
        }
        if let Ok(data) = &outcome.result
            && !outcome.replayed
        {
            self.announce(data.as_deref());
        }
    }

    /// Sessions that came or went are told of after the response. A repeat changed nothing and tells nothing.
    fn announce(&self, data: Option<&Value>) {
        let (face, tenant) = (&self.connection.face, &self.connection.principal.tenant);
        let member = |name: &str| data.and_then(|data| data.get(name));
        match &*self.known.name {
            "create_session" | "load_session" | "fork" => {
                if let Some(session) = member("sessionId").and_then(Value::as_str) {
                    let (info, frame) = (member("sessionInfo"), to_wire::session_created);
                    let audience = &self.connection.audience;
                    audience.tell_those(&frame(session, info), Weight::Broadcast, may_see(info));
                }
            }
            "delete_session" => {
                if let Some(session) = &self.session {
                    self.tell(&to_wire::session_deleted(session));
                    face.topics.end(tenant, session);
                }
            }
            _ => {}
        }
    }

    /// Two commands ask for what the domain and this face know each a part of.
    fn add_own(&self, outcome: &mut Outcome<'_>) {
        let face = &self.connection.face;
        let Ok(Some(data)) = &mut outcome.result else { return };
        match &*self.known.name {
            "get_metrics" => face.metrics.add_figures(data.to_mut(), &face.now()),
            "health_check" => face.metrics.add_health(data.to_mut(), &face.now()),
            _ => {}
        }
    }

    fn refund(&self, fault: &Fault) {
        debug_assert_eq!(fault.code, Code::ResourceExhausted);
        let face = &self.connection.face;
        count(&face.metrics.busy);
        if let Some(charge) = self.charge.lock().take() {
            face.buckets.refund(charge);
            face.metrics.executed.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Tells the principal whose command it is, on all its connections, and the owners of the tenant: others may not know of the
    /// session. Those who follow it hear what happens in it as its followers.
    fn tell(&self, frame: &Frame) {
        let own = &self.connection.principal;
        let may_hear = |other: &Principal| other.name == own.name || other.has(AccessRole::Owner);
        self.connection.audience.tell_those(frame, Weight::Broadcast, may_hear);
    }
}

/// Whether a refusal came after validation and the look at the shutdown, which is what admission means to a client.
fn is_admitted(fault: &Fault) -> bool {
    match fault.kind() {
        Kind::Conflict | Kind::Exhausted => true,
        Kind::Invalid
        | Kind::NotFound
        | Kind::Unauthenticated
        | Kind::Forbidden
        | Kind::Timeout
        | Kind::Cancelled
        | Kind::Unavailable
        | Kind::Dependency
        | Kind::State
        | Kind::Unknown
        | Kind::Internal => false,
    }
}
