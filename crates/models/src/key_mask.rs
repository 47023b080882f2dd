//! Masks the key of a provider in what the provider answers. A key that comes in several pieces is found as well: what may be its
//! beginning is held back until it is known.

use std::collections::BTreeMap;

use orchestr8_kernel::redact::SecretMask;
use serde_json::Value;

use crate::message::Assistant;
use crate::model::Delta;
use crate::secret::Secret;

/// The mask of one answer. Without a key it lets everything through.
#[derive(Default)]
pub struct KeyMask {
    key: Option<Secret>,
    mask: SecretMask,
    /// By block, what may be the beginning of the key, and of which kind of piece it is.
    held: BTreeMap<usize, (Piece, String)>,
}

#[derive(Clone, Copy)]
enum Piece {
    Text,
    Thinking,
    ToolCall,
}

impl KeyMask {
    pub fn new(key: Option<&Secret>) -> Self {
        let key = key.filter(|key| !key.is_empty()).cloned();
        Self { mask: SecretMask::new(key.iter().map(Secret::expose)), key, held: BTreeMap::new() }
    }

    /// The deltas as they may be shown.
    pub fn pass(&mut self, deltas: Vec<Delta>) -> Vec<Delta> {
        if self.key.is_none() {
            return deltas;
        }
        let mut shown = Vec::with_capacity(deltas.len());
        deltas.into_iter().for_each(|delta| self.pass_one(delta, &mut shown));
        shown
    }

    fn pass_one(&mut self, delta: Delta, shown: &mut Vec<Delta>) {
        match delta {
            Delta::Text { index, delta } => self.piece(Piece::Text, index, &delta, shown),
            Delta::Thinking { index, delta } => self.piece(Piece::Thinking, index, &delta, shown),
            Delta::ToolCall { index, delta } => self.piece(Piece::ToolCall, index, &delta, shown),
            Delta::ToolCallStart { index, id, name } => {
                let (id, name) = (self.mask.text(&id).into_owned(), self.mask.text(&name).into_owned());
                shown.push(Delta::ToolCallStart { index, id, name });
            }
            Delta::ToolCallEnd { index, arguments } => {
                self.release(index, shown);
                shown.push(Delta::ToolCallEnd { index, arguments: self.mask.map(arguments) });
            }
            end @ (Delta::TextEnd { index } | Delta::ThinkingEnd { index }) => {
                self.release(index, shown);
                shown.push(end);
            }
            start @ (Delta::TextStart { .. } | Delta::ThinkingStart { .. }) => shown.push(start),
            Delta::Done(message) => {
                while let Some((&index, _)) = self.held.first_key_value() {
                    self.release(index, shown);
                }
                shown.push(Delta::Done(self.message(message)));
            }
        }
    }

    fn piece(&mut self, piece: Piece, index: usize, delta: &str, shown: &mut Vec<Delta>) {
        let text = match self.held.remove(&index) {
            Some((_, mut held)) => {
                held.push_str(delta);
                held
            }
            None => delta.to_owned(),
        };
        let text = self.mask.text(&text).into_owned();
        let known = text.len() - self.possible_beginning(&text);
        if known < text.len() {
            self.held.insert(index, (piece, text[known..].to_owned()));
        }
        if known > 0 {
            shown.push(delta_of(piece, index, text[..known].to_owned()));
        }
    }

    /// How many bytes at the end of the text may be the beginning of the key.
    fn possible_beginning(&self, text: &str) -> usize {
        let Some(key) = &self.key else { return 0 };
        let key = key.expose();
        let longest = text.len().min(key.len().saturating_sub(1));
        let begins = |length: &usize| key.as_bytes()[..*length] == text.as_bytes()[text.len() - *length..];
        (1..=longest).rev().find(begins).unwrap_or(0)
    }

    fn release(&mut self, index: usize, shown: &mut Vec<Delta>) {
        if let Some((piece, held)) = self.held.remove(&index) {
            shown.push(delta_of(piece, index, held));
        }
    }

    /// The whole message, which is what is stored.
    fn message(&self, message: Assistant) -> Assistant {
        let Ok(value) = serde_json::to_value(&message.content) else { return message };
        let masked: Value = self.mask.value(value.clone());
        if masked == value {
            return message;
        }
        let content = serde_json::from_value(masked).unwrap_or_default();
        Assistant { content, ..message }
    }
}

fn delta_of(piece: Piece, index: usize, delta: String) -> Delta {
    match piece {
        Piece::Text => Delta::Text { index, delta },
        Piece::Thinking => Delta::Thinking { index, delta },
        Piece::ToolCall => Delta::ToolCall { index, delta },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&str]) -> String {
        let mut mask = KeyMask::new(Some(&Secret::new("sk-secret-1")));
        let deltas = pieces.iter().map(|piece| Delta::Text { index: 0, delta: (*piece).to_owned() });
        let mut shown = mask.pass(deltas.collect());
        shown.extend(mask.pass(vec![Delta::TextEnd { index: 0 }]));
        let text = |delta: Delta| if let Delta::Text { delta, .. } = delta { delta } else { String::new() };
        shown.into_iter().map(text).collect()
    }

    #[test]
    fn a_key_is_masked_however_it_is_cut_and_other_text_stays() {
        for pieces in [
            &["the key is sk-secret-1!"][..],
            &["the key is sk-", "secret", "-1!"],
            &["the key is ", "s", "k", "-secret-", "1", "!"],
        ] {
            assert_eq!(shown(pieces), "the key is [REDACTED]!", "{pieces:?}");
        }
        for text in ["sk-secret", "ask-sk-secret-2", "é sk", ""] {
            assert_eq!(shown(&[text]), text);
            let letters: Vec<String> = text.chars().map(String::from).collect();
            assert_eq!(shown(&letters.iter().map(String::as_str).collect::<Vec<_>>()), text);
        }
    }
}
