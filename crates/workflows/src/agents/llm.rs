//! `@orchestr8/llm`: one answer of a language model, as text or as JSON of a schema.

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_kernel::Kernel;
use serde_json::{Map, Value};

use super::child::{ask, counted, model};
use super::members::Members;
use super::{Agent, Answer, Call, Capability};

/// The action of the sessions domain that does it.
const ACTION: &str = "llm.complete";

/// Members that the action knows by the same name, and judges.
const PASSED_ON: [&str; 7] =
    ["messages", "system", "thinkingLevel", "maxTokens", "temperature", "schema", "repairs"];

const KNOWN: [&str; 9] = [
    "prompt",
    "model",
    "messages",
    "system",
    "thinkingLevel",
    "maxTokens",
    "temperature",
    "schema",
    "repairs",
];

pub struct Llm {
    kernel: Kernel,
}

impl Llm {
    pub fn new(kernel: Kernel) -> Self {
        Self { kernel }
    }
}

impl Agent for Llm {
    fn id(&self) -> &str {
        "@orchestr8/llm"
    }

    fn about(&self) -> &str {
        "Lets a language model answer: {prompt, system, model, schema} gives {text, json, usage, model}."
    }

    fn capability(&self, _input: &Value, _config: &Value) -> Capability {
        Capability::Agent { same_as: vec!["llm.complete"] }
    }

    fn target(&self, input: &Value, config: &Value) -> Option<String> {
        Members::peek(input, config).text("model").ok()?.map(str::to_owned)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let kernel = self.kernel.clone();
        async move {
            let args = arguments(&call)?;
            let answer = ask(&kernel, ACTION, args, &call).await?;
            Ok(counted(told(answer)))
        }
        .boxed()
    }
}

fn arguments(call: &Call) -> Result<Map<String, Value>, Fault> {
    let members = Members::read(&call.input, &call.config, &KNOWN)?;
    let mut args = Map::new();
    for name in PASSED_ON {
        args.extend(members.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    if let Some(name) = members.text("model")? {
        let (provider, id) = model(name)?;
        args.insert("provider".to_owned(), provider.into());
        args.insert("modelId".to_owned(), id.into());
    }
    match members.get("prompt") {
        Some(Value::String(prompt)) => drop(args.insert("prompt".to_owned(), prompt.as_str().into())),
        // The output of another step may be given as it is.
        Some(other) => drop(args.insert("prompt".to_owned(), other.to_string().into())),
        None if args.contains_key("messages") => {}
        None => drop(members.needed_text("prompt")?),
    }
    Ok(args)
}

/// The model under the name that workflows know it by.
fn told(mut answer: Value) -> Value {
    if let Some(map) = answer.as_object_mut() {
        let provider = map.remove("provider").unwrap_or_default();
        let id = map.remove("model").unwrap_or_default();
        let name = format!("{}/{}", provider.as_str().unwrap_or_default(), id.as_str().unwrap_or_default());
        map.insert("model".to_owned(), name.into());
    }
    answer
}
