//! Calls that take longer than a client waits (KNO-9): acknowledged, looked at, cancelled; their states are in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use orchestr8_contract::id::{CorrelationId, Key, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::follow::Follow;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{End, Halt, Settled, Started, Submission};
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use crate::call::{Given, given};
use crate::face::Face;
use crate::failure::Failure;
use crate::live::{Listed, Live, Place};
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
    fn place(&self) -> Place {
        (self.tenant.clone(), self.id.clone())
    }

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

/// Follows a submission, and stops one that comes too late: a repeat of a known key is answered before that.
struct Progress {
    turn: Turn,
    refused: AtomicBool,
    live: Live,
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
        self.live.start();
    }
}

/// Runs a call for as long as its client waits; what takes longer is on record before the client hears so.
pub(crate) async fn run(
    face: &Arc<Face>,
    mut submission: Submission,
    turn: Turn,
    request: &Request,
    (live, patience): (Live, Patience),
) -> Result<Ending, Failure> {
    live.check()?;
    let progress = Arc::new(Progress { turn, refused: AtomicBool::new(false), live: live.clone() });
    submission.follow = Some(progress.clone());
    submission.cancel = live.cancel.clone();
    let settled = match (face.kernel.start(submission), patience) {
        (Started::Done(settled), _) => *settled,
        (Started::Running(task), Patience::Endless) => {
            let _listed = Listed::new(face, request.place(), live);
            task.await.map_err(lost)?
        }
        (Started::Running(mut task), Patience::Short) => {
            tokio::select! {
                biased;
                settled = &mut task => settled.map_err(lost)?,
                () = face.kernel.ports().clock.sleep(Duration::from_millis(face.settings.ack_ms)) => {
                    acknowledge(face, task, live, request).await?;
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

/// Puts on record that a call goes on. In a task of its own: a client that goes away meanwhile must not leave a call on record
/// that nobody follows.
async fn acknowledge(
    face: &Arc<Face>,
    task: JoinHandle<Settled>,
    live: Live,
    request: &Request,
) -> Result<(), Failure> {
    let (tenant, id) = (request.tenant.as_str(), request.id.as_str());
    let (principal, action) = (request.principal.as_str(), request.action.as_str());
    let mut batch = Batch::new();
    let acked = tables::Acked { tenant, id, principal, action, queued: false, now_ms: face.now_ms() };
    batch.then(tables::request_ack(&acked));
    let listed = Listed::new(face, request.place(), live);
    let (face, request) = (face.clone(), request.clone());
    let noted = tokio::spawn(async move {
        face.kernel.ports().store.commit(batch).await.map_err(store_fault)?;
        tokio::spawn(follow(face, task, listed, request));
        Ok::<(), Fault>(())
    });
    Ok(noted.await.map_err(lost)??)
}

/// Sees an acknowledged call to its end, and writes that down.
async fn follow(face: Arc<Face>, task: JoinHandle<Settled>, listed: Listed, request: Request) {
    let (state, answered) = match task.await {
        Ok(settled) => (State::of(&settled), success(&face, &request, settled)),
        Err(error) => (State::Failed, Err(lost(error))),
    };
    let labels = request.labels().ended(answered.as_ref().err().map(Failure::word));
    let (body, elapsed_us) = (body(&request, answered), face.elapsed_us().saturating_sub(request.began_us));
    face.settings.metrics.concluded(labels, Some(elapsed_us));
    let stored = record(&face, &request.tenant, &request.id, state, Some(body)).await;
    drop(listed);
    if let Err(fault) = stored {
        face.kernel.log().error(
            "the end of an acknowledged call could not be recorded",
            json!({"correlationId": request.correlation, "requestId": request.id, "error": fault.to_string()}),
        );
    }
}

/// Writes down how a call has ended, whatever was known of it before.
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
