//! What the public MCP conformance suites ask a server to have: tools, resources and prompts that show each feature.
//!
//! Registered only with `--conformance`. Their names, texts and questions are the suites' own. A few more, `test_sleep` to
//! `test_list`, are for our own tests from outside.

mod content;
mod own;
mod prompts;
mod questions;
mod resources;
mod rounds;
mod talk;
mod tasks;

use std::time::Duration;

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::peer::{About, Ask};
use orchestr8_kernel::{Action, Context, Halt, Reply, schema};
use serde_json::{Value, json};

/// A red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// One sample of silence.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

pub fn all() -> Result<Vec<Action>, schema::Error> {
    Ok(vec![
        content::simple_text()?,
        content::image()?,
        content::audio()?,
        content::embedded_resource()?,
        content::multiple_types()?,
        content::error()?,
        content::json_schema()?,
        content::header()?,
        content::greet()?,
        talk::progress()?,
        talk::logging()?,
        talk::logging_evaluated()?,
        talk::reconnection()?,
        talk::tool_change()?,
        talk::prompt_change()?,
        questions::sampling()?,
        questions::elicitation()?,
        questions::elicitation_defaults()?,
        questions::elicitation_enums()?,
        questions::missing_capability()?,
        questions::streaming_elicitation()?,
        rounds::elicitation()?,
        rounds::sampling()?,
        rounds::list_roots()?,
        rounds::request_state()?,
        rounds::multiple_inputs()?,
        rounds::multi_round()?,
        rounds::tampered_state()?,
        rounds::capabilities()?,
        tasks::slow_compute()?,
        tasks::failing_job()?,
        tasks::protocol_error_job()?,
        tasks::confirm_delete()?,
        tasks::multi_input()?,
        tasks::with_task()?,
        resources::static_text()?,
        resources::static_binary()?,
        resources::watched()?,
        resources::template()?,
        prompts::simple()?,
        prompts::with_arguments()?,
        prompts::with_embedded_resource()?,
        prompts::with_image()?,
        prompts::input_required()?,
        own::sleep()?,
        own::panic()?,
        own::append()?,
        own::list()?,
    ])
}

/// The schema of a tool without arguments.
fn nothing() -> Value {
    json!({"type": "object", "properties": {}})
}

fn text(text: impl Into<String>) -> Result<Reply, Halt> {
    Ok(Output::text(text).into())
}

/// Waits, or stops when it should (MCP-TIMEOUT-3).
async fn pause(context: &Context, ms: u64) -> Result<(), Fault> {
    tokio::select! {
        biased;
        () = context.cancel.fired() => Err(Fault::new(Code::Cancelled, "stopped on request")),
        () = context.kernel.ports().clock.sleep(Duration::from_millis(ms)) => Ok(()),
    }
}

/// A form with fields that must be filled in.
fn form(key: &str, message: &str, properties: Value, required: &[&str]) -> Ask {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Ask {
        key: key.to_owned(),
        about: About::Elicit,
        params: json!({"message": message, "requestedSchema": schema}),
    }
}

/// Something for the client's model to write.
fn sample(key: &str, prompt: &str, tokens: u32) -> Ask {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": prompt}}]);
    Ask {
        key: key.to_owned(),
        about: About::Sample,
        params: json!({"messages": messages, "maxTokens": tokens}),
    }
}

fn roots(key: &str) -> Ask {
    Ask { key: key.to_owned(), about: About::Roots, params: json!({}) }
}

/// Asks until every answer has what the pointer of its question names; an answer of another shape is asked for again, and
/// somebody who does not want to answer is not.
async fn ask_for<const N: usize>(context: &Context, asks: [(Ask, &str); N]) -> Result<[Value; N], Halt> {
    let answers = context.ask_all(asks.iter().map(|(ask, _)| ask.clone()).collect()).await?;
    let mut found = [const { Value::Null }; N];
    let mut open = Vec::new();
    for ((place, answer), (ask, pointer)) in found.iter_mut().zip(answers).zip(asks) {
        let refused = answer.get("action").and_then(Value::as_str).is_some_and(|action| action != "accept");
        match answer.pointer(pointer) {
            Some(value) => *place = value.clone(),
            None if refused => {
                return Err(Fault::new(Code::Cancelled, "the person did not want to answer").into());
            }
            None => open.push(ask),
        }
    }
    if open.is_empty() { Ok(found) } else { Err(Halt::Asks(open)) }
}

/// A text as it is, any other value as JSON.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
