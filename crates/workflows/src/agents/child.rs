//! Work that a step hands to the kernel: stopped when nobody waits for it any more, and known again by its key.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::id::Key;
use orchestr8_contract::{Code, Fault, Output, canonical, limits};
use orchestr8_kernel::peer::{About, Answered, Ask, Peer, Severity};
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Args, Halt, Kernel, Submission, Why};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Answer, Call, Heartbeat, Usage, until_cancelled};

/// Keys of steps that models work for meet no others.
const SCOPE: &str = "workflow-model";

/// A key for the ledger. One that an author has chosen may be too long or hold odd characters; its hash never is.
pub fn key(text: &str) -> Result<Key, Fault> {
    Key::parse(text)
        .or_else(|_| Key::parse(&hash(text)))
        .map_err(|wrong| Fault::internal("no key could be made").because(wrong))
}

pub fn hash(text: &str) -> String {
    canonical::hex(&Sha256::digest(text.as_bytes()))
}

/// Lets an action of another domain that works with models do what a step wants. Its key is that of the step, for all attempts: what
/// succeeded is never paid for twice, and what failed is really tried again.
pub async fn ask(
    kernel: &Kernel,
    action: &'static str,
    args: Map<String, Value>,
    call: &Call,
) -> Result<Value, Fault> {
    if kernel.registry().find(action).is_none() {
        return Err(Fault::new(Code::Configuration, "models and sessions are not a part of this server"));
    }
    let identity = Identity { scope: Scope(SCOPE.into()), key: key(&call.key)?, ttl_ms: limits::KEY_TTL_MS };
    submit(kernel, action, args, call, Some(identity)).await.map_err(priced)
}

/// Runs an action that gives JSON for a step, and stops it when nobody waits for it any more.
pub async fn submit(
    kernel: &Kernel,
    action: &'static str,
    args: Map<String, Value>,
    call: &Call,
    identity: Option<Identity>,
) -> Result<Value, Fault> {
    let mut submission =
        Submission::new(action, Args::new(args), call.principal.clone(), call.correlation.clone());
    submission.trace = call.trace;
    submission.workflow = Some(call.workflow.clone());
    submission.peer = Some(Arc::new(Pulse(call.heartbeat.clone())));
    submission.identities.extend(identity);
    // The work goes on by itself in the kernel; when nobody waits for it any more it is told to stop.
    let _waiting = submission.cancel.on_drop(Why::Client);
    let settled = until_cancelled(&call.cancel, kernel.submit(submission).map(Ok)).await?;
    match settled.result {
        Ok(Output::Json { value }) => Ok(value),
        Err(Halt::Fault(fault)) => Err(fault),
        Ok(Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. }) | Err(Halt::Asks(_)) => {
            Err(Fault::internal(format!("{action} gave what it never gives")))
        }
    }
}

/// The answer of a step, with what it takes of the budget.
pub fn counted(output: Value) -> Answer {
    let usage = usage(&output["usage"]);
    Answer { output, usage }
}

fn usage(used: &Value) -> Usage {
    Usage {
        tokens: used["total"].as_u64().unwrap_or(0),
        cost: used["cost"].as_f64().filter(|cost| cost.is_finite()).unwrap_or(0.0),
    }
}

/// What a failure has cost counts as well: it is put where `Usage::of` finds it.
fn priced(mut fault: Fault) -> Fault {
    let Some(used) = fault.details.as_mut().and_then(|details| details.remove(Usage::DETAIL)) else {
        return fault;
    };
    let Usage { tokens, cost } = usage(&used);
    fault.with(Usage::DETAIL, json!({"tokens": tokens, "cost": cost}))
}

/// `provider/id` in two.
pub fn model(name: &str) -> Result<(&str, &str), Fault> {
    let parts = name.split_once('/').filter(|(provider, id)| !provider.is_empty() && !id.is_empty());
    parts.ok_or_else(|| {
        Fault::invalid("`model` must be `provider/id`, for example `offline/echo`").with("path", "model")
    })
}

/// Whoever waits for the step: progress is a sign of life, and there is nobody to ask.
struct Pulse(Heartbeat);

impl Peer for Pulse {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {
        self.0.beat();
    }

    fn log(&self, _: Severity, _: Option<&str>, _: Value) {}

    fn status(&self, _: &str) {
        self.0.beat();
    }

    fn can(&self, _: About) -> bool {
        false
    }

    fn ask(&self, _: Ask) -> BoxFuture<'_, Result<Answered, Fault>> {
        Box::pin(std::future::ready(Ok(Answered::Later)))
    }
}
