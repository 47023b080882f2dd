//! A text with expressions in it, cut into pieces.

use serde_json::Value;

use super::Scope;
use super::look_up::{look_up, too_large};
use super::reader::{self, Mistake};
use super::reference::Reference;
use crate::limits;
use orchestr8_contract::Fault;

/// One piece. References are numbered in the list of whoever owns the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Plain(String),
    Reference(usize),
}

/// Cuts a text. Mistakes are given to `complain`, and reading goes on behind the next `}`, so that all are found at once.
pub(super) fn cut(
    text: &str,
    references: &mut Vec<Reference>,
    mut complain: impl FnMut(Mistake),
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut at = 0;
    while let Some(offset) = text[at..].find('$') {
        plain.push_str(&text[at..at + offset]);
        at += offset;
        let rest = &text[at..];
        if rest.starts_with("$${") {
            plain.push_str("${");
            at += 3;
        } else if rest.starts_with("${") {
            match reader::read(text, at + 2) {
                Ok((reference, end)) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Plain(std::mem::take(&mut plain)));
                    }
                    pieces.push(Piece::Reference(references.len()));
                    references.push(reference);
                    at = end;
                }
                Err(mistake) => {
                    complain(mistake);
                    at = rest.find('}').map_or(text.len(), |close| at + close + 1);
                }
            }
        } else {
            plain.push('$');
            at += 1;
        }
    }
    plain.push_str(&text[at..]);
    if !plain.is_empty() {
        pieces.push(Piece::Plain(plain));
    }
    pieces
}

/// Puts a text together: texts as they are, everything else as JSON.
pub(super) fn join(pieces: &[Piece], references: &[Reference], scope: &dyn Scope) -> Result<String, Fault> {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Plain(plain) => out.push_str(plain),
            Piece::Reference(number) => {
                let Some(reference) = references.get(*number) else { continue };
                match &*look_up(reference, scope)? {
                    Value::String(text) => out.push_str(text),
                    other @ (Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_)) => out.push_str(&other.to_string()),
                }
            }
        }
        if out.len() > limits::EXPANSION_BYTES {
            return Err(too_large());
        }
    }
    Ok(out)
}
