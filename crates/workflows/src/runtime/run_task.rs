//! One step at work: its agent, behind `retry(breaker(timeout(call)))`, with its heartbeat.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
use orchestr8_kernel::resilience::{self, News, Resilience};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::actor::{Actor, Message};
use super::{Hub, breakers};
use crate::agents::secrets::SecretView;
use crate::agents::{Agent, Answer, Call, Heartbeat};
use crate::engine::event::{Event, Task};
use crate::engine::scope;

/// How an attempt, or all attempts of a step, ended.
pub struct Ended {
    pub task: Task,
    attempts: u32,
    result: Result<Answer, Fault>,
}

impl Ended {
    pub fn into_event(self) -> Event {
        let Self { task, attempts, result } = self;
        match result {
            Ok(Answer { output, usage }) => Event::Succeeded { task, attempts, output, usage },
            Err(fault) => Event::Failed { task, attempts, fault: StoredFault::from(&fault) },
        }
    }
}

/// A step that begins once the record of its beginning is durable.
pub struct Start(BoxFuture<'static, Ended>);

pub enum Prepared {
    /// It has ended already: it could not be called, or its agent is pure.
    Done(Ended),
    Start(Start),
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

/// Resolves the call of a task and makes it ready to begin.
pub fn prepare(
    actor: &Actor,
    task: Task,
    attempt: u32,
    cancel: CancellationToken,
    recorded: CancellationToken,
) -> Prepared {
    let failed = |fault: Fault| Prepared::Done(Ended { task, attempts: attempt, result: Err(fault) });
    let (state, hub) = (&actor.state, &actor.hub);
    let step = &state.workflow().steps[task.step];
    let view = SecretView { access: &hub.0.secrets, tenant: &actor.seed.tenant };
    let mut resolved = match scope::resolve(state, task, view) {
        Ok(resolved) => resolved,
        Err(fault) => return failed(fault),
    };
    let (agent, principal) = match permitted(actor, &resolved) {
        Ok(permitted) => permitted,
        Err(fault) => return failed(fault),
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
    };
    let heavy_bytes = heavy_bytes(&**agent, &call);
    if agent.is_pure()
        && !step.checkpoint
        && heavy_bytes.is_none()
        && let Poll::Ready(result) = poll_once(guarded(agent, call.clone()).as_mut())
    {
        let result = mask(hub, &actor.seed.tenant, result);
        return Prepared::Done(Ended { task, attempts: attempt, result });
    }
    let mut policy = step.resilience.clone();
    policy.max_attempts = policy.max_attempts.saturating_sub(attempt - 1).max(1);
    let run = Run {
        hub: hub.clone(),
        agent: agent.clone(),
        call,
        policy,
        breaker,
        heartbeat_ms: step.heartbeat_timeout_ms,
        notes: actor.sender.clone(),
        task,
        heavy_bytes,
    };
    Prepared::Start(Start(run.all(cancel).boxed()))
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

/// The size of the input of a pure agent, if it is too large to be worked on where requests are read.
fn heavy_bytes(agent: &dyn Agent, call: &Call) -> Option<usize> {
    let size = || json_bytes(&call.input) + json_bytes(&call.config);
    agent.is_pure().then(size).filter(|bytes| *bytes >= INLINE_BYTES)
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

/// All attempts of one step.
struct Run {
    hub: Hub,
    agent: Arc<dyn Agent>,
    call: Call,
    policy: Resilience,
    breaker: String,
    heartbeat_ms: Option<u64>,
    notes: mpsc::Sender<Message>,
    task: Task,
    /// The size of the input, if it is a pure step with a large one.
    heavy_bytes: Option<usize>,
}

impl Run {
    /// All attempts. Told to stop, the attempt under way gets to clean up (WF-19.4): it is dropped only with the actor,
    /// when the grace is over; no other one begins.
    async fn all(self, cancel: CancellationToken) -> Ended {
        let (task, first) = (self.task, self.call.attempt);
        let mut attempts = first;
        let resting = AtomicBool::new(false);
        let ports = &self.hub.0.ports;
        let work = |attempt: resilience::Attempt| {
            resting.store(false, Ordering::Relaxed);
            attempts = first + attempt.number - 1;
            self.once(attempts, &cancel)
        };
        let tell = |news: News<'_>| match news {
            News::Retrying { attempt, fault, wait_ms } => {
                resting.store(true, Ordering::Relaxed);
                self.tell_retry(first + attempt - 1, fault, wait_ms);
            }
            News::Circuit(change) => {
                self.tell(Message::Circuit { task: self.task, key: self.breaker.clone(), change });
            }
        };
        let never = CancellationToken::new();
        let registry = self.hub.0.kernel.breakers();
        let (clock, random) = (&*ports.clock, &*ports.random);
        let result = {
            let running = resilience::run_telling(
                &self.policy,
                &self.breaker,
                work,
                tell,
                &never,
                registry,
                clock,
                random,
            );
            tokio::pin!(running);
            tokio::select! {
                biased;
                result = &mut running => result,
                () = cancel.cancelled() => match resting.load(Ordering::Relaxed) {
                    true => Err(stopped()),
                    false => running.await,
                },
            }
        };
        Ended { task, attempts, result: mask(&self.hub, &self.call.principal.tenant, result) }
    }

    fn once(&self, attempt: u32, cancel: &CancellationToken) -> BoxFuture<'static, Result<Answer, Fault>> {
        if cancel.is_cancelled() {
            return Box::pin(std::future::ready(Err(stopped())));
        }
        let heartbeat = Heartbeat::default();
        let call =
            Call { attempt, cancel: cancel.child_token(), heartbeat: heartbeat.clone(), ..self.call.clone() };
        let working = match self.heavy_bytes {
            Some(bytes) => beside(&self.hub, &self.agent, call, bytes),
            None => guarded(&self.agent, call),
        };
        let (limit_ms, clock, told) = (self.heartbeat_ms, self.hub.0.ports.clock.clone(), cancel.clone());
        Box::pin(async move {
            tokio::pin!(working);
            loop {
                let silent = async {
                    match limit_ms {
                        Some(limit_ms) => clock.sleep(Duration::from_millis(limit_ms)).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    result = &mut working => {
                        // Whatever it says after it was told to stop, it stopped for that.
                        return if told.is_cancelled() { result.map_err(|_| stopped()) } else { result };
                    }
                    () = heartbeat.beaten() => {}
                    () = silent => return Err(no_sign_of_life(limit_ms.unwrap_or_default())),
                }
            }
        })
    }

    fn tell_retry(&self, attempt: u32, fault: &Fault, wait_ms: u64) {
        if let Err(fault) = mask(&self.hub, &self.call.principal.tenant, Err(fault.clone())) {
            let fault = StoredFault::from(&fault);
            self.tell(Message::Event(Event::Retrying { task: self.task, attempt, fault, wait_ms }));
        }
    }

    fn tell(&self, news: Message) {
        if self.notes.try_send(news).is_err() {
            let fields = json!({"executionId": self.call.execution, "stepId": self.call.step});
            self.hub.0.log().warn("news of a step was not recorded: the execution is busy", fields);
        }
    }
}

fn stopped() -> Fault {
    Fault::new(Code::Cancelled, "it was cancelled")
}

fn no_sign_of_life(limit_ms: u64) -> Fault {
    Fault::new(Code::Timeout, format!("no sign of life for {limit_ms} ms"))
        .with("heartbeatTimeoutMs", limit_ms)
}
