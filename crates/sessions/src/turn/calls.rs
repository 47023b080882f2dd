//! The tool calls of an answer: each is an action of the registry, under the kernel's policy, on behalf of whoever prompted.

use std::sync::Arc;

use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Content, Fault, Output, Priority};
use orchestr8_kernel::action::Action;
use orchestr8_kernel::{Args, Cancel, Halt, Principal, Settled, Submission};
use orchestr8_models::{Assistant, Block, Message, Tool, ToolResult};
use serde_json::{Map, Value, json};

use super::Turn;
use crate::limits;
use crate::news::News;
use crate::person::Person;
use crate::record::{Body, Place};

impl Turn {
    /// The tools the model may call.
    pub(super) fn tools(&self) -> Vec<Tool> {
        let (table, tenant) = (self.hub.kernel().registry().table(), &self.context.principal.tenant);
        let usable = table
            .tools_for(tenant)
            .filter(|action| self.hub.may_use(&self.session, &self.context.principal, action));
        let tool = |action: &Arc<Action>| Tool {
            name: action.name.as_str().to_owned(),
            description: action.about.description.clone(),
            schema: action.input.source.clone(),
        };
        usable.map(tool).collect()
    }

    /// Carries out the calls one after the other, and puts the results into the tree. A message that steers comes before the
    /// calls that are left.
    pub(super) async fn call_all(&mut self, answer: &Assistant) -> Result<Vec<Place>, Fault> {
        let calls: Vec<(String, String, Map<String, Value>)> = answer
            .tool_calls()
            .map(|(id, name, args)| (id.to_owned(), name.to_owned(), args.clone()))
            .collect();
        let mut results = Vec::new();
        for (number, (id, name, args)) in calls.into_iter().enumerate() {
            let skipped = if self.stop.is_cancelled() {
                Some("Skipped: the turn was stopped.")
            } else if number >= limits::TOOL_CALLS {
                Some("Skipped: too many calls in one answer.")
            } else if number > 0 && !self.session.queue.waiting(crate::record::When::Steer).is_empty() {
                Some("Skipped: there is a new message.")
            } else {
                None
            };
            results.push(self.call(id, name, args, skipped).await?);
        }
        Ok(results)
    }

    async fn call(
        &mut self,
        id: String,
        name: String,
        args: Map<String, Value>,
        skipped: Option<&str>,
    ) -> Result<Place, Fault> {
        let kernel = self.hub.kernel().clone();
        let start = News::ToolExecutionStart {
            tool_call_id: id.clone(),
            tool_name: name.clone(),
            args: args.clone(),
        };
        let seq = self.session.whisper(&kernel, start.told(|_| None), Priority::Critical);
        let (content, is_error) = match skipped {
            Some(why) => (vec![Block::text(why)], true),
            None if !self.is_offered(&name) => {
                (vec![Block::text(short(format!("There is no tool named '{name}'.")))], true)
            }
            None => shown(self.submit(&id, &name, args).await),
        };
        let message = Message::ToolResult(ToolResult {
            tool_call_id: id.clone(),
            tool_name: name.clone(),
            content,
            is_error,
            timestamp: self.hub.now_ms(),
        });
        let mut draft = self.draft();
        let entry = self.add(&mut draft, Body::Message { message });
        if let Some(seq) = seq {
            draft.keep(seq, &start);
        }
        draft.tell(News::ToolExecutionEnd { tool_call_id: id, tool_name: name, entry, is_error });
        draft.tell(News::MessageStart { entry });
        draft.tell(News::MessageEnd { entry });
        draft.commit(&kernel).await?;
        Ok(entry)
    }

    /// Whether the model was offered it. One that makes up names gets nowhere with those of other actions.
    fn is_offered(&self, name: &str) -> bool {
        let action = self.hub.kernel().registry().find_for(&self.context.principal.tenant, name);
        action.is_some_and(|action| self.hub.may_use(&self.session, &self.context.principal, &action))
    }

    /// The caller, held to the tools of this session: what a tool starts, such as a workflow, may use no others.
    fn limited_principal(&self) -> Arc<Principal> {
        let own = &self.context.principal;
        match self.hub.tool_limit(&self.session) {
            None => own.clone(),
            Some(limit) => Arc::new(Principal::clone(own).limited(Some(&limit))),
        }
    }

    async fn submit(&self, call: &str, name: &str, args: Map<String, Value>) -> Settled {
        let context = &self.context;
        let correlation: CorrelationId = context.correlation.clone();
        let mut child = Submission::new(name, Args::new(args), self.limited_principal(), correlation);
        child.trace = context.trace;
        child.cancel = Cancel::from_token(self.stop.child_token());
        child.peer = Some(Arc::new(Person {
            kernel: self.hub.kernel().clone(),
            session: self.session.clone(),
            call: call.to_owned(),
            tool: name.to_owned(),
            stop: self.stop.clone(),
        }));
        self.hub.kernel().submit(child).await
    }
}

/// What the model gets to see of an outcome, and whether it is a failure.
fn shown(settled: Settled) -> (Vec<Block>, bool) {
    match settled.result {
        Ok(Output::Json { value }) => (vec![Block::text(short(value.to_string()))], false),
        Ok(Output::Blocks { blocks, failed, .. }) => (blocks.into_iter().map(block).collect(), failed),
        Ok(other @ (Output::Resource { .. } | Output::Prompt { .. })) => {
            (vec![Block::text(short(json!(other).to_string()))], false)
        }
        Err(Halt::Fault(fault)) => (vec![Block::text(short(fault.to_string()))], true),
        Err(Halt::Asks(_)) => {
            (vec![Block::text("The tool asked a question that nobody can answer here.")], true)
        }
    }
}

fn block(content: Content) -> Block {
    match content {
        Content::Text { text, .. } => Block::text(short(text)),
        Content::Image { data, mime_type, .. } => Block::Image { data, mime_type },
        other @ (Content::Audio { .. } | Content::ResourceLink(_) | Content::Resource { .. }) => {
            Block::text(short(json!(other).to_string()))
        }
    }
}

/// A text cut to what a model can take in; the cut is told.
fn short(text: String) -> String {
    match text.char_indices().nth(limits::TOOL_RESULT_CHARS) {
        Some((at, _)) => format!("{}\n[cut: {} more bytes]", &text[..at], text.len() - at),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_is_cut_and_says_so() {
        let cut = short("ä".repeat(limits::TOOL_RESULT_CHARS + 5));
        assert!(cut.ends_with("[cut: 10 more bytes]"));
        assert_eq!(short("short".into()), "short");
    }
}
