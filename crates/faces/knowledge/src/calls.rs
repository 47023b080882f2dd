//! Calls that take longer than a client waits (KNO-9): acknowledged, looked at, cancelled; their states are in the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use orchestr8_contract::id::{CorrelationId, Key, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::follow::Follow;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Cancel, End, Halt, Settled, Started, Submission, Why};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::call::{Given, given};
use crate::face::Face;
use crate::failure::Failure;
use crate::metrics::Labels;
use crate::order::Turn;
use crate::tables;
use crate::wire;

/// The key of an envelope counts within its tenant, its action and its subject: whoever sent it (KNO-2).
pub(crate) fn key(action: &str, sub: &str, key: Key, ttl_ms: u64) -> Identity {
    Identity { scope: Scope(format!("a2a:{action}:{sub}").into()), key, ttl_ms }
}

/// A request with the same id is the same request.
pub(crate) fn request(id: &str, ttl_ms: u64) -> Option<Identity> {
    Some(Identity { scope: Scope("a2a-request".into()), key: Key::parse(id).ok()?, ttl_ms })
}

/// Where an acknowledged call has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Acked,
    Running,
    Succeeded,
    Failed,
    /// It failed, and nothing of it is left.
    Compensated,
    Cancelled,
}

impl State {
    const ALL: [State; 6] =
        [Self::Acked, Self::Running, Self::Succeeded, Self::Failed, Self::Compensated, Self::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            State::Acked => "ACKED",
            State::Running => "RUNNING",
            State::Succeeded => "SUCCEEDED",
            State::Failed => "FAILED",
            State::Compensated => "COMPENSATED",
            State::Cancelled => "CANCELLED",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub fn is_final(self) -> bool {
        match self {
            State::Acked | State::Running => false,
            State::Succeeded | State::Failed | State::Compensated | State::Cancelled => true,
        }
    }

    pub fn of(settled: &Settled) -> Self {
        match (&settled.result, settled.end) {
            (Ok(_), _) => State::Succeeded,
            (Err(Halt::Fault(fault)), End::Aborted) if fault.code == Code::Cancelled => State::Cancelled,
            (Err(Halt::Fault(fault)), _) if fault.code == Code::Cancelled => State::Cancelled,
            (Err(_), _) => State::Failed,
        }
    }
}

/// One call, as its answers name it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub tenant: Tenant,
    pub id: String,
    pub principal: String,
    pub action: String,
    pub correlation: CorrelationId,
    pub trace: Option<String>,
    pub began_us: u64,
}

impl Request {
    fn labels(&self) -> Labels {
        let (action, tenant) = (self.action.clone(), self.tenant.as_str().to_owned());
        Labels { action, tenant, principal: self.principal.clone(), ..Labels::default() }
    }
}

/// How long the sender of a call waits for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Then it is acknowledged.
    Short,
    /// Nobody holds a line open: the answer may come when it comes.
    Endless,
}

/// What became of a call while its client waited.
pub(crate) enum Ending {
    Settled(Box<Settled>),
    /// It came out of order, and nothing was done.
    Ignored,
    /// It goes on.
    Acked,
}

/// The calls that go on in this process.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<(Tenant, String), Live>>);

struct Live {
    cancel: Cancel,
    progress: Arc<Progress>,
}

/// Follows a submission, and stops one that comes too late: a repeat of a known key is answered before that.
struct Progress {
    turn: Turn,
    refused: AtomicBool,
    started: AtomicBool,
}

impl Follow for Progress {
    fn admit(&self) -> Result<(), Fault> {
        match self.turn {
            Turn::InOrder => Ok(()),
            Turn::TooLate => {
                self.refused.store(true, Ordering::Release);
                Err(Fault::new(Code::StateConflict, "a later envelope of this sender was seen before it"))
            }
        }
    }

    fn accepted(&self) {}

    fn started(&self) {
        self.started.store(true, Ordering::Release);
    }
}

/// Runs a call for as long as its client waits; what takes longer is on record before the client hears so.
pub(crate) async fn run(
    face: &Arc<Face>,
    mut submission: Submission,
    turn: Turn,
    request: &Request,
    patience: Patience,
) -> Result<Ending, Failure> {
    let progress = Progress { turn, refused: AtomicBool::new(false), started: AtomicBool::new(false) };
    let progress = Arc::new(progress);
    submission.follow = Some(progress.clone());
    let cancel = submission.cancel.clone();
    let settled = match face.kernel.start(submission) {
        Started::Done(settled) => *settled,
        Started::Running(mut task) => {
            let waits = patience;
            let patience = async {
                match waits {
                    Patience::Endless => std::future::pending().await,
                    Patience::Short => {
                        face.kernel.ports().clock.sleep(Duration::from_millis(face.settings.ack_ms)).await;
                    }
                }
            };
            let _seen = (waits == Patience::Endless).then(|| {
                Seen::new(face, request, Live { cancel: cancel.clone(), progress: progress.clone() })
            });
            tokio::select! {
                biased;
                settled = &mut task => settled.map_err(lost)?,
                () = patience => {
                    acknowledge(face, task, Live { cancel, progress }, request).await?;
                    return Ok(Ending::Acked);
                }
            }
        }
    };
    match progress.refused.load(Ordering::Acquire) {
        true => Ok(Ending::Ignored),
        false => Ok(Ending::Settled(Box::new(settled))),
    }
}

