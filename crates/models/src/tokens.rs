//! An estimate of tokens, for where nobody has counted: four characters are one token, an image is 1,200.

use crate::message::{Block, Message};
use crate::model::Request;

const CHARS_PER_TOKEN: usize = 4;

/// About what providers count for an image of usual size.
const IMAGE_TOKENS: u64 = 1_200;

/// Rounded up: any text takes at least one.
pub fn of_text(text: &str) -> u64 {
    whole(text.chars().count().div_ceil(CHARS_PER_TOKEN))
}

pub fn of_block(block: &Block) -> u64 {
    match block {
        Block::Text { text } => of_text(text),
        Block::Thinking { thinking, .. } => of_text(thinking),
        Block::ToolCall { name, arguments, .. } => {
            let text = serde_json::to_string(arguments).unwrap_or_default();
            of_text(name) + of_text(&text)
        }
        Block::Image { .. } => IMAGE_TOKENS,
    }
}

pub fn of_blocks(blocks: &[Block]) -> u64 {
    blocks.iter().map(of_block).sum()
}

/// What the model sees of it: a command that is kept from the model takes nothing.
pub fn of_message(message: &Message) -> u64 {
    match message {
        Message::User(user) => of_blocks(&user.content),
        Message::Assistant(assistant) => of_blocks(&assistant.content),
        Message::ToolResult(result) => of_blocks(&result.content),
        Message::BashExecution(bash) if bash.exclude_from_context => 0,
        Message::BashExecution(bash) => of_text(&bash.command) + of_text(&bash.output),
    }
}

pub fn of_request(request: &Request) -> u64 {
    let system = request.system.as_deref().map_or(0, of_text);
    let tools: u64 = request
        .tools
        .iter()
        .map(|tool| of_text(&tool.name) + of_text(&tool.description) + of_text(&tool.schema.to_string()))
        .sum();
    system + tools + request.messages.iter().map(of_message).sum::<u64>()
}

fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{BashExecution, User};

    #[test]
    fn four_characters_are_a_token() {
        assert_eq!((of_text(""), of_text("a"), of_text("abcd"), of_text("äöüßé")), (0, 1, 1, 2));
        let image = Block::Image { data: "x".repeat(100_000), mime_type: "image/png".into() };
        assert_eq!(of_block(&image), 1_200);
    }

    #[test]
    fn what_the_model_does_not_see_takes_nothing() {
        let mut bash = BashExecution {
            command: "date".into(),
            output: "now!".into(),
            exit_code: Some(0),
            cancelled: false,
            truncated: false,
            timestamp: 0,
            exclude_from_context: false,
        };
        assert_eq!(of_message(&Message::BashExecution(bash.clone())), 2);
        bash.exclude_from_context = true;
        assert_eq!(of_message(&Message::BashExecution(bash)), 0);
        let request = Request {
            system: Some("be kind".into()),
            messages: vec![Message::User(User::text("hi", 0))],
            ..Request::default()
        };
        assert_eq!(of_request(&request), 3);
    }
}
