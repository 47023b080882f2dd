//! Tools that may, or must, run as tasks.
//!
//! `confirm_delete` and `multi_input` ask in the middle of their work, so that the task waits for the answers.
//! `test_tool_with_task` asks first, and says so: the call is answered with the question, and the task comes after it.

use orchestr8_contract::{Content, Fault, Output};
use orchestr8_kernel::action::Tasking;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use super::rounds::ask_name;
use super::{ask_for, form, nothing, pause, shown, text};

/// A fact for the MCP face: the keys of questions that are asked before the call becomes a task.
const ASKS_FIRST: &str = "orchestr8/asksFirst";

/// A detail for the MCP face: the JSON-RPC code of a failure that is one of the protocol.
const PROTOCOL_ERROR: &str = "protocolError";

const INTERNAL_ERROR: i64 = -32_603;

/// Long enough that a call without waiting never sees the end of it, short for a test.
const WORK_MS: u64 = 20;

/// The suite cancels tasks of a minute.
const COMPUTE_TIMEOUT_MS: u64 = 120_000;

const COMPUTE_SECONDS_MAX: u32 = 100;

fn policy(tasking: Tasking) -> Policy {
    Policy { tasking, ..Policy::read() }
}

pub fn slow_compute() -> Result<Action, schema::Error> {
    async fn work(args: Args, context: Context) -> Result<Reply, Halt> {
        let seconds = args.get("seconds").and_then(Value::as_f64).unwrap_or(0.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the schema bounds it")]
        pause(&context, (seconds * 1000.0) as u64).await?;
        text(format!("Computed {} after {seconds}s", args.text("label").unwrap_or("nothing")))
    }
    let input = json!({
        "type": "object",
        "properties": {
            "seconds": {"type": "number", "minimum": 0, "maximum": COMPUTE_SECONDS_MAX},
            "label": {"type": "string"}
        },
        "required": ["seconds"]
    });
    let policy = Policy { timeout_ms: Some(COMPUTE_TIMEOUT_MS), ..policy(Tasking::Optional) };
    Action::tool("slow_compute", "Takes as long as it is told.", input, policy, work)
}

/// The work is done and reports a failure of its own.
pub fn failing_job() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        pause(&context, WORK_MS).await?;
        let blocks = vec![Content::text("The job failed, as it always does")];
        Ok(Output::Blocks { blocks, structured: None, failed: true, meta: None }.into())
    }
    Action::tool(
        "failing_job",
        "Runs as a task and reports a failure.",
        nothing(),
        policy(Tasking::Required),
        work,
    )
}

/// The work could not be done at all.
pub fn protocol_error_job() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        pause(&context, WORK_MS).await?;
        Err(Fault::internal("the job broke, as it always does").with(PROTOCOL_ERROR, INTERNAL_ERROR).into())
    }
    Action::tool(
        "protocol_error_job",
        "Runs as a task and breaks.",
        nothing(),
        policy(Tasking::Optional),
        work,
    )
}

fn ask_confirmation(key: &str, message: &str) -> super::Ask {
    form(key, message, json!({"confirm": {"type": "boolean"}}), &["confirm"])
}

pub fn confirm_delete() -> Result<Action, schema::Error> {
    async fn work(args: Args, context: Context) -> Result<Reply, Halt> {
        pause(&context, WORK_MS).await?;
        let file = args.text("filename").unwrap_or("the file").to_owned();
        let ask = ask_confirmation("confirm", &format!("Delete {file}?"));
        let [answer] = ask_for(&context, [(ask, "")]).await?;
        match answer.pointer("/content/confirm").and_then(Value::as_bool) {
            Some(true) => text(format!("Deleted {file}")),
            Some(false) | None => text(format!("Kept {file}")),
        }
    }
    let input =
        json!({"type": "object", "properties": {"filename": {"type": "string"}}, "required": ["filename"]});
    let about = "Asks for a confirmation before it pretends to delete a file.";
    Action::tool("confirm_delete", about, input, policy(Tasking::Optional), work)
}

pub fn multi_input() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        pause(&context, WORK_MS).await?;
        let asks = [(ask_name("name"), ""), (ask_confirmation("confirm", "Go on?"), "")];
        let [name, confirm] = ask_for(&context, asks).await?;
        let part =
            |answer: &Value, pointer: &str| answer.pointer(pointer).map_or_else(|| "nothing".into(), shown);
        text(format!(
            "Name: {}; confirmed: {}",
            part(&name, "/content/name"),
            part(&confirm, "/content/confirm")
        ))
    }
    let about = "Asks two things at once.";
    Action::tool("multi_input", about, nothing(), policy(Tasking::Optional), work)
}

pub fn with_task() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let [name] = ask_for(&context, [(ask_name("user_name"), "/content/name")]).await?;
        pause(&context, WORK_MS).await?;
        text(format!("Hello, {}!", shown(&name)))
    }
    let about = "Asks for a name, then greets in a task.";
    let mut action = Action::tool("test_tool_with_task", about, nothing(), policy(Tasking::Required), work)?;
    action.about.meta.insert(ASKS_FIRST.into(), json!(["user_name"]));
    Ok(action)
}
