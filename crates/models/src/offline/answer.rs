//! What the offline model answers: a pure function of the request.

use serde_json::Map;

use super::script::{self, Fail, Round};
use crate::limits::{OFFLINE_ECHO_CHARS, OFFLINE_QUOTE_CHARS};
use crate::message::{Assistant, Block, Message, StopReason, Usage, text_of};
use crate::model::{About, Delta, Request};
use crate::tokens;

/// Everything about an answer but its time.
pub struct Answer {
    pub fail: Option<Fail>,
    pub wait_ms: u64,
    content: Vec<Block>,
    stop_reason: StopReason,
    usage: Usage,
}

/// Where the conversation stands: the last prompt, and what came after it.
struct Point<'r> {
    prompt: String,
    after: &'r [Message],
}

impl Answer {
    pub fn to(about: &About, request: &Request) -> Self {
        let point = Point::of(&request.messages);
        let rounds = script::read(&point.prompt);
        let number = point.answers();
        let quote = Round { said: vec![point.quote()], ..Round::default() };
        let round = rounds.get(number).unwrap_or(&quote);
        let mut content = Vec::new();
        if !round.thoughts.is_empty() {
            content.push(Block::Thinking { thinking: round.thoughts.join("\n"), signature: None });
        }
        let text = exact(request, round).unwrap_or_else(|| spoken(round));
        let (text, whole) = cut(text, request.max_output.unwrap_or(about.max_output));
        if !text.is_empty() {
            content.push(Block::Text { text });
        }
        if whole {
            // Ids tell one call of a conversation from another, and are the same whenever it is asked again.
            let place = request.messages.len();
            content.extend(round.calls.iter().enumerate().map(|(n, call)| Block::ToolCall {
                id: format!("call_{place}_{}", n + 1),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            }));
        }
        let stop_reason = match (whole, round.calls.is_empty()) {
            (false, _) => StopReason::Length,
            (true, true) => StopReason::Stop,
            (true, false) => StopReason::ToolUse,
        };
        let (input, output) = (tokens::of_request(request), tokens::of_blocks(&content));
        let mut usage = Usage { input, output, ..Usage::default() };
        usage.cost = about.price.of(&usage);
        Self { fail: round.fail, wait_ms: round.wait_ms, content, stop_reason, usage }
    }

    /// The deltas in which it is given, and at last the whole.
    pub fn deltas(self, about: &About, now_ms: i64) -> Vec<Delta> {
        let mut deltas = Vec::new();
        for (index, block) in self.content.iter().enumerate() {
            match block {
                Block::Text { text } => {
                    deltas.push(Delta::TextStart { index });
                    deltas.extend(pieces(text).map(|delta| Delta::Text { index, delta }));
                    deltas.push(Delta::TextEnd { index });
                }
                Block::Thinking { thinking, .. } => {
                    deltas.push(Delta::ThinkingStart { index });
                    deltas.extend(pieces(thinking).map(|delta| Delta::Thinking { index, delta }));
                    deltas.push(Delta::ThinkingEnd { index });
                }
                Block::ToolCall { id, name, arguments } => {
                    deltas.push(Delta::ToolCallStart { index, id: id.clone(), name: name.clone() });
                    deltas.push(Delta::ToolCall { index, delta: json(arguments) });
                    deltas.push(Delta::ToolCallEnd { index, arguments: arguments.clone() });
                }
                Block::Image { .. } => {}
            }
        }
        deltas.push(Delta::Done(Assistant {
            content: self.content,
            provider: about.provider.clone(),
            model: about.id.clone(),
            usage: self.usage,
            stop_reason: self.stop_reason,
            timestamp: now_ms,
            error_message: None,
        }));
        deltas
    }
}

impl<'r> Point<'r> {
    fn of(messages: &'r [Message]) -> Self {
        let last = messages.iter().rposition(|message| matches!(message, Message::User(_)));
        match last {
            Some(place) => Self { prompt: messages[place].text(), after: &messages[place + 1..] },
            None => Self { prompt: String::new(), after: messages },
        }
    }

    /// How many rounds are done. An answer that failed or was stopped is begun again.
    fn answers(&self) -> usize {
        let done = |message: &&Message| match message {
            Message::Assistant(assistant) => {
                !matches!(assistant.stop_reason, StopReason::Error | StopReason::Aborted)
            }
            Message::User(_) | Message::ToolResult(_) | Message::BashExecution(_) => false,
        };
        self.after.iter().filter(done).count()
    }

    /// The results that came after the last answer.
    fn quote(&self) -> String {
        let since = self.after.iter().rposition(|message| matches!(message, Message::Assistant(_)));
        let lines: Vec<String> = self.after[since.map_or(0, |place| place + 1)..]
            .iter()
            .filter_map(|message| match message {
                Message::ToolResult(result) => {
                    let verb = if result.is_error { "failed" } else { "answered" };
                    let text = shorten(text_of(&result.content), OFFLINE_QUOTE_CHARS);
                    Some(format!("{} {verb}: {text}", result.tool_name))
                }
                Message::User(_) | Message::Assistant(_) | Message::BashExecution(_) => None,
            })
            .collect();
        lines.join("\n")
    }
}

/// The answer that is written down word for word.
///
/// When an answer of a schema is asked for, the `/json` lines of all prompts are the answers one after the other, the last
/// of them for good: so a prompt can be wrong first and right once it is asked to mend its answer.
fn exact(request: &Request, round: &Round) -> Option<String> {
    if request.response_schema.is_none() {
        return if round.answers.is_empty() { None } else { Some(round.answers.join("\n")) };
    }
    let mut answers: Vec<String> = request
        .messages
        .iter()
        .filter(|message| matches!(message, Message::User(_)))
        .flat_map(|message| script::read(&message.text()))
        .flat_map(|round| round.answers)
        .collect();
    let given = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
    let place = given.min(answers.len().checked_sub(1)?);
    Some(answers.swap_remove(place))
}

fn spoken(round: &Round) -> String {
    if !round.mistakes.is_empty() {
        return round.mistakes.join("\n");
    }
    if let Some(words) = round.words {
        return (1..=words).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
    }
    let said = round.said.join("\n");
    let said = said.trim();
    if said.is_empty() && round.calls.is_empty() {
        return "ok".to_owned();
    }
    shorten(said.to_owned(), OFFLINE_ECHO_CHARS)
}

/// Keeps to the limit of output, by the estimate. False: something is left out.
fn cut(text: String, max_output: u64) -> (String, bool) {
    if tokens::of_text(&text) <= max_output {
        return (text, true);
    }
    let chars = usize::try_from(max_output.saturating_mul(4)).unwrap_or(usize::MAX);
    (text.chars().take(chars).collect(), false)
}

fn shorten(text: String, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text,
        Some((end, _)) => format!("{}… ({} more characters)", &text[..end], text[end..].chars().count()),
    }
}

/// Word by word; together they are the text.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(str::to_owned)
}

fn json(arguments: &Map<String, serde_json::Value>) -> String {
    serde_json::to_string(arguments).unwrap_or_default()
}
