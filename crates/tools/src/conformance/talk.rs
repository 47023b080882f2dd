//! Tools that tell the client something beside their answer.

use orchestr8_kernel::peer::Severity;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};

use super::{nothing, pause, text};
use crate::listing::announce;

/// Between two pieces of news.
const STEP_MS: u64 = 50;

/// How long the answer comes after the stream was closed.
const RECONNECTION_MS: u64 = 100;

pub fn progress() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        for done in [0.0, 50.0, 100.0] {
            context.progress(done, Some(100.0), None);
            pause(&context, STEP_MS).await?;
        }
        text("Progress told: 0, 50 and 100 of 100")
    }
    Action::tool("test_tool_with_progress", "Tells how far it has come.", nothing(), Policy::read(), work)
}

pub fn logging() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            context.tell(Severity::Info, message.into());
            pause(&context, STEP_MS).await?;
        }
        text("Tool with logging executed successfully")
    }
    Action::tool("test_tool_with_logging", "Sends log messages.", nothing(), Policy::read(), work)
}

/// Sends a log message only if the client asked for such.
pub fn logging_evaluated() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        context.tell(Severity::Info, "Diagnostic trace logging activated".into());
        text("Logging evaluated")
    }
    let about = "Sends a log message if the client wants such.";
    Action::tool("test_logging_tool", about, nothing(), Policy::read(), work)
}

/// Lets the client come back for the answer.
pub fn reconnection() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        context.close_stream();
        pause(&context, RECONNECTION_MS).await?;
        text("Reconnection test completed successfully")
    }
    let about = "Closes the stream before it answers, so that the client reconnects.";
    Action::tool("test_reconnection", about, nothing(), Policy::read(), work)
}

/// Says that the list of tools has changed; it has not.
pub fn tool_change() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        announce(&context.kernel, "tools");
        text("Mutation triggered")
    }
    let about = "Announces that the list of tools has changed.";
    Action::tool("test_trigger_tool_change", about, nothing(), Policy::read(), work)
}

/// Says that the list of prompts has changed; it has not.
pub fn prompt_change() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        announce(&context.kernel, "prompts");
        text("Mutation triggered")
    }
    let about = "Announces that the list of prompts has changed.";
    Action::tool("test_trigger_prompt_change", about, nothing(), Policy::read(), work)
}
