//! The run of an action: its deadline, its cancellation, and what becomes of work that outlives them (MCP-TIMEOUT).

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, Fault, Output};
use serde_json::json;
use tokio::sync::oneshot;

use crate::action::{Action, Cost, Halt, Reply};
use crate::audit::AuditSubject;
use crate::cancel::{Cancel, Why};
use crate::context::Context;
use crate::kernel::{Core, Kernel};
use crate::late;
use crate::ledger::{Claim, LateKeys};
use crate::log::Log;
use crate::outcome::End;
use crate::pipeline::{Admitted, Hold};
use crate::resilience::{self, breaker};

/// The work has been answered for; what is left is to write it down.
pub struct Ended {
    pub admitted: Admitted,
    pub claim: Option<Box<Claim>>,
    pub version: Option<u64>,
    pub end: End,
    pub result: Result<Reply, Halt>,
    /// Still held while the outcome is written, unless the work goes on and holds it itself.
    pub hold: Option<Hold>,
}

type Worked = Result<Reply, Halt>;

/// Runs the work and returns at its end, at its deadline, or when the client wants it stopped: whichever is first.
pub async fn run(
    core: &Arc<Core>,
    mut admitted: Admitted,
    mut claim: Option<Box<Claim>>,
    version: Option<u64>,
    hold: Hold,
) -> Ended {
    let mut work = begin(core, &mut admitted);
    if admitted.action.policy.cost == Cost::Quick
        && let Poll::Ready(result) = poll_once(work.as_mut()).await
    {
        let (end, result) = judge(&admitted, result);
        return Ended { admitted, claim, version, end, result, hold: Some(hold) };
    }
    let (sender, receiver) = oneshot::channel();
    let trace = trace_of(&admitted, claim.as_deref_mut());
    tokio::spawn(outlast(core.clone(), trace, work, hold, sender));
    let (end, result, hold) = Box::pin(first_of(core, &admitted, receiver)).await;
    Ended { admitted, claim, version, end, result, hold }
}

/// What records the end of the work, should it outlive its answer.
fn trace_of(admitted: &Admitted, claim: Option<&mut Claim>) -> Trace {
    let claim = claim.filter(|_| !admitted.submission.timeout_is_final);
    Trace::of(admitted, claim.map(Claim::late_keys))
}

/// The work as a future that never unwinds: a panic becomes INTERNAL.
fn begin(core: &Arc<Core>, admitted: &mut Admitted) -> BoxFuture<'static, Worked> {
    let submission = &mut admitted.submission;
    let context = Context {
        run: admitted.run,
        correlation: submission.correlation.clone(),
        trace: submission.trace.map(|trace| trace.within(admitted.run.0)),
        principal: submission.principal.inherited(),
        transport: submission.transport,
        source: submission.source,
        workflow: submission.workflow.clone(),
        cancel: submission.cancel.clone(),
        kernel: Kernel::of(core),
        peer: submission.peer.clone(),
    };
    let action = admitted.action.clone();
    // Only the audit looks at the arguments afterwards.
    if action.policy.audited {
        let subject = AuditSubject::of(submission.args.as_value(), action.policy.secret_args);
        submission.audit_subject = Some(subject);
    }
    let args = submission.args.take();
    let (log, correlation) = (context.kernel.log().clone(), context.correlation.clone());
    match action.policy.resilience.clone() {
        None => caught(async move { action.work.run(args, context).await }, log, correlation).boxed(),
        Some(policy) => {
            caught(resilient(core.clone(), policy, action, args, context), log, correlation).boxed()
        }
    }
}

async fn caught(work: impl Future<Output = Worked>, log: Log, correlation: CorrelationId) -> Worked {
    let worked = AssertUnwindSafe(work).catch_unwind().await;
    worked.unwrap_or_else(|panic| {
        let text = panic_text(panic.as_ref());
        log.error("the work of an action panicked", json!({"correlationId": correlation, "panic": text}));
        Err(Halt::Fault(Fault::internal("the tool failed unexpectedly").with("reason", "panic")))
    })
}

/// The work under `retry(breaker(timeout(work)))`.
async fn resilient(
    core: Arc<Core>,
    policy: resilience::Resilience,
    action: Arc<Action>,
    args: crate::submission::Args,
    context: Context,
) -> Worked {
    let cancel = context.cancel.clone();
    // Questions to the client are not failures: they pass through the layers as a success and are sorted out here.
    let attempt = |attempt: resilience::Attempt| {
        let (action, args, mut context) = (action.clone(), args.clone(), context.clone());
        context.cancel = Cancel::from_token(attempt.cancel);
        async move {
            match action.work.run(args, context).await {
                Ok(reply) => Ok(Ok(reply)),
                Err(Halt::Asks(asks)) => Ok(Err(asks)),
                Err(Halt::Fault(fault)) => Err(fault),
            }
        }
    };
    let ports = &core.ports;
    let own = || breaker::key(action.name.as_str(), None).into();
    let key = action.policy.breaker.clone().unwrap_or_else(own);
    let key = breaker::of_tenant(&key, &context.principal.tenant);
    match resilience::run(
        &policy,
        &key,
        attempt,
        cancel.token(),
        &core.breakers,
        &*ports.clock,
        &*ports.random,
    )
    .await
    {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(asks)) => Err(Halt::Asks(asks)),
        Err(fault) => Err(Halt::Fault(fault)),
    }
}

