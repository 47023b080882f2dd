//! Sessions as other work uses them: commands submitted on its behalf, a prompt whose progress it hears of.

use std::sync::Arc;

use orchestr8_contract::{Code, Event, Fault, Kind, Output};
use orchestr8_kernel::bus::{Filter, Subscription};
use orchestr8_kernel::submission::Version;
use orchestr8_kernel::{Args, Context, Halt, Settled, Submission};
use orchestr8_models::Usage;
use serde_json::{Map, Value, json};

use crate::commands::{PREFIX, lane};
use crate::limits;
use crate::news;

/// Whoever asks again after a failure wants another try: under a key only success is remembered.
pub const EVERY_FAILURE: &[Kind] = &[
    Kind::Invalid,
    Kind::NotFound,
    Kind::Unauthenticated,
    Kind::Forbidden,
    Kind::Conflict,
    Kind::Exhausted,
    Kind::Timeout,
    Kind::Cancelled,
    Kind::Unavailable,
    Kind::Dependency,
    Kind::State,
    Kind::Unknown,
    Kind::Internal,
];

/// What the agent answered to a prompt.
pub struct Said {
    pub text: String,
    pub stop_reason: Value,
    pub usage: Usage,
}

impl Said {
    pub fn told(&self, session: &str) -> Value {
        json!({"sessionId": session, "text": self.text, "stopReason": self.stop_reason, "usage": spent(&self.usage)})
    }
}

/// A usage with the sum of its tokens.
pub fn spent(usage: &Usage) -> Value {
    json!({"input": usage.input, "output": usage.output, "cacheRead": usage.cache_read, "cacheWrite": usage.cache_write,
           "cost": usage.cost, "total": usage.total()})
}

/// The JSON Schema of that.
pub fn spent_schema() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({"type": "object", "description": "Tokens, and what they cost in US dollars.", "properties": {
        "input": count, "output": count, "cacheRead": count, "cacheWrite": count, "total": count, "cost": {"type": "number"}}})
}

/// A command of a session as a face would submit it: in its lane, counted, and stopped with the work that wants it.
pub fn wish(context: &Context, command: &str, session: &str, args: Value) -> Result<Submission, Fault> {
    let mut args = match args {
        Value::Object(args) => args,
        _ => Map::new(),
    };
    args.insert("sessionId".to_owned(), session.into());
    let (principal, correlation) = (context.principal.clone(), context.correlation.clone());
    let mut wish = Submission::new(format!("{PREFIX}{command}"), Args::new(args), principal, correlation);
    wish.lane = Some(lane(session)?);
    wish.version = Some(Version { subject: session.into(), expected: None });
    wish.cancel = context.cancel.child();
    wish.trace = context.trace;
    Ok(wish)
}

/// What a command gave.
pub fn given(settled: Settled) -> Result<Value, Fault> {
    match settled.result {
        Ok(Output::Json { value }) => Ok(value),
        Err(Halt::Fault(fault)) => Err(fault),
        Ok(Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. }) | Err(Halt::Asks(_)) => {
            Err(Fault::internal("a command of a session gave what it never gives"))
        }
    }
}

/// Prompts a session and waits for the end. An answer that failed or was stopped is a fault: nobody shall take half of one for
/// the whole.
pub async fn speak(context: &Context, session: &Arc<str>, message: &str) -> Result<Said, Fault> {
    let mut heard = context.kernel.bus().subscribe(&Filter::names([news::EVENT]).about(session.clone())).ok();
    let prompt = wish(context, "prompt", session, json!({"message": message}))?;
    let prompt = context.kernel.submit(prompt);
    tokio::pin!(prompt);
    let mut progress = Progress::of(context);
    let settled = loop {
        tokio::select! {
            biased;
            settled = &mut prompt => break settled,
            event = next(&mut heard) => match event {
                Some(event) => progress.hear(&event),
                None => heard = None,
            },
        }
    };
    let ended = given(settled)?;
    let usage: Usage = serde_json::from_value(ended["usage"].clone()).unwrap_or_default();
    let why = match ended["stopReason"].as_str() {
        Some("error") => failure(&ended),
        Some("aborted") => Fault::new(Code::Cancelled, "the turn was stopped before its end"),
        Some(_) | None => {
            let text = ended["text"].as_str().unwrap_or_default().to_owned();
            return Ok(Said { text, stop_reason: ended["stopReason"].clone(), usage });
        }
    };
    Err(why.with("sessionId", &**session).with("usage", spent(&usage)))
}

fn failure(ended: &Value) -> Fault {
    let code = serde_json::from_value(ended["errorCode"].clone()).unwrap_or(Code::AgentFailed);
    let message = ended["errorMessage"].as_str().unwrap_or("the model did not answer");
    Fault::new(code, message.to_owned())
}

async fn next(heard: &mut Option<Subscription>) -> Option<Event> {
    match heard {
        Some(heard) => heard.next().await,
        None => std::future::pending().await,
    }
}

/// Tells whoever waits that the work goes on: often enough to be believed, seldom enough to be read.
pub struct Progress<'c> {
    context: &'c Context,
    told: u32,
    told_us: u64,
}

impl<'c> Progress<'c> {
    pub fn of(context: &'c Context) -> Self {
        Self { context, told: 0, told_us: 0 }
    }

    fn hear(&mut self, event: &Event) {
        // Another tenant may have a session of the same name.
        if event.data["tenant"] != self.context.principal.tenant.as_str() {
            return;
        }
        let event = &event.data["event"];
        match event["type"].as_str() {
            Some("tool_execution_start") => {
                let tool = event["toolName"].as_str().unwrap_or_default();
                self.tell(&format!("calls {tool}"));
            }
            Some(_) | None => self.goes_on("answers"),
        }
    }

    /// Tells it unless something was told just now.
    pub fn goes_on(&mut self, what: &str) {
        let now_us = self.context.kernel.ports().clock.elapsed_us();
        if self.told == 0 || now_us.saturating_sub(self.told_us) >= limits::PROGRESS_MS * 1_000 {
            self.tell(what);
        }
    }

    fn tell(&mut self, what: &str) {
        self.told += 1;
        self.told_us = self.context.kernel.ports().clock.elapsed_us();
        self.context.progress(self.told.into(), None, Some(what));
    }
}
