//! Tools that ask the client one thing.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::peer::{About, Ask};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use super::{ask_for, form, nothing, sample, shown, text};

pub fn sampling() -> Result<Action, schema::Error> {
    async fn work(args: Args, context: Context) -> Result<Reply, Halt> {
        let ask = sample("sampling", args.text("prompt").unwrap_or_default(), 100);
        let [written] = ask_for(&context, [(ask, "/content/text")]).await?;
        text(format!("LLM response: {}", shown(&written)))
    }
    let input =
        json!({"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]});
    Action::tool("test_sampling", "Lets the client's model answer a prompt.", input, Policy::read(), work)
}

pub fn elicitation() -> Result<Action, schema::Error> {
    async fn work(args: Args, context: Context) -> Result<Reply, Halt> {
        let properties = json!({
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"}
        });
        let message = args.text("message").unwrap_or_default();
        let answer = context.ask(form("elicitation", message, properties, &["username", "email"])).await?;
        text(format!("User response: {}", told(&answer)))
    }
    let input =
        json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]});
    Action::tool(
        "test_elicitation",
        "Asks the person for a name and an address.",
        input,
        Policy::read(),
        work,
    )
}

/// How an answered form is told.
fn told(answer: &Value) -> String {
    let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
    format!("action={}, content={content}", shown(&answer["action"]))
}

/// Asks with a form and tells what was filled in.
async fn completed(context: Context, ask: Ask) -> Result<Reply, Halt> {
    let answer = context.ask(ask).await?;
    text(format!("Elicitation completed: {}", told(&answer)))
}

pub fn elicitation_defaults() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let properties = json!({
            "name": {"type": "string", "description": "User name", "default": "John Doe"},
            "age": {"type": "integer", "description": "User age", "default": 30},
            "score": {"type": "number", "description": "User score", "default": 95.5},
            "status": {
                "type": "string", "description": "User status",
                "enum": ["active", "inactive", "pending"], "default": "active"
            },
            "verified": {"type": "boolean", "description": "Verification status", "default": true}
        });
        completed(
            context,
            form("defaults", "Please review and update the form fields with defaults", properties, &[]),
        )
        .await
    }
    let about = "Asks with a form whose fields have defaults.";
    Action::tool("test_elicitation_sep1034_defaults", about, nothing(), Policy::read(), work)
}

pub fn elicitation_enums() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let plain = ["option1", "option2", "option3"];
        let titled = |word: &str| {
            let one =
                |value: &str, number: &str| json!({"const": value, "title": format!("{number} {word}")});
            [one("value1", "First"), one("value2", "Second"), one("value3", "Third")]
        };
        let properties = json!({
            "untitledSingle": {"type": "string", "description": "Select one option", "enum": plain},
            "titledSingle": {"type": "string", "description": "Select one option", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string", "description": "Select one option",
                "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {
                "type": "array", "description": "Select options", "minItems": 1, "maxItems": 3,
                "items": {"type": "string", "enum": plain}
            },
            "titledMulti": {
                "type": "array", "description": "Select options", "minItems": 1, "maxItems": 3,
                "items": {"anyOf": titled("Choice")}
            }
        });
        completed(context, form("enums", "Please select options from the enum fields", properties, &[])).await
    }
    let about = "Asks with a form of each kind of choice.";
    Action::tool("test_elicitation_sep1330_enums", about, nothing(), Policy::read(), work)
}

/// Refuses clients that cannot be asked to sample.
pub fn missing_capability() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        if context.can_ask(About::Sample) {
            return text("Success");
        }
        Err(Fault::new(Code::CapabilityMissing, "this tool needs a client that can sample")
            .with("requiredCapabilities", json!({"sampling": {}}))
            .into())
    }
    let about = "Works only with clients that can sample.";
    Action::tool("test_missing_capability", about, nothing(), Policy::read(), work)
}

pub fn streaming_elicitation() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let ask = form("confirmation", "Please confirm", json!({"ok": {"type": "boolean"}}), &["ok"]);
        let [action] = ask_for(&context, [(ask, "/action")]).await?;
        text(format!("Confirmation: {}", shown(&action)))
    }
    let about = "Asks for a confirmation.";
    Action::tool("test_streaming_elicitation", about, nothing(), Policy::read(), work)
}