async fn poll_once(mut work: Pin<&mut (dyn Future<Output = Worked> + Send)>) -> Poll<Worked> {
    std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await
}

/// Waits for the work, its deadline and its cancellation. The deadline stays the driver after a disconnect.
async fn first_of(
    core: &Arc<Core>,
    admitted: &Admitted,
    mut receiver: oneshot::Receiver<(Worked, Hold)>,
) -> (End, Worked, Option<Hold>) {
    let submission = &admitted.submission;
    let own_ms = admitted.action.timeout_ms(core.limits.timeout_ms);
    let limit_ms = submission.timeout_ms.map_or(own_ms, |wish| wish.min(own_ms));
    let deadline = core.ports.clock.sleep(Duration::from_millis(limit_ms));
    tokio::pin!(deadline);
    let cancel = &submission.cancel;
    let mut listening = true;
    loop {
        tokio::select! {
            biased;
            worked = &mut receiver => return match worked {
                Ok((result, hold)) => {
                    let (end, result) = judge(admitted, result);
                    (end, result, Some(hold))
                }
                Err(_) => (End::ToolError, Err(Halt::Fault(Fault::internal("the work vanished"))), None),
            },
            () = cancel.fired(), if listening => match cancel.why() {
                // A client that is gone waits for nothing; the work may still end well, and that is recorded.
                Some(Why::Disconnect) => listening = false,
                Some(Why::Client | Why::Deadline) | None => {
                    return (End::Aborted, Err(stopped()), None);
                }
            },
            () = &mut deadline => {
                cancel.fire(Why::Deadline);
                let fault = Fault::new(Code::Timeout, format!("no answer within {limit_ms} ms; the work may still go on"))
                    .with("timeoutMs", limit_ms);
                return (End::Timeout, Err(fault.into()), None);
            }
        }
    }
}

/// Sees the work to its end, holding its slots (MCP-TIMEOUT-4). When nobody waits any more, its end is only recorded:
/// there is no second answer (MCP-TIMEOUT-5). The slots and the place in the lane are for work, which is over; until the
/// record is written it is only counted as in flight, so that a shutdown waits for it.
async fn outlast(
    core: Arc<Core>,
    trace: Trace,
    work: BoxFuture<'static, Worked>,
    hold: Hold,
    answer: oneshot::Sender<(Worked, Hold)>,
) {
    let result = work.await;
    if let Err((result, Hold { slots, place, in_flight })) = answer.send((result, hold)) {
        drop((slots, place));
        late::settle(&core, trace, result).await;
        drop(in_flight);
    }
}

/// What is needed to record a late end.
pub struct Trace {
    pub tenant: orchestr8_contract::id::Tenant,
    pub action: Arc<Action>,
    pub run: orchestr8_contract::id::RunId,
    pub correlation: orchestr8_contract::id::CorrelationId,
    pub cancel: Cancel,
    pub began_us: u64,
    /// The keys it ran under, if it had any.
    pub keys: Option<LateKeys>,
}

impl Trace {
    fn of(admitted: &Admitted, keys: Option<LateKeys>) -> Self {
        let submission = &admitted.submission;
        Self {
            tenant: submission.principal.tenant.clone(),
            action: admitted.action.clone(),
            run: admitted.run,
            correlation: submission.correlation.clone(),
            cancel: submission.cancel.clone(),
            began_us: admitted.began_us,
            keys,
        }
    }
}

/// The word for how it ended, and the result checked against what the action promises.
fn judge(admitted: &Admitted, result: Worked) -> (End, Worked) {
    let why = admitted.submission.cancel.why();
    let gone = why == Some(Why::Disconnect);
    match result {
        Ok(reply) => match keeps_promise(&admitted.action, &reply.output) {
            Ok(()) if gone => (End::DisconnectedCompleted, Ok(reply)),
            Ok(()) => (End::Success, Ok(reply)),
            Err(fault) => (End::ToolError, Err(fault.into())),
        },
        Err(Halt::Asks(asks)) => (End::InputRequired, Err(Halt::Asks(asks))),
        Err(Halt::Fault(fault)) if gone => (End::Aborted, Err(fault.into())),
        // The same outcome whether the work or we were the first to notice.
        Err(Halt::Fault(_)) if why == Some(Why::Client) => (End::Aborted, Err(stopped())),
        Err(Halt::Fault(fault)) => (End::ToolError, Err(fault.into())),
    }
}

fn stopped() -> Halt {
    Fault::new(Code::Cancelled, "stopped on request").into()
}

/// Whether an output has the shape that the action declares.
pub fn keeps_promise(action: &Action, output: &Output) -> Result<(), Fault> {
    let Some(schema) = &action.output else { return Ok(()) };
    let value = match output {
        Output::Json { value } => value,
        Output::Blocks { failed: true, .. } => return Ok(()),
        Output::Blocks { structured: Some(value), .. } => value,
        Output::Blocks { structured: None, .. } | Output::Resource { .. } | Output::Prompt { .. } => {
            return Err(Fault::internal("the tool promises structured output and gave none"));
        }
    };
    schema.check(value).map_err(|wrong| {
        Fault::internal("the tool's output does not match its own schema")
            .with("reason", "output_schema_failed")
            .because(wrong)
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}
