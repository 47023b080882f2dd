//! One attempt of a step: its agent, behind `breaker(timeout(call))`, with its heartbeat. The wait before the next attempt is the
//! engine's (`engine/backoff.rs`): between two attempts nothing of a step is in memory.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::json::bytes as json_bytes;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Principal;
use orchestr8_kernel::heavy::INLINE_BYTES;
use orchestr8_kernel::resilience::breaker::Change;
use orchestr8_kernel::resilience::retry::{Again, asked_wait_ms, decide};
use orchestr8_kernel::resilience::{self, Resilience};
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::artifacts::NewArtifact;
use super::{Hub, breakers};
use crate::agents::secrets::SecretView;
use crate::agents::{Agent, Answer, Call, Heartbeat, Usage};
use crate::engine::event::{Event, Task};
use crate::engine::scope;
use crate::limits;

/// How an attempt ended.
pub struct Ended {
    pub task: Task,
    attempt: u32,
    result: Result<Answer, Fault>,
    /// It failed, and the next attempt follows after this time.
    retry_ms: Option<u64>,
    /// Its end opened or closed the circuit with this key.
    pub circuit: Option<(String, Change)>,
    /// The result, which its output refers to.
    pub artifact: Option<Box<NewArtifact>>,
}

impl Ended {
    /// An end that no circuit was asked about and after which nothing is tried again.
    fn at_once(task: Task, attempt: u32, result: Result<Answer, Fault>) -> Self {
        Self { task, attempt, result, retry_ms: None, circuit: None, artifact: None }
    }

    pub fn into_event(self) -> Event {
        let Self { task, attempt, result, retry_ms, circuit: _, artifact: _ } = self;
        match (result, retry_ms) {
            (Ok(Answer { output, usage }), _) => Event::Succeeded { task, attempts: attempt, output, usage },
            (Err(fault), Some(wait_ms)) => {
                // An attempt that an open circuit refused was none.
                let attempt = attempt.saturating_sub(u32::from(fault.code == Code::CircuitOpen));
                Event::Retrying { task, attempt, fault: StoredFault::from(&fault), wait_ms }
            }
            (Err(fault), None) => {
                let fault = if attempt > 1 { fault.with("attempts", attempt) } else { fault };
                Event::Failed { task, attempts: attempt, fault: StoredFault::from(&fault) }
            }
        }
    }
}

/// A step that begins once the record of its beginning is durable.
pub struct Start(BoxFuture<'static, Ended>);

pub enum Prepared {
    /// It has ended already: it could not be called, or its agent is pure and has read so many bytes.
    Done {
        ended: Ended,
        bytes_read: usize,
    },
    Start(Start),
}

impl Prepared {
    fn failed(task: Task, attempt: u32, fault: Fault) -> Self {
        Self::Done { ended: Ended::at_once(task, attempt, Err(fault)), bytes_read: 0 }
    }
}

/// Begins it. What ends at once costs no task.
pub fn start(Start(mut running): Start) -> Result<Ended, BoxFuture<'static, Ended>> {
    match poll_once(running.as_mut()) {
        Poll::Ready(ended) => Ok(ended),
        Poll::Pending => Err(running),
    }
}

