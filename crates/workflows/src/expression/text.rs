//! A text with expressions in it, cut into pieces.

use std::io::Write;

use serde_json::Value;

use super::look_up::{look_up, too_large};
use super::reader::{self, Mistake};
use super::reference::Reference;
use super::{EvaluationCost, Fuel, Scope};
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

/// Puts a text together: texts as they are, everything else as JSON. It never grows beyond its limit.
pub(super) fn join(
    pieces: &[Piece],
    references: &[Reference],
    scope: &dyn Scope,
    fuel: &mut Fuel,
) -> Result<String, Fault> {
    let mut out = Bounded(Vec::new());
    for piece in pieces {
        let before = out.0.len();
        match piece {
            Piece::Plain(plain) => out.write_all(plain.as_bytes()).map_err(|_| too_large())?,
            Piece::Reference(number) => {
                let Some(reference) = references.get(*number) else { continue };
                match &*look_up(reference, scope, fuel)? {
                    Value::String(text) => out.write_all(text.as_bytes()).map_err(|_| too_large())?,
                    other @ (Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_)) => serde_json::to_writer(&mut out, other).map_err(|_| too_large())?,
                }
            }
        }
        fuel.spend_written(out.0.len() - before).map_err(|_| fuel.fault())?;
    }
    String::from_utf8(out.0)
        .map_err(|error| Fault::internal("the pieces of a text are no text").because(error))
}

/// What putting a text together costs at most.
pub(super) fn add_cost(pieces: &[Piece], references: &[Reference], cost: &mut EvaluationCost) {
    cost.add_text();
    for piece in pieces {
        match piece {
            Piece::Plain(plain) => cost.add_terms(1 + plain.len()),
            Piece::Reference(number) => {
                cost.add_terms(1);
                references.get(*number).into_iter().for_each(|one| cost.add_reference(one));
            }
        }
    }
}

/// Takes what a text may grow to, and no more.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > limits::EXPANSION_BYTES {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