/// A call somebody waits for to its end, to be looked at and cancelled meanwhile.
struct Seen<'a> {
    calls: &'a Calls,
    place: (Tenant, String),
}

impl<'a> Seen<'a> {
    fn new(face: &'a Face, request: &Request, live: Live) -> Self {
        let place = (request.tenant.clone(), request.id.clone());
        face.calls.0.lock().entry(place.clone()).or_insert(live);
        Self { calls: &face.calls, place }
    }
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.place);
    }
}

async fn acknowledge(
    face: &Arc<Face>,
    task: tokio::task::JoinHandle<Settled>,
    live: Live,
    request: &Request,
) -> Result<(), Failure> {
    let (tenant, id) = (request.tenant.as_str(), request.id.as_str());
    let (principal, action) = (request.principal.as_str(), request.action.as_str());
    let mut batch = Batch::new();
    let acked = tables::Acked { tenant, id, principal, action, queued: false, now_ms: face.now_ms() };
    batch.then(tables::request_ack(&acked));
    face.kernel.ports().store.commit(batch).await.map_err(store_fault)?;
    let place = (request.tenant.clone(), request.id.clone());
    // A repeat of a call that goes on joins it; the first one holds what cancels it.
    face.calls.0.lock().entry(place.clone()).or_insert(live);
    let (face, request) = (face.clone(), request.clone());
    tokio::spawn(async move {
        let settled = task.await;
        let (state, answered) = match settled {
            Ok(settled) => (State::of(&settled), success(&face, &request, settled)),
            Err(error) => (State::Failed, Err(lost(error))),
        };
        let labels = request.labels().ended(answered.as_ref().err().map(Failure::word));
        let (body, elapsed_us) =
            (body(&request, answered), face.elapsed_us().saturating_sub(request.began_us));
        face.settings.metrics.concluded(labels, Some(elapsed_us));
        let stored = record(&face, &request.tenant, &request.id, state, Some(body)).await;
        face.calls.0.lock().remove(&place);
        if let Err(fault) = stored {
            face.kernel.log().error(
                "the end of an acknowledged call could not be recorded",
                json!({"correlationId": request.correlation, "requestId": request.id, "error": fault.to_string()}),
            );
        }
    });
    Ok(())
}

/// Writes down where a call has come to.
pub(crate) async fn record(
    face: &Face,
    tenant: &Tenant,
    id: &str,
    state: State,
    answer: Option<Value>,
) -> Result<(), Fault> {
    let answer = answer.map(|answer| answer.to_string());
    let mut batch = Batch::new();
    batch.then(tables::request_state(tenant.as_str(), id, state.as_str(), answer, face.now_ms()));
    face.kernel.ports().store.commit(batch).await.map_err(store_fault)
}

/// The whole answer to an envelope, to be kept.
pub(crate) fn conclude(face: &Face, request: &Request, settled: Settled) -> Value {
    body(request, success(face, request, settled))
}

fn body(request: &Request, answered: Result<Answered, Failure>) -> Value {
    match answered {
        Ok(answered) => serde_json::to_value(answered.shape()).unwrap_or_default(),
        Err(failure) => {
            let trace = request.trace.as_deref().unwrap_or(request.correlation.as_str());
            failure.traced(trace).body(&request.correlation)
        }
    }
}

/// A success: what the action gave, and what that took.
pub(crate) struct Answered {
    given: Given,
    usage: Map<String, Value>,
}

impl Answered {
    pub fn shape(&self) -> wire::Success<'_> {
        let (data, replayed) = (&self.given.value, self.given.replayed);
        wire::Success { ok: true, data, usage: Some(&self.usage), replayed, ignored: false }
    }
}

/// What the action says of its own use stands beside what it gave (KNO-4).
pub(crate) fn success(face: &Face, request: &Request, settled: Settled) -> Result<Answered, Failure> {
    let mut given = given(settled)?;
    let mut usage = match given.value.as_object_mut().and_then(|data| data.remove("usage")) {
        Some(Value::Object(usage)) => usage,
        Some(_) | None => Map::new(),
    };
    let elapsed_us = face.elapsed_us().saturating_sub(request.began_us);
    usage.insert("latency_ms".into(), (elapsed_us / 1000).into());
    usage.entry("qdrant_hits").or_insert_with(|| 0.into());
    Ok(Answered { given, usage })
}

fn lost(error: tokio::task::JoinError) -> Failure {
    Fault::internal("the call was lost").because(error).into()
}

impl Calls {
    /// Where a call of this process has come to; none if it is not one, or has ended.
    pub fn look(&self, tenant: &Tenant, id: &str) -> Option<State> {
        let live = self.0.lock();
        let call = live.get(&(tenant.clone(), id.to_owned()))?;
        Some(if call.progress.started.load(Ordering::Acquire) { State::Running } else { State::Acked })
    }

    /// Asks a call of this process to stop; whether there is one.
    pub fn cancel(&self, tenant: &Tenant, id: &str) -> bool {
        let live = self.0.lock();
        let found = live.get(&(tenant.clone(), id.to_owned()));
        if let Some(call) = found {
            call.cancel.fire(Why::Client);
        }
        found.is_some()
    }
}