pub(super) fn poll_once<T>(future: Pin<&mut (dyn Future<Output = T> + Send)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Resolves the call of a task and makes it ready to begin. Says what resolving it has cost, too.
pub fn prepare(
    actor: &Actor,
    task: Task,
    attempt: u32,
    cancel: CancellationToken,
    recorded: CancellationToken,
) -> (Prepared, u64) {
    let view = SecretView { access: &actor.hub.0.secrets, tenant: &actor.seed.tenant };
    match scope::resolve(&actor.state, task, view) {
        Ok(resolved) => {
            let fuel = resolved.fuel;
            (prepare_resolved(actor, resolved, (task, attempt), cancel, recorded), fuel)
        }
        // What failed for its cost has used all that an evaluation may.
        Err(fault) => {
            let fuel = if fault.code == Code::ExprTooCostly { limits::EVALUATION_FUEL } else { 0 };
            (Prepared::failed(task, attempt, fault), fuel)
        }
    }
}

fn prepare_resolved(
    actor: &Actor,
    mut resolved: scope::Resolved<'_>,
    (task, attempt): (Task, u32),
    cancel: CancellationToken,
    recorded: CancellationToken,
) -> Prepared {
    let (state, hub) = (&actor.state, &actor.hub);
    let step = &state.workflow().steps[task.step];
    let (agent, principal) = match permitted(actor, &resolved) {
        Ok(permitted) => permitted,
        Err(fault) => return Prepared::failed(task, attempt, fault),
    };
    hide_references(actor, &**agent, &mut resolved);
    let target = agent.target(&resolved.input, &resolved.config);
    let breaker = breakers::key(&actor.seed.tenant, &resolved.call.agent, target.as_deref());
    let call = Call {
        execution: state.identity.execution.clone(),
        workflow: state.workflow().id.clone(),
        step: step.id.clone(),
        attempt,
        key: resolved.key.into(),
        agent: resolved.call.agent.clone(),
        input: resolved.input,
        config: resolved.config,
        correlation: state.identity.correlation.clone(),
        trace: actor.seed.given.trace,
        principal,
        secrets: hub.0.secrets.of_call(
            &actor.seed.tenant,
            &state.workflow().id,
            &state.workflow().hash,
            &resolved.call.agent,
        ),
        cancel: cancel.clone(),
        heartbeat: Heartbeat::default(),
        recorded,
        keeps_artifact: step.keeps_artifact && !task.undo,
    };
    let pure_bytes = agent.is_pure().then(|| json_bytes(&call.input) + json_bytes(&call.config));
    let passes = pure_bytes.map_or(1, |_| agent.passes(&call.input, &call.config));
    let is_light =
        |bytes: &usize| *bytes < INLINE_BYTES && bytes.saturating_mul(passes) < limits::INLINE_PASSED_BYTES;
    if let Some(bytes_read) = pure_bytes.filter(is_light)
        && !step.checkpoint
        && !call.keeps_artifact
        && let Poll::Ready(result) = poll_once(guarded(agent, call.clone()).as_mut())
    {
        let result = mask(hub, &actor.seed.tenant, result);
        return Prepared::Done { ended: Ended::at_once(task, attempt, result), bytes_read };
    }
    let spent_ms = state.work.get(&task).map_or(0, |work| work.spent_ms);
    let policy = if task.undo { &step.undo_resilience } else { &step.resilience };
    let run = Run {
        hub: hub.clone(),
        agent: agent.clone(),
        call,
        remaining_ms: policy.total_budget_ms.saturating_sub(spent_ms).max(1),
        policy: policy.clone(),
        breaker,
        heartbeat_ms: step.heartbeat_timeout_ms,
        task,
        heavy_bytes: pure_bytes.filter(|bytes| !is_light(bytes)).map(|bytes| bytes.max(INLINE_BYTES)),
    };
    Prepared::Start(Start(run.attempt(cancel).boxed()))
}

/// The agent that a step calls, and the principal that it calls it as, which may.
fn permitted<'a>(
    actor: &'a Actor,
    resolved: &scope::Resolved<'_>,
) -> Result<(&'a Arc<dyn Agent>, Arc<Principal>), Fault> {
    let (hub, id) = (&actor.hub, &*resolved.call.agent);
    let principal = hub.current_principal(&actor.seed)?;
    let agent = hub.0.agents.find(id).ok_or_else(|| unknown_agent(hub, id))?;
    hub.0.agents.check(&**agent, &principal, (id, &resolved.input, &resolved.config))?;
    Ok((agent, principal))
}

