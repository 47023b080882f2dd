//! The events of the Messages API, folded into deltas.

use std::collections::BTreeMap;

use orchestr8_contract::Fault;
use serde_json::Value;

use super::LOCKED;
use crate::draft::Draft;
use crate::limits::BLOCKS;
use crate::message::StopReason;
use crate::model::{Delta, Request};
use crate::names::Names;
use crate::refusal::{Said, broken, of_event};
use crate::secret::Secret;
use crate::sse::Event;
use crate::wire::{Fold, Spec};

pub struct Messages {
    draft: Draft,
    names: Names,
    provider: String,
    /// To strike it out of what the provider says.
    key: Option<Secret>,
    /// From their index to ours. None: a kind of block that we do not know and pass over.
    places: BTreeMap<u64, Option<usize>>,
}

impl Messages {
    pub fn new(spec: &Spec, request: &Request, now_ms: i64) -> Self {
        Self {
            draft: Draft::new(spec.about.clone(), now_ms),
            names: Names::of(&request.tools),
            provider: spec.about.provider.clone(),
            key: spec.key.clone(),
            places: BTreeMap::new(),
        }
    }

    fn begin(&mut self, value: &Value) -> Result<(), Fault> {
        let index = index(value)?;
        if self.places.contains_key(&index) || self.places.len() >= BLOCKS {
            return Err(broken("it begins a block twice, or too many"));
        }
        let block = &value["content_block"];
        let place = match text(block, "type") {
            "text" => {
                let place = self.draft.begin_text()?;
                self.draft.text(place, text(block, "text"))?;
                Some(place)
            }
            "thinking" => {
                let place = self.draft.begin_thinking()?;
                self.draft.thinking(place, text(block, "thinking"))?;
                self.draft.sign(place, text(block, "signature"))?;
                Some(place)
            }
            "redacted_thinking" => {
                let place = self.draft.begin_thinking()?;
                self.draft.sign(place, &format!("{LOCKED}{}", text(block, "data")))?;
                Some(place)
            }
            "tool_use" => {
                let (id, name) = (text(block, "id"), text(block, "name"));
                if id.is_empty() || name.is_empty() {
                    return Err(broken("it calls a tool without an id or a name"));
                }
                let place = self.draft.begin_call(id.to_owned(), self.names.ours(name))?;
                // Some give all arguments at once.
                if let Some(input) = block["input"].as_object().filter(|input| !input.is_empty()) {
                    self.draft.arguments(place, &serde_json::to_string(input).unwrap_or_default())?;
                }
                Some(place)
            }
            _ => None,
        };
        self.places.insert(index, place);
        Ok(())
    }

    fn go_on(&mut self, value: &Value) -> Result<(), Fault> {
        let Some(place) = self.place(value)? else { return Ok(()) };
        let delta = &value["delta"];
        match text(delta, "type") {
            "text_delta" => self.draft.text(place, text(delta, "text")),
            "thinking_delta" => self.draft.thinking(place, text(delta, "thinking")),
            "signature_delta" => self.draft.sign(place, text(delta, "signature")),
            "input_json_delta" => self.draft.arguments(place, text(delta, "partial_json")),
            _ => Ok(()),
        }
    }

    fn place(&self, value: &Value) -> Result<Option<usize>, Fault> {
        self.places
            .get(&index(value)?)
            .copied()
            .ok_or_else(|| broken("it goes on with a block that never began"))
    }

    /// Counts are totals: what is given later replaces what was given before.
    fn count(&mut self, usage: &Value) {
        let counts = [
            ("input_tokens", &mut self.draft.usage.input),
            ("output_tokens", &mut self.draft.usage.output),
            ("cache_read_input_tokens", &mut self.draft.usage.cache_read),
            ("cache_creation_input_tokens", &mut self.draft.usage.cache_write),
        ];
        for (name, count) in counts {
            *count = usage[name].as_u64().unwrap_or(*count);
        }
    }

    fn stop(&mut self, reason: &str) {
        let (stop, error) = match reason {
            "" => return,
            "max_tokens" | "model_context_window_exceeded" => (StopReason::Length, None),
            "tool_use" => (StopReason::ToolUse, None),
            "refusal" => (StopReason::Error, Some("the model refused to answer")),
            // `end_turn`, `stop_sequence`, `pause_turn`, and whatever comes to be.
            _ => (StopReason::Stop, None),
        };
        self.draft.stop = Some(stop);
        self.draft.error_message = error.map(str::to_owned);
    }
}

impl Fold for Messages {
    fn take(&mut self, event: &Event) -> Result<Vec<Delta>, Fault> {
        let value: Value = serde_json::from_str(&event.data)
            .map_err(|cause| broken("an event is not JSON").because(cause))?;
        match text(&value, "type") {
            "message_start" => self.count(&value["message"]["usage"]),
            "content_block_start" => self.begin(&value)?,
            "content_block_delta" => self.go_on(&value)?,
            "content_block_stop" => {
                if let Some(place) = self.place(&value)? {
                    self.draft.end(place)?;
                }
            }
            "message_delta" => {
                self.count(&value["usage"]);
                self.stop(text(&value["delta"], "stop_reason"));
            }
            "message_stop" => self.draft.finish()?,
            "error" => return Err(of_event(&Said::of(&value["error"]), &self.provider, self.key.as_ref())),
            // Pings, and kinds that do not exist yet.
            _ => {}
        }
        Ok(self.draft.take())
    }

    fn end(&mut self) -> Result<Vec<Delta>, Fault> {
        self.draft.finish()?;
        Ok(self.draft.take())
    }
}

fn index(value: &Value) -> Result<u64, Fault> {
    value["index"].as_u64().ok_or_else(|| broken("a block has no index"))
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or("")
}
