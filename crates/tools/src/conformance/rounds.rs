//! Tools whose questions end the call, and whose answers come with the next one.

use orchestr8_kernel::peer::{About, Ask};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::json;

use super::{ask_for, form, nothing, roots, sample, shown, text};

const NAME: &str = "/content/name";

pub fn ask_name(key: &str) -> Ask {
    form(key, "What is your name?", json!({"name": {"type": "string"}}), &["name"])
}

fn ask_confirmation() -> Ask {
    form("confirm", "Please confirm", json!({"ok": {"type": "boolean"}}), &["ok"])
}

pub fn elicitation() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let [name] = ask_for(&context, [(ask_name("user_name"), NAME)]).await?;
        text(format!("Hello, {}!", shown(&name)))
    }
    let about = "Asks for a name and greets.";
    Action::tool("test_input_required_result_elicitation", about, nothing(), Policy::read(), work)
}

pub fn sampling() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let ask = sample("capital_question", "What is the capital of France?", 100);
        let [written] = ask_for(&context, [(ask, "/content/text")]).await?;
        text(shown(&written))
    }
    let about = "Lets the client's model answer a question.";
    Action::tool("test_input_required_result_sampling", about, nothing(), Policy::read(), work)
}

pub fn list_roots() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let [found] = ask_for(&context, [(roots("client_roots"), "/roots")]).await?;
        text(format!("Found {} root(s)", found.as_array().map_or(0, Vec::len)))
    }
    let about = "Asks for the client's roots and counts them.";
    Action::tool("test_input_required_result_list_roots", about, nothing(), Policy::read(), work)
}

pub fn request_state() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        ask_for(&context, [(ask_confirmation(), "/action")]).await?;
        text("Confirmed, state-ok")
    }
    let about = "Asks for a confirmation and keeps its state with the client.";
    Action::tool("test_input_required_result_request_state", about, nothing(), Policy::read(), work)
}

pub fn multiple_inputs() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let asks = [
            (ask_name("user_name"), NAME),
            (sample("greeting", "Generate a greeting", 50), "/content/text"),
            (roots("client_roots"), "/roots"),
        ];
        let [name, greeting, found] = ask_for(&context, asks).await?;
        let count = found.as_array().map_or(0, Vec::len);
        text(format!("Name: {}; Greeting: {}; Roots: {count}", shown(&name), shown(&greeting)))
    }
    let about = "Asks three things at once.";
    Action::tool("test_input_required_result_multiple_inputs", about, nothing(), Policy::read(), work)
}

pub fn multi_round() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let [name] = ask_for(&context, [(ask_name("step1"), NAME)]).await?;
        let second =
            form("step2", "What is your favorite color?", json!({"color": {"type": "string"}}), &["color"]);
        let [color] = ask_for(&context, [(second, "/content/color")]).await?;
        text(format!("Multi-round complete for {} who likes {}", shown(&name), shown(&color)))
    }
    let about = "Asks one thing after the other.";
    Action::tool("test_input_required_result_multi_round", about, nothing(), Policy::read(), work)
}

/// What the client keeps for us is sealed; the face refuses it when it was changed.
pub fn tampered_state() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        ask_for(&context, [(ask_confirmation(), "/action")]).await?;
        text("Confirmed with an untouched state")
    }
    let about = "Asks for a confirmation and notices a changed state.";
    Action::tool("test_input_required_result_tampered_state", about, nothing(), Policy::read(), work)
}

/// Asks only what the client said it can answer.
pub fn capabilities() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let asks: Vec<Ask> = [
            (About::Sample, sample("sample_input", "Generate a sample", 50)),
            (About::Elicit, ask_name("user_name")),
            (About::Roots, roots("client_roots")),
        ]
        .into_iter()
        .filter(|(about, _)| context.can_ask(*about))
        .map(|(_, ask)| ask)
        .collect();
        let answers = context.ask_all(asks).await?;
        text(format!("Answered: {}", answers.len()))
    }
    let about = "Asks what the client can answer.";
    Action::tool("test_input_required_result_capabilities", about, nothing(), Policy::read(), work)
}
