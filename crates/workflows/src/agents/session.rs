//! `@orchestr8/session`: a message to an agent that remembers, has tools and works until it is done.

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_kernel::Kernel;
use serde_json::{Map, Value};

use super::child::{ask, counted, hash, model};
use super::members::Members;
use super::{Agent, Answer, Call, Capability};

/// The action of the sessions domain that does it.
const ACTION: &str = "session.run";

/// Members that the action knows by the same name, and judges.
const PASSED_ON: [&str; 6] = ["sessionId", "cwd", "systemPrompt", "thinkingLevel", "tools", "keep"];

const KNOWN: [&str; 9] =
    ["message", "model", "name", "sessionId", "cwd", "systemPrompt", "thinkingLevel", "tools", "keep"];

/// Characters of a hash that tell one step from another.
const ID_CHARS: usize = 32;

pub struct Session {
    kernel: Kernel,
}

impl Session {
    pub fn new(kernel: Kernel) -> Self {
        Self { kernel }
    }
}

impl Agent for Session {
    fn id(&self) -> &str {
        "@orchestr8/session"
    }

    fn about(&self) -> &str {
        "Sends a message to an agent session, which is made if it is not there: {message, sessionId} gives {sessionId, text, usage}."
    }

    fn capability(&self, _input: &Value, _config: &Value) -> Capability {
        Capability::Agent { same_as: vec!["session.run", "prompt_session"] }
    }

    fn target(&self, input: &Value, config: &Value) -> Option<String> {
        Members::peek(input, config).text("model").ok()?.map(str::to_owned)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let kernel = self.kernel.clone();
        async move {
            let args = arguments(&call)?;
            ask(&kernel, ACTION, args, &call).await.map(counted)
        }
        .boxed()
    }
}

fn arguments(call: &Call) -> Result<Map<String, Value>, Fault> {
    let members = Members::read(&call.input, &call.config, &KNOWN)?;
    let mut args = Map::new();
    // The same session for every attempt of the step, and after a crash.
    let own = format!("step-{}", &hash(&call.key)[..ID_CHARS]);
    args.insert("sessionId".to_owned(), own.into());
    for name in PASSED_ON {
        args.extend(members.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    if let Some(name) = members.text("model")? {
        let (provider, id) = model(name)?;
        args.insert("provider".to_owned(), provider.into());
        args.insert("modelId".to_owned(), id.into());
    }
    if let Some(name) = members.text("name")? {
        args.insert("sessionName".to_owned(), name.into());
    }
    let message = match members.get("message") {
        Some(Value::String(message)) => message.clone(),
        // The output of another step may be given as it is.
        Some(other) => other.to_string(),
        None => members.needed_text("message")?.to_owned(),
    };
    args.insert("message".to_owned(), message.into());
    Ok(args)
}
