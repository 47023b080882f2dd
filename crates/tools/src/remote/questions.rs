//! What another server asks of its client is asked of ours, if the call came from a client that can be asked.
//!
//! In the older revisions a server sends a request of its own and waits. In the current one a call ends with questions, and
//! is made again with the answers. Our own client is of either kind too; all four meetings of the two work, but one: a
//! client that answers by calling again would let the call begin anew, so a server that waits gets its answer that way only
//! in calls that may be repeated.

use std::collections::BTreeMap;

use orchestr8_contract::{Code, Fault, canonical};
use orchestr8_kernel::interest::Interest;
use orchestr8_kernel::peer::{About, Ask};
use orchestr8_kernel::{Context, Halt};
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ErrorCode, InputRequest, InputRequests, InputResponses, TASKS_EXTENSION_ID,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::limits::QUESTIONS;

/// What a server hears that is to end its call.
const AGAIN: &str = "the call is to end here, and is made again with the answer";

/// One call, as somebody who can be asked for it.
pub struct Asker {
    pub context: Context,
    server: String,
    repeatable: bool,
    /// The prints of what was asked so far.
    asked: Mutex<Vec<String>>,
    /// Where questions go that the client answers by calling again: the call is to end, and nothing more is asked.
    later: mpsc::Sender<Vec<Ask>>,
    /// The log messages that the client wants of this call.
    _log: Option<Interest>,
}

impl Asker {
    /// The asker, and the questions the client answers by calling again.
    pub fn new(server: &str, context: Context, repeatable: bool) -> (Self, mpsc::Receiver<Vec<Ask>>) {
        let (later, ending) = mpsc::channel(1);
        let interests = context.kernel.interests();
        let log = context.log_level().map(|level| interests.log_from(&context.principal.tenant, level));
        let (server, asked) = (server.to_owned(), Mutex::default());
        (Self { context, server, repeatable, asked, later, _log: log }, ending)
    }

    pub fn now_us(&self) -> u64 {
        self.context.kernel.ports().clock.elapsed_us()
    }

    /// Asks what a server asks while it waits.
    pub async fn ask<T: DeserializeOwned>(&self, about: About, params: Value) -> Result<T, ErrorData> {
        if self.later.capacity() == 0 {
            return Err(failed(String::from(AGAIN)));
        }
        let key = self.key(about, &params)?;
        let ask = Ask { key, about, params: signed(&self.server, about, params) };
        let answered = tokio::select! {
            biased;
            () = self.context.cancel.fired() => Err(Fault::new(Code::Cancelled, "the call is over").into()),
            answered = self.context.ask(ask) => answered,
        };
        match answered {
            Ok(answer) => serde_json::from_value(answer)
                .map_err(|error| failed(format!("the client's answer cannot be read: {error}"))),
            Err(Halt::Fault(fault)) if fault.code == Code::CapabilityMissing => Err(refused(&fault.message)),
            Err(Halt::Fault(fault)) => Err(failed(fault.message.into_owned())),
            Err(Halt::Asks(asks)) if self.repeatable => {
                // Full means that the call is to end because of another question already.
                let _ = self.later.try_send(asks);
                Err(failed(String::from(AGAIN)))
            }
            Err(Halt::Asks(_)) => {
                Err(refused("the client answers by calling again, and this call may not be repeated"))
            }
        }
    }

    /// Names a question the same way when the call is made again. The same question twice is two questions.
    fn key(&self, about: About, params: &Value) -> Result<String, ErrorData> {
        const DIGITS: usize = 16;
        let mut print = canonical::sha256_hex(&json!([about, params]));
        print.truncate(DIGITS);
        let mut asked = self.asked.lock();
        if asked.len() >= QUESTIONS {
            return Err(refused(&format!("more than {QUESTIONS} questions in one call")));
        }
        let before = asked.iter().filter(|other| **other == print).count();
        asked.push(print.clone());
        Ok(format!("{print}-{before}"))
    }
}

/// Asks what a call ended with, in its so-many-th round.
pub async fn answers(
    server: &str,
    context: &Context,
    round: usize,
    requests: InputRequests,
) -> Result<InputResponses, Halt> {
    if requests.len() > QUESTIONS {
        let what = format!("the MCP server '{server}' asks more than {QUESTIONS} questions at once");
        return Err(Fault::new(Code::ResourceExhausted, what).into());
    }
    let (mut keys, mut asks) = (Vec::new(), Vec::new());
    for (key, request) in requests {
        let (about, params) = parts(request)?;
        asks.push(Ask { key: format!("{round}-{key}"), about, params: signed(server, about, params) });
        keys.push(key);
    }
    match context.ask_all(asks).await {
        Ok(answers) => Ok(keys.into_iter().zip(answers).collect::<BTreeMap<_, _>>()),
        Err(Halt::Asks(asks)) => Err(Halt::Asks(asks)),
        // The server is well; that nobody answers it must not count against it.
        Err(Halt::Fault(fault)) => {
            let what =
                format!("the MCP server '{server}' asks something, and got no answer: {}", fault.message);
            Err(Fault::new(Code::CapabilityMissing, what).with("server", server).into())
        }
    }
}

fn parts(request: InputRequest) -> Result<(About, Value), Fault> {
    let params = |value: &Value| value.get("params").cloned().unwrap_or_else(|| json!({}));
    let value = serde_json::to_value(&request).unwrap_or_default();
    let about = match request {
        InputRequest::CreateMessage(_) => About::Sample,
        InputRequest::Elicitation(_) => About::Elicit,
        InputRequest::ListRoots(_) => About::Roots,
        // The library may learn of more kinds than we know.
        _ => return Err(Fault::new(Code::CapabilityMissing, "a question of a kind that is not known here")),
    };
    Ok((about, params(&value)))
}

/// A person should know who asks: it is not us.
fn signed(server: &str, about: About, mut params: Value) -> Value {
    if let (About::Elicit, Some(Value::String(message))) = (about, params.get_mut("message")) {
        *message = format!("{server}: {message}");
    }
    params
}

/// What we declare to a server that keeps a conversation: everything, since its calls come from clients of all sorts. One
/// that cannot be asked something is found out when it is asked.
pub fn all() -> ClientCapabilities {
    capabilities(true, json!({"form": {}, "url": {}}), true)
}

/// What we declare with one call, in the current revision, where a client that declares tasks may be given one.
pub fn able(context: &Context, tasks: bool) -> ClientCapabilities {
    let can = |about| context.can_ask(about);
    let mut declared = capabilities(
        can(About::Sample),
        if can(About::Elicit) { json!({}) } else { Value::Null },
        can(About::Roots),
    );
    if tasks {
        declared.extensions.get_or_insert_default().insert(TASKS_EXTENSION_ID.into(), Map::new());
    }
    declared
}

fn capabilities(sampling: bool, elicitation: Value, roots: bool) -> ClientCapabilities {
    let some = |is_so| if is_so { json!({}) } else { Value::Null };
    let declared = json!({"sampling": some(sampling), "elicitation": elicitation, "roots": some(roots)});
    serde_json::from_value(declared).unwrap_or_default()
}

/// Nobody can be asked: the same as if there were no such method.
pub fn refused(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why.to_owned(), None)
}

fn failed(why: String) -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None)
}
