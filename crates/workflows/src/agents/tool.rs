//! `@orchestr8/tool`: any MCP tool of this server, its own or one of another server behind it.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Content, Fault, Output, limits};
use orchestr8_kernel::action::Shown;
use orchestr8_kernel::peer::{Alone, Peer};
use orchestr8_kernel::registry::ToolFilter;
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Args, Halt, Kernel, Submission, Why};
use serde_json::{Map, Value, json};

use super::child::key;
use super::http::status::shorten;
use super::members::{Members, wrong};
use super::{Agent, Answer, Call, Capability, until_cancelled};
use crate::limits::TOOL_MESSAGE_BYTES;

/// Keys of steps meet no keys of clients.
const SCOPE: &str = "workflow";

pub struct Tool {
    kernel: Kernel,
    /// What it sees, which is what clients see.
    view: Arc<Alone>,
}

impl Tool {
    pub fn new(kernel: Kernel, filter: ToolFilter) -> Self {
        Self { kernel, view: Arc::new(Alone(filter)) }
    }
}

impl Agent for Tool {
    fn id(&self) -> &str {
        "@orchestr8/tool"
    }

    fn about(&self) -> &str {
        "Calls an MCP tool of this server or of one behind it: {tool, arguments} gives what the tool gives."
    }

    fn capability(&self, input: &Value, config: &Value) -> Capability {
        let given = Members::peek(input, config).text("tool").ok().flatten().unwrap_or_default();
        let action = self.kernel.registry().find(given);
        // A tool that was called by an alias is the same tool.
        Capability::Tool(action.map_or_else(|| given.to_owned(), |action| action.name.to_string()))
    }

    fn target(&self, input: &Value, config: &Value) -> Option<String> {
        Members::peek(input, config).text("tool").ok()?.map(str::to_owned)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let (kernel, view) = (self.kernel.clone(), self.view.clone());
        async move {
            let submission = submission(&kernel, view, &call)?;
            let tool = submission.action.clone();
            let _waiting = submission.cancel.on_drop(Why::Client);
            let settled = until_cancelled(&call.cancel, kernel.submit(submission).map(Ok)).await?;
            match settled.result {
                Ok(output) => value(&tool, output).map(Answer::from),
                Err(Halt::Fault(fault)) => Err(fault),
                Err(Halt::Asks(_)) => Err(Fault::new(
                    Code::CapabilityMissing,
                    format!("the tool {tool} asks a question, and a workflow has nobody to answer it"),
                )),
            }
        }
        .boxed()
    }
}

fn submission(kernel: &Kernel, view: Arc<Alone>, call: &Call) -> Result<Submission, Fault> {
    let members = Members::read(&call.input, &call.config, &["tool", "arguments"])?;
    let name = members.needed_text("tool")?;
    let arguments = match members.get("arguments") {
        None => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(other) => return Err(wrong("arguments", "an object", other)),
    };
    // Actions that no client can see are not for workflows either.
    let action = kernel.registry().find_for(&call.principal.tenant, name);
    if !action.is_some_and(|action| matches!(action.shown, Shown::Tool) && view.sees(&action)) {
        let shown: String = name.chars().take(128).collect();
        return Err(
            Fault::new(Code::NotFound, format!("there is no tool named '{shown}'")).with("path", "tool")
        );
    }
    let mut submission =
        Submission::new(name, Args::new(arguments), call.principal.clone(), call.correlation.clone());
    submission.trace = call.trace;
    submission.workflow = Some(call.workflow.clone());
    submission.peer = Some(view);
    submission.identities.push(Identity {
        scope: Scope(SCOPE.into()),
        // One for each attempt: after a crash the attempt is answered from the ledger, while a retry really runs.
        key: key(&format!("{}#{}", call.key, call.attempt))?,
        ttl_ms: limits::KEY_TTL_MS,
    });
    Ok(submission)
}

/// What the tool gave, as a step can use it.
fn value(tool: &str, output: Output) -> Result<Value, Fault> {
    match output {
        Output::Json { value } => Ok(value),
        Output::Blocks { failed: true, blocks, .. } => Err(failure(tool, &blocks)),
        Output::Blocks { structured: Some(value), .. } => Ok(value),
        Output::Blocks { blocks, .. } => Ok(json!({"content": blocks})),
        Output::Resource { contents } => Ok(json!({"contents": contents})),
        Output::Prompt { messages, .. } => Ok(json!({"messages": messages})),
    }
}

fn failure(tool: &str, blocks: &[Content]) -> Fault {
    let text = |block: &Content| match block {
        Content::Text { text, .. } => Some(text.clone()),
        Content::Image { .. }
        | Content::Audio { .. }
        | Content::ResourceLink(_)
        | Content::Resource { .. } => None,
    };
    let said: Vec<String> = blocks.iter().filter_map(text).collect();
    let said = said.join("\n");
    let said = shorten(&said, TOOL_MESSAGE_BYTES);
    Fault::new(Code::AgentFailed, format!("the tool {tool} failed: {said}")).with("tool", tool)
}