/// Only agents that insert secrets get references to them.
fn hide_references(actor: &Actor, agent: &dyn Agent, resolved: &mut scope::Resolved<'_>) {
    if agent.inserts_secrets() || actor.state.workflow().secrets.is_empty() {
        return;
    }
    let marker = &actor.hub.0.secrets.marker;
    resolved.input = marker.mask(std::mem::take(&mut resolved.input));
    resolved.config = marker.mask(std::mem::take(&mut resolved.config));
}

fn unknown_agent(hub: &Hub, id: &str) -> Fault {
    let mut known: Vec<&str> = hub.0.agents.all().map(|agent| agent.id()).collect();
    known.sort_unstable();
    Fault::new(Code::NotFound, format!("there is no agent named '{id}'"))
        .with("agentId", id)
        .with("known", known)
}

/// Calls an agent. One that panics has failed, and nothing else has.
fn guarded(agent: &Arc<dyn Agent>, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
    let agent = agent.clone();
    let crashed = |_| Err(Fault::internal("the agent broke down; the log has the cause"));
    AssertUnwindSafe(async move { agent.call(call).await })
        .catch_unwind()
        .map(move |result| result.unwrap_or_else(crashed))
        .boxed()
}

/// Calls a pure agent on a thread for heavy work, when the turn of its tenant comes.
fn beside(
    hub: &Hub,
    agent: &Arc<dyn Agent>,
    call: Call,
    bytes: usize,
) -> BoxFuture<'static, Result<Answer, Fault>> {
    let (kernel, principal, agent) = (hub.0.kernel.clone(), call.principal.clone(), agent.clone());
    async move {
        let work = move || guarded(&agent, call).now_or_never();
        let answer = kernel.heavy().run(&principal, bytes, work).await?;
        answer.unwrap_or_else(|| Err(Fault::internal("a pure agent waits for something")))
    }
    .boxed()
}

/// Whatever an agent answers, no secret of the tenant enters the engine with it.
fn mask(hub: &Hub, tenant: &Tenant, result: Result<Answer, Fault>) -> Result<Answer, Fault> {
    let mask = hub.0.secrets.mask(tenant);
    if mask.is_empty() {
        return result;
    }
    match result {
        Ok(answer) => Ok(Answer { output: mask.value(answer.output), ..answer }),
        Err(mut fault) => {
            fault.message = mask.text(&fault.message).into_owned().into();
            fault.details = fault.details.map(|details| Box::new(mask.map(*details)));
            Err(fault)
        }
    }
}

/// One attempt of one step.
struct Run {
    hub: Hub,
    agent: Arc<dyn Agent>,
    call: Call,
    policy: Resilience,
    /// What is left for this attempt and those after it, with the waits between them.
    remaining_ms: u64,
    breaker: String,
    heartbeat_ms: Option<u64>,
    task: Task,
    /// The size of the input, if it is a pure step with a large one.
    heavy_bytes: Option<usize>,
}

impl Run {
    /// Told to stop, the attempt gets to clean up (WF-19.4): it is dropped only with the actor, when the grace is over.
    async fn attempt(self, cancel: CancellationToken) -> Ended {
        let ports = &self.hub.0.ports;
        let began_us = ports.clock.elapsed_us();
        let registry = self.hub.0.kernel.breakers();
        let working = self.within_time(&cancel);
        let (result, change) =
            resilience::behind_breaker(self.policy.breaker, &self.breaker, registry, working).await;
        let took_ms = ports.clock.elapsed_us().saturating_sub(began_us) / 1000;
        let result = mask(&self.hub, &self.call.principal.tenant, result);
        let (result, artifact) = match result {
            Ok(answer) if self.call.keeps_artifact => self.keep(answer).await,
            other => (other, None),
        };
        let retry_ms = match &result {
            // A rollback leaves nothing out because a circuit is open: it waits until the circuit lets a call through.
            Err(fault) if self.task.undo && fault.code == Code::CircuitOpen && !cancel.is_cancelled() => {
                Some(asked_wait_ms(fault).unwrap_or(limits::UNDO_CIRCUIT_WAIT_MS).max(1))
            }
            Err(fault) if !cancel.is_cancelled() => {
                let remaining_ms = self.remaining_ms.saturating_sub(took_ms);
                match decide(&self.policy, self.call.attempt, remaining_ms, fault, ports.random.unit()) {
                    Again::After { wait_ms } => Some(wait_ms),
                    Again::No => None,
                }
            }
            Ok(_) | Err(_) => None,
        };
        let circuit = change.map(|change| (self.breaker.clone(), change));
        Ended { task: self.task, attempt: self.call.attempt, result, retry_ms, circuit, artifact }
    }

