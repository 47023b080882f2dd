//! Prompts: plain, with arguments, with a resource, with an image, and one that asks first.

use std::sync::Arc;

use orchestr8_contract::content::{PromptMessage, ResourceContents, ResourceData, Role};
use orchestr8_contract::{Content, Output};
use orchestr8_kernel::action::PromptArgument;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::json;

use super::{PNG, ask_for, form, shown};

/// What `arg1` and `arg2` are completed with.
const SUGGESTIONS: [&str; 3] = ["test", "testing", "tested"];

fn prompt(contents: Vec<Content>) -> Result<Reply, Halt> {
    let messages = contents.into_iter().map(|content| PromptMessage { role: Role::User, content }).collect();
    Ok(Output::Prompt { description: None, messages }.into())
}

fn argument(name: &str, description: &str) -> PromptArgument {
    PromptArgument { name: name.into(), description: Some(description.into()), required: true }
}

pub fn simple() -> Result<Action, schema::Error> {
    Action::prompt("test_simple_prompt", "A prompt without arguments.", vec![], |_, _| {
        std::future::ready(prompt(vec![Content::text("This is a simple prompt for testing.")]))
    })
}

pub fn with_arguments() -> Result<Action, schema::Error> {
    let arguments = vec![argument("arg1", "First test argument"), argument("arg2", "Second test argument")];
    let work = |args: Args, _| {
        let (one, two) = (args.text("arg1").unwrap_or_default(), args.text("arg2").unwrap_or_default());
        let text = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
        std::future::ready(prompt(vec![Content::text(text)]))
    };
    let complete = |_: &str, typed: &str, _: &serde_json::Map<String, serde_json::Value>| {
        SUGGESTIONS.iter().filter(|word| word.starts_with(typed)).map(|word| (*word).to_owned()).collect()
    };
    let about = "A prompt with two arguments.";
    Ok(Action::prompt("test_prompt_with_arguments", about, arguments, work)?.completing(Arc::new(complete)))
}

pub fn with_embedded_resource() -> Result<Action, schema::Error> {
    let arguments = vec![argument("resourceUri", "The address of the resource to embed")];
    let about = "A prompt with an embedded resource.";
    Action::prompt("test_prompt_with_embedded_resource", about, arguments, |args: Args, _| {
        let resource = ResourceContents {
            uri: args.text("resourceUri").unwrap_or_default().to_owned(),
            mime_type: Some("text/plain".into()),
            data: ResourceData::Text("Embedded resource content for testing.".into()),
            meta: None,
        };
        let contents =
            vec![Content::resource(resource), Content::text("Please process the embedded resource above.")];
        std::future::ready(prompt(contents))
    })
}

pub fn with_image() -> Result<Action, schema::Error> {
    Action::prompt("test_prompt_with_image", "A prompt with an image.", vec![], |_, _| {
        let image = Content::image(PNG, "image/png");
        std::future::ready(prompt(vec![image, Content::text("Please analyze the image above.")]))
    })
}

pub fn input_required() -> Result<Action, schema::Error> {
    async fn work(_: Args, context: Context) -> Result<Reply, Halt> {
        let fields = json!({"context": {"type": "string"}});
        let ask = form("user_context", "What context should the prompt use?", fields, &["context"]);
        let [given] = ask_for(&context, [(ask, "/content/context")]).await?;
        prompt(vec![Content::text(format!("Prompt with context: {}", shown(&given)))])
    }
    Action::prompt("test_input_required_result_prompt", "A prompt that asks for its context.", vec![], work)
}
