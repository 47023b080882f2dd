//! Recorded streams, and what a test does with them: parse, fold, and check that the pieces make up the whole.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::clock::Simulated;
use proptest::prelude::*;
use serde_json::json;

use crate::message::{Assistant, Block, Message, User};
use crate::model::{About, Delta, Price, Request, Tool};
use crate::sse::Parser;
use crate::wire::{Reasoning, Spec, Wire};

pub const NOW_MS: i64 = Simulated::START_MS;

pub fn spec(reasoning: Reasoning) -> Spec {
    let about = About {
        provider: "p".into(),
        id: "m-1".into(),
        name: "M".into(),
        context_window: 200_000,
        max_output: 64_000,
        thinking: reasoning != Reasoning::None,
        images: true,
        price: Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 },
    };
    Spec { about, reasoning, key: None }
}

pub fn request() -> Request {
    let tool = |name: &str| Tool {
        name: name.into(),
        description: format!("does {name}"),
        schema: json!({"type": "object"}),
    };
    Request {
        system: Some("Be kind.".into()),
        messages: vec![Message::User(User::text("hello", 1))],
        tools: vec![tool("weather.get"), tool("now")],
        ..Request::default()
    }
}

/// Folds a stream that comes in pieces of so many bytes.
pub fn fold(wire: &dyn Wire, bytes: &[u8], piece: usize) -> Result<Vec<Delta>, Fault> {
    let mut fold = wire.fold(&spec(Reasoning::Budget), &request(), NOW_MS);
    let mut parser = Parser::default();
    let mut deltas = Vec::new();
    let strange = |error| crate::refusal::broken("it is no stream of events").because(error);
    for bytes in bytes.chunks(piece.max(1)) {
        let mut events = Vec::new();
        let parsed = parser.push(bytes, &mut events);
        for event in events {
            deltas.extend(fold.take(&event)?);
            if matches!(deltas.last(), Some(Delta::Done(_))) {
                return Ok(deltas);
            }
        }
        parsed.map_err(strange)?;
    }
    if let Some(event) = parser.end().map_err(strange)? {
        deltas.extend(fold.take(&event)?);
    }
    if !matches!(deltas.last(), Some(Delta::Done(_))) {
        deltas.extend(fold.end()?);
    }
    Ok(deltas)
}

/// The whole message of a good stream, after checking that its deltas make it up, in whatever pieces it came.
pub fn whole(wire: &dyn Wire, bytes: &[u8]) -> Assistant {
    let deltas = fold(wire, bytes, bytes.len()).unwrap();
    for piece in [1, 7, 100] {
        assert_eq!(fold(wire, bytes, piece).unwrap(), deltas);
    }
    consistent(&deltas).clone()
}

pub fn refused(wire: &dyn Wire, text: &str) -> Fault {
    fold(wire, text.as_bytes(), text.len()).unwrap_err()
}

pub fn reason(fault: &Fault) -> &str {
    fault.details.as_ref().and_then(|details| details.get("reason")?.as_str()).unwrap_or("")
}

/// Every delta belongs to a block that is open, and together they are the message.
pub fn consistent(deltas: &[Delta]) -> &Assistant {
    let Some((Delta::Done(done), before)) = deltas.split_last() else { panic!("{deltas:?}") };
    let mut texts: Vec<(String, bool)> = Vec::new();
    for delta in before {
        match delta {
            Delta::TextStart { index }
            | Delta::ThinkingStart { index }
            | Delta::ToolCallStart { index, .. } => {
                assert_eq!(*index, texts.len());
                texts.push((String::new(), true));
            }
            Delta::Text { index, delta }
            | Delta::Thinking { index, delta }
            | Delta::ToolCall { index, delta } => {
                assert!(texts[*index].1, "{index} is closed");
                texts[*index].0.push_str(delta);
            }
            Delta::TextEnd { index } | Delta::ThinkingEnd { index } | Delta::ToolCallEnd { index, .. } => {
                assert!(std::mem::take(&mut texts[*index].1), "{index} is closed twice");
            }
            Delta::Done(_) => panic!("it is done twice"),
        }
    }
    let ended = texts.into_iter().filter(|(_, open)| !open).map(|(text, _)| text);
    for (block, text) in done.content.iter().zip(ended) {
        match block {
            Block::Text { text: whole } | Block::Thinking { thinking: whole, .. } => assert_eq!(*whole, text),
            Block::ToolCall { arguments, .. } if text.is_empty() => assert!(arguments.is_empty()),
            Block::ToolCall { arguments, .. } => {
                assert_eq!(json!(arguments), serde_json::from_str::<serde_json::Value>(&text).unwrap());
            }
            Block::Image { .. } => panic!("models do not draw"),
        }
    }
    done
}

/// What an evil or broken network does to a stream: every result is a whole answer or a fault that says so.
pub fn survives(wire: &dyn Wire, fixture: &[u8]) {
    for end in 0..fixture.len() {
        match fold(wire, &fixture[..end], end) {
            Ok(deltas) => drop(consistent(&deltas)),
            Err(fault) => {
                assert_eq!((fault.code, reason(&fault)), (Code::Unavailable, "stream_broken"), "{fault}")
            }
        }
    }
    let lines: Vec<&[u8]> = fixture.split_inclusive(|byte| *byte == b'\n').collect();
    let mangled = (0..lines.len(), 0..lines.len(), 0..fixture.len(), any::<u8>());
    let config = ProptestConfig::with_cases(500);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let check = |(from, to, at, byte): (usize, usize, usize, u8)| {
        let mut moved = lines.clone();
        moved.insert(to, lines[from]);
        let mut changed = fixture.to_vec();
        changed[at] = byte;
        for bytes in [moved.concat(), changed] {
            if let Ok(deltas) = fold(wire, &bytes, 50) {
                consistent(&deltas);
            }
        }
        Ok(())
    };
    runner.run(&mangled, check).unwrap();
}
