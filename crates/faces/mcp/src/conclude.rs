//! What became of a tool call, as the answer to it.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, RunId};
use orchestr8_contract::{Content, Fault, Output};
use orchestr8_kernel::Principal;
use orchestr8_kernel::action::{Action, Halt};
use orchestr8_kernel::outcome::Settled;
use orchestr8_kernel::ports::ids::For;
use serde_json::{Map, Value};

use crate::body::Body;
use crate::era::Era;
use crate::face::Face;
use crate::failure::Failed;
use crate::questions::Retry;
use crate::request::Outcome;
use crate::results;
use crate::to_wire;
use crate::wire::Error;

/// Says in `_meta` that a result is that of an earlier call with the same key.
pub const REPLAYED_META: &str = "orchestr8/replayed";

/// What is known about a call when its outcome comes.
pub struct Asked {
    pub face: Face,
    pub who: Arc<Principal>,
    pub era: Era,
    /// None: there is no such tool for this client.
    pub action: Option<Arc<Action>>,
    pub name: Arc<str>,
    /// None in the legacy era.
    pub retry: Option<Arc<Retry>>,
}

/// A result with texts too long for one answer.
pub struct Long {
    blocks: Vec<Content>,
    structured: Option<Value>,
    meta: Option<Map<String, Value>>,
    mime_type: &'static str,
    run: RunId,
    correlation: CorrelationId,
}

impl Asked {
    /// The answer to an outcome.
    pub async fn conclude(&self, settled: Settled) -> Outcome {
        match self.render(settled) {
            Ok(outcome) => outcome,
            Err(long) => self.keep(long).await,
        }
    }

    /// The answer to an outcome, unless it has texts that must be kept first.
    pub fn render(&self, settled: Settled) -> Result<Outcome, Box<Long>> {
        let Settled { run, correlation, result, replayed, .. } = settled;
        let limit = self.face.settings().max_result_bytes;
        let long = |blocks, structured, meta, mime_type, correlation| {
            Err(Box::new(Long { blocks, structured, meta, mime_type, run, correlation }))
        };
        let result = match result {
            Ok(Output::Json { value }) => {
                let Some(text) = to_wire::result_text(&value) else {
                    let fault =
                        Fault::internal("Result not serializable").with("reason", "result_not_serializable");
                    return Ok(self.fault(&fault, run, correlation));
                };
                if text.len() > limit {
                    let declared = value.is_object()
                        && self.action.as_ref().is_some_and(|action| action.output.is_some());
                    let structured = declared.then_some(value);
                    return long(
                        vec![Content::text(text)],
                        structured,
                        None,
                        "application/json",
                        correlation,
                    );
                }
                Ok(to_wire::json_result(&text, &value, self.action.as_deref(), self.era))
            }
            Ok(Output::Blocks { blocks, structured, failed: true, meta }) => {
                let call = Failed { tool: &self.name, run, correlation: &correlation, era: self.era };
                Ok(self.face.failed_by_itself(&call, blocks, structured, meta.as_ref()))
            }
            Ok(Output::Blocks { blocks, structured, failed: false, meta }) => {
                if blocks.iter().any(|block| is_long(block, limit)) {
                    return long(blocks, structured, meta, "text/plain", correlation);
                }
                Ok(to_wire::blocks_result(blocks, structured.as_ref(), meta.as_ref(), self.era))
            }
            Ok(Output::Resource { contents }) => {
                let blocks = contents.into_iter().map(Content::resource).collect();
                Ok(to_wire::blocks_result(blocks, None, None, self.era))
            }
            Ok(Output::Prompt { messages, .. }) => {
                let blocks = messages.into_iter().map(|message| message.content).collect();
                Ok(to_wire::blocks_result(blocks, None, None, self.era))
            }
            Err(Halt::Fault(fault)) => self.halted(&fault, run, &correlation),
            Err(Halt::Asks(asks)) => match &self.retry {
                Some(retry) => retry.input_required(&asks),
                None => {
                    let fault = Fault::internal("the tool asked a question and did not wait for its answer");
                    self.halted(&fault, run, &correlation)
                }
            },
        };
        let result = match result {
            Ok(body) if replayed => Ok(body.meta(REPLAYED_META, &true).replayed()),
            result => result,
        };
        Ok(Outcome { result, correlation: Some(correlation) })
    }

    /// Keeps what is too long, and answers with its beginning and a link.
    pub async fn keep(&self, long: Box<Long>) -> Outcome {
        let limit = self.face.settings().max_result_bytes;
        let Long { blocks, structured, meta, mime_type, run, correlation } = *long;
        let mut shown = Vec::with_capacity(blocks.len() + 1);
        for block in blocks {
            match block {
                Content::Text { text, .. } if text.len() > limit => {
                    let kernel = self.face.kernel();
                    match results::keep(kernel, &self.who, &self.name, &text, mime_type).await {
                        Ok(instead) => shown.extend(instead),
                        Err(fault) => return self.fault(&fault, run, correlation),
                    }
                }
                other => shown.push(other),
            }
        }
        let body = to_wire::blocks_result(shown, structured.as_ref(), meta.as_ref(), self.era);
        Outcome { result: Ok(body), correlation: Some(correlation) }
    }

    /// A call that came to no outcome at all.
    pub fn failed(&self, fault: &Fault, correlation: CorrelationId) -> Outcome {
        let run = RunId(self.face.kernel().ports().ids.fresh(For::Run));
        self.fault(fault, run, correlation)
    }

    fn fault(&self, fault: &Fault, run: RunId, correlation: CorrelationId) -> Outcome {
        Outcome { result: self.halted(fault, run, &correlation), correlation: Some(correlation) }
    }

    fn halted(&self, fault: &Fault, run: RunId, correlation: &CorrelationId) -> Result<Body, Error> {
        match to_wire::special_error(fault, self.era) {
            Some(error) => Err(error),
            None => {
                let call = Failed { tool: &self.name, run, correlation, era: self.era };
                Ok(self.face.failed(&call, fault))
            }
        }
    }
}

fn is_long(block: &Content, limit: usize) -> bool {
    match block {
        Content::Text { text, .. } => text.len() > limit,
        Content::Image { .. }
        | Content::Audio { .. }
        | Content::ResourceLink(_)
        | Content::Resource { .. } => false,
    }
}
