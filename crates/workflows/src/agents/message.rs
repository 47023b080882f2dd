//! `@orchestr8/send` and `@orchestr8/request`: messages to other agents. What was sent before a crash is not sent again.

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault, Kind};
use orchestr8_kernel::Kernel;
use serde_json::{Map, Value, json};

use super::child::{hash, submit};
use super::members::Members;
use super::{Agent, Answer, Call, Capability, WorkLocation};
use crate::limits::OPEN_REQUESTS;

/// The actions of the agents domain that do it.
const SEND: &str = "aacp.send";
const STATUS: &str = "aacp.request_status";

/// How long one question after a request waits; then it is asked again, with a sign of life in between.
const WAIT_MS: u64 = 20_000;

/// The longest time that one attempt of a request may stay without an answer.
const TIMEOUT_MAX_MS: u64 = 86_400_000;

/// Characters of a hash that tell one step from another.
const ID_CHARS: usize = 32;

/// Tells an agent something, or all who listen to a topic.
pub struct Send {
    kernel: Kernel,
}

/// Asks an agent, and waits for its answer however long that takes: the step's own limits say when to give up.
pub struct Request {
    kernel: Kernel,
}

impl Send {
    pub fn new(kernel: Kernel) -> Self {
        Self { kernel }
    }
}

impl Request {
    pub fn new(kernel: Kernel) -> Self {
        Self { kernel }
    }
}

impl Agent for Send {
    fn id(&self) -> &str {
        "@orchestr8/send"
    }

    fn about(&self) -> &str {
        "Tells another agent something, durably: {to or topic, payload, from} gives {messageId, seq}."
    }

    fn capability(&self, _input: &Value, _config: &Value) -> Capability {
        Capability::Agent { same_as: vec![SEND] }
    }

    fn target(&self, input: &Value, config: &Value) -> Option<String> {
        Members::peek(input, config).text("to").ok()?.map(str::to_owned)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let kernel = self.kernel.clone();
        async move {
            let members = Members::read(&call.input, &call.config, &["to", "topic", "payload", "from"])?;
            let mut args = envelope(&call, &members, "EVENT")?;
            match (members.text("to")?, members.text("topic")?) {
                (None, Some(topic)) => args.insert("topic".to_owned(), topic.into()),
                (_, None) => args.insert("targetAgentId".to_owned(), members.needed_text("to")?.into()),
                (Some(_), Some(_)) => {
                    return Err(Fault::invalid("give `to` or `topic`, not both").with("path", "topic"));
                }
            };
            ask(&kernel, SEND, args, &call).await.map(Answer::from)
        }
        .boxed()
    }
}

impl Agent for Request {
    fn id(&self) -> &str {
        "@orchestr8/request"
    }

    fn about(&self) -> &str {
        "Asks another agent and waits for its answer, over restarts: {to, payload, from, timeoutMs} gives what it answers."
    }

    fn location(&self) -> WorkLocation {
        WorkLocation::Remote { limit: OPEN_REQUESTS, is_per_tenant: true }
    }

    fn capability(&self, _input: &Value, _config: &Value) -> Capability {
        Capability::Agent { same_as: vec![SEND] }
    }

    fn target(&self, input: &Value, config: &Value) -> Option<String> {
        Members::peek(input, config).text("to").ok()?.map(str::to_owned)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let kernel = self.kernel.clone();
        async move {
            let members = Members::read(&call.input, &call.config, &["to", "payload", "from", "timeoutMs"])?;
            let mut args = envelope(&call, &members, "REQUEST")?;
            args.insert("targetAgentId".to_owned(), members.needed_text("to")?.into());
            if let Some(timeout_ms) = members.number("timeoutMs", 1, TIMEOUT_MAX_MS)? {
                args.insert("timeoutMs".to_owned(), timeout_ms.into());
            }
            // Another attempt of the step is another message, which sets going again what nobody tries any more.
            let message = own_id("message", &format!("{}#{}", call.key, call.attempt));
            args.insert("messageId".to_owned(), message.into());
            // The same for every attempt of the step and after a crash: the agent works on it once.
            let request = own_id("request", &call.key);
            args.insert("requestId".to_owned(), request.as_str().into());
            args.insert("waitMs".to_owned(), WAIT_MS.into());
            let mut told = ask(&kernel, SEND, args, &call).await?["request"].take();
            loop {
                if let Some(answer) = answer(&request, &told) {
                    return answer.map(Answer::from);
                }
                call.heartbeat.beat();
                let args = json!({"requestId": request, "waitMs": WAIT_MS});
                told = ask(&kernel, STATUS, args.as_object().cloned().unwrap_or_default(), &call).await?;
            }
        }
        .boxed()
    }
}

/// What both kinds of message have.
fn envelope(call: &Call, members: &Members<'_>, kind: &str) -> Result<Map<String, Value>, Fault> {
    let mut args = Map::new();
    args.insert("messageType".to_owned(), kind.into());
    let from = members.text("from")?.map_or_else(|| format!("workflow:{}", call.workflow), str::to_owned);
    args.insert("sourceAgentId".to_owned(), from.into());
    args.insert("messageId".to_owned(), own_id("message", &call.key).into());
    args.insert("correlationId".to_owned(), call.correlation.as_str().into());
    args.insert("payload".to_owned(), members.get("payload").cloned().unwrap_or_default());
    Ok(args)
}

/// An id of this step that every attempt finds again.
fn own_id(what: &str, key: &str) -> String {
    format!("{what}-{}", &hash(&format!("{what} {key}"))[..ID_CHARS])
}

/// How the request ended, if somebody knows. One that nobody tries any more stays unknown, which is a failure of the step.
fn answer(request: &str, told: &Value) -> Option<Result<Value, Fault>> {
    match told["status"].as_str().unwrap_or_default() {
        "COMPLETED" => Some(Ok(told["response"].clone())),
        "FAILED" => {
            let text = |name: &str| told["error"][name].as_str().unwrap_or_default();
            let code = Code::ALL.iter().find(|code| code.as_str() == text("code")).copied();
            // What another agent calls an internal error is its own failure and none of this server.
            let code = code.filter(|code| code.kind() != Kind::Internal).unwrap_or(Code::AgentFailed);
            let fault = Fault::new(code, text("message").to_owned());
            Some(Err(fault.with("requestId", request)))
        }
        "UNKNOWN" if told.get("nextRetryAt").is_none() => {
            let text =
                "the agent did not answer, and nobody tries any more; whether it did the work is not known";
            Some(Err(Fault::new(Code::Timeout, text).with("requestId", request)))
        }
        _ => None,
    }
}

async fn ask(
    kernel: &Kernel,
    action: &'static str,
    args: Map<String, Value>,
    call: &Call,
) -> Result<Value, Fault> {
    match kernel.registry().find(action) {
        // What a message is known by is in its arguments, so it needs no key of its own.
        Some(_) => submit(kernel, action, args, call, None).await,
        None => Err(Fault::new(Code::Configuration, "messages are not a part of this server")),
    }
}
