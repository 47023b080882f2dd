//! The chunks of a chat completion, folded into deltas.

use orchestr8_contract::Fault;
use serde_json::Value;

use crate::draft::Draft;
use crate::limits::BLOCKS;
use crate::message::StopReason;
use crate::model::{Delta, Request};
use crate::names::Names;
use crate::refusal::{Said, broken, of_event};
use crate::secret::Secret;
use crate::sse::Event;
use crate::tokens;
use crate::wire::{Fold, Spec};

/// What the provider sends in place of a last chunk.
const END: &str = "[DONE]";

pub struct Completion {
    draft: Draft,
    names: Names,
    provider: String,
    /// To strike it out of what the provider says.
    key: Option<Secret>,
    /// The text or thinking that grows now.
    growing: Option<(Prose, usize)>,
    calls: Vec<Call>,
    counted: bool,
    estimated_input: u64,
}

/// Which of the two kinds of prose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prose {
    Text,
    Thinking,
}

/// A call that grows: their index and id, and our place.
struct Call {
    index: u64,
    id: String,
    place: usize,
}

impl Completion {
    pub fn new(spec: &Spec, request: &Request, now_ms: i64) -> Self {
        Self {
            draft: Draft::new(spec.about.clone(), now_ms),
            names: Names::of(&request.tools),
            provider: spec.about.provider.clone(),
            key: spec.key.clone(),
            growing: None,
            calls: Vec::new(),
            counted: false,
            estimated_input: tokens::of_request(request),
        }
    }

    fn choice(&mut self, choice: &Value) -> Result<(), Fault> {
        let delta = &choice["delta"];
        // Two names are in use for the same.
        let thought = delta["reasoning_content"].as_str().or_else(|| delta["reasoning"].as_str());
        if let Some(thought) = thought.filter(|text| !text.is_empty()) {
            self.say(Prose::Thinking, thought)?;
        }
        for name in ["content", "refusal"] {
            if let Some(text) = delta[name].as_str().filter(|text| !text.is_empty()) {
                self.say(Prose::Text, text)?;
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call)?;
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.stop(reason);
        }
        Ok(())
    }

    fn say(&mut self, kind: Prose, text: &str) -> Result<(), Fault> {
        let place = match self.growing {
            Some((growing, place)) if growing == kind => place,
            Some(_) | None => {
                self.end_growing()?;
                let place = match kind {
                    Prose::Text => self.draft.begin_text()?,
                    Prose::Thinking => self.draft.begin_thinking()?,
                };
                self.growing = Some((kind, place));
                place
            }
        };
        match kind {
            Prose::Text => self.draft.text(place, text),
            Prose::Thinking => self.draft.thinking(place, text),
        }
    }

    fn end_growing(&mut self) -> Result<(), Fault> {
        match self.growing.take() {
            Some((_, place)) => self.draft.end(place),
            None => Ok(()),
        }
    }

    /// Pieces of calls come by index. Some servers give every call the same index, so another id is another call.
    fn call(&mut self, call: &Value) -> Result<(), Fault> {
        let last = self.calls.last().map(|call| call.index);
        let index = call["index"].as_u64().or(last).unwrap_or(0);
        let id = call["id"].as_str().unwrap_or("");
        let function = &call["function"];
        let name = function["name"].as_str().unwrap_or("");
        let known = self
            .calls
            .iter()
            .rev()
            .find(|known| known.index == index && (id.is_empty() || known.id == id))
            .map(|known| known.place);
        let place = match known {
            Some(place) => place,
            None if name.is_empty() => return Err(broken("it calls a tool without a name")),
            None if self.calls.len() >= BLOCKS => return Err(broken("it calls too many tools")),
            None => {
                self.end_growing()?;
                let id = if id.is_empty() { self.made_up() } else { id.to_owned() };
                let place = self.draft.begin_call(id.clone(), self.names.ours(name))?;
                self.calls.push(Call { index, id, place });
                place
            }
        };
        match &function["arguments"] {
            Value::String(text) => self.draft.arguments(place, text),
            // Not as text, but as they are.
            arguments @ Value::Object(_) => self.draft.arguments(place, &arguments.to_string()),
            _ => Ok(()),
        }
    }

    /// Small servers leave ids out; calls of one conversation must not share one.
    fn made_up(&self) -> String {
        format!("call_{}_{}", self.draft.now_ms(), self.calls.len())
    }

    fn stop(&mut self, reason: &str) {
        let (stop, error) = match reason {
            "length" => (StopReason::Length, None),
            "tool_calls" | "function_call" => (StopReason::ToolUse, None),
            "content_filter" => (StopReason::Error, Some("the provider held the answer back")),
            // `stop`, and whatever comes to be.
            _ => (StopReason::Stop, None),
        };
        self.draft.stop = Some(stop);
        self.draft.error_message = error.map(str::to_owned);
    }

    fn count(&mut self, usage: &Value) {
        let (Some(prompt), Some(output)) =
            (usage["prompt_tokens"].as_u64(), usage["completion_tokens"].as_u64())
        else {
            return;
        };
        // What came from the cache is part of the prompt here.
        let cached = usage["prompt_tokens_details"]["cached_tokens"]
            .as_u64()
            .or_else(|| usage["prompt_cache_hit_tokens"].as_u64())
            .unwrap_or(0)
            .min(prompt);
        self.draft.usage.input = prompt - cached;
        self.draft.usage.cache_read = cached;
        self.draft.usage.output = output;
        self.counted = true;
    }

    fn finish(&mut self) -> Result<(), Fault> {
        if !self.counted {
            self.draft.usage.input = self.estimated_input;
            self.draft.usage.output = self.draft.estimated_output();
        }
        self.draft.finish()
    }
}

impl Fold for Completion {
    fn take(&mut self, event: &Event) -> Result<Vec<Delta>, Fault> {
        if event.data.trim() == END {
            self.finish()?;
            return Ok(self.draft.take());
        }
        let value: Value = serde_json::from_str(&event.data)
            .map_err(|cause| broken("an event is not JSON").because(cause))?;
        if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
            return Err(of_event(&Said::of(error), &self.provider, self.key.as_ref()));
        }
        // Asked for one answer, some give more; the first is ours.
        let first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        for choice in value["choices"].as_array().into_iter().flatten().filter(first) {
            self.choice(choice)?;
        }
        self.count(&value["usage"]);
        Ok(self.draft.take())
    }

    fn end(&mut self) -> Result<Vec<Delta>, Fault> {
        self.finish()?;
        Ok(self.draft.take())
    }
}