    /// Makes an artifact of an answer. One that is too large is a failure, with what it used.
    async fn keep(&self, answer: Answer) -> (Result<Answer, Fault>, Option<Box<NewArtifact>>) {
        let Answer { output, usage } = answer;
        match NewArtifact::of(&self.hub, &self.call.principal.tenant, output).await {
            Ok(artifact) => (Ok(Answer { output: artifact.reference(), usage }), Some(Box::new(artifact))),
            Err(fault) if usage == Usage::default() => (Err(fault), None),
            Err(fault) => (Err(fault.with(Usage::DETAIL, serde_json::json!(usage))), None),
        }
    }

    /// The call, within the time for one attempt and with its signs of life.
    async fn within_time(&self, cancel: &CancellationToken) -> Result<Answer, Fault> {
        if cancel.is_cancelled() {
            return Err(stopped());
        }
        let clock = &self.hub.0.ports.clock;
        let heartbeat = Heartbeat::default();
        let told = cancel.child_token();
        let call = Call { cancel: told.clone(), heartbeat: heartbeat.clone(), ..self.call.clone() };
        let mut working = match self.heavy_bytes {
            Some(bytes) => beside(&self.hub, &self.agent, call, bytes),
            None => guarded(&self.agent, call),
        };
        let timeout_ms = self.policy.timeout_ms.min(self.remaining_ms);
        let mut over = clock.sleep(Duration::from_millis(timeout_ms));
        let mut fault = loop {
            let silent = async {
                match self.heartbeat_ms {
                    Some(limit_ms) => clock.sleep(Duration::from_millis(limit_ms)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                result = &mut working => {
                    // Whatever it says after it was told to stop, it stopped for that.
                    return if cancel.is_cancelled() { result.map_err(as_stopped) } else { result };
                }
                () = heartbeat.beaten() => {}
                () = silent => break no_sign_of_life(self.heartbeat_ms.unwrap_or_default()),
                () = &mut over => break too_long(timeout_ms),
            }
        };
        // It ends before its failure is known, so that no other attempt overlaps it. One that does not end is dropped.
        told.cancel();
        tokio::select! {
            late = &mut working => {
                // That a program had to be killed is said all the same.
                if let Err(Fault { details: Some(details), .. }) = late
                    && details.contains_key("forced")
                {
                    fault = fault.with("forced", true);
                }
            }
            () = clock.sleep(Duration::from_millis(self.hub.0.settings.grace_ms)) => {}
        }
        Err(fault)
    }
}

/// What an agent says of its own about being cancelled is kept: that it had to be killed, for example.
fn as_stopped(fault: Fault) -> Fault {
    if fault.code == Code::Cancelled { fault } else { stopped() }
}

fn too_long(timeout_ms: u64) -> Fault {
    Fault::new(Code::Timeout, format!("the attempt took longer than {timeout_ms} ms"))
        .with("timeoutMs", timeout_ms)
}

fn stopped() -> Fault {
    Fault::new(Code::Cancelled, "it was cancelled")
}

fn no_sign_of_life(limit_ms: u64) -> Fault {
    Fault::new(Code::Timeout, format!("no sign of life for {limit_ms} ms"))
        .with("heartbeatTimeoutMs", limit_ms)
}
