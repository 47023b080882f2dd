//! The words of a document as the lexical index keeps them, each under its tenant's sign: what a tenant's words weigh depends on
//! its own documents alone.

use sha2::{Digest, Sha256};

use crate::limits::{CHUNKS, WORDS_MAX};
use crate::record::Mime;
use crate::text::{Chunk, Term, chunks, terms};
use crate::vectors::{passage_text, print};

/// A passage with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub chunk: Chunk,
    /// The number of its words.
    pub words: i64,
    pub head: String,
    pub body: String,
    /// The plain forms of words with marks.
    pub fold: String,
    /// Of the text as a model reads it.
    pub print: Vec<u8>,
}

/// The sign of a tenant: letters and digits, since the index knows no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign(String);

/// Letters of a sign: sixty bits, so that no two tenants ever share one.
const SIGN: usize = 12;
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

impl Sign {
    pub fn of(tenant: &str) -> Self {
        let hash = Sha256::digest(tenant.as_bytes());
        let letter = |byte: &u8| char::from(LETTERS[usize::from(byte % 32)]);
        Self(hash.iter().take(SIGN).map(letter).collect())
    }

    /// A word under this sign.
    pub fn word(&self, word: &str) -> String {
        format!("{}_{word}", self.0)
    }
}

/// The passages of a document. One without words has a passage for its title.
pub fn entries(sign: &Sign, title: &str, mime: Mime, body: &str) -> Vec<Entry> {
    let mut found = chunks(mime, body);
    if found.is_empty() {
        found.push(Chunk { range: 0..0, offset: 0, length: 0, heading: String::new() });
    }
    found.truncate(CHUNKS);
    found.into_iter().map(|chunk| entry(sign, title, body, chunk)).collect()
}

fn entry(sign: &Sign, title: &str, text: &str, chunk: Chunk) -> Entry {
    let own = terms(&text[chunk.range.clone()]);
    let head = terms(&format!("{title}\n{}", chunk.heading));
    let words = i64::try_from(own.len() + head.len()).unwrap_or(WORDS_MAX).clamp(1, WORDS_MAX);
    let fold = own.iter().chain(&head).filter_map(|term| term.folded.as_deref());
    let read = passage_text(title, &chunk.heading, &text[chunk.range.clone()]);
    Entry {
        words,
        print: print(&read),
        fold: join(sign, fold),
        head: join(sign, kept(&head)),
        body: join(sign, kept(&own)),
        chunk,
    }
}

fn kept(terms: &[Term]) -> impl Iterator<Item = &str> {
    terms.iter().map(|term| term.kept.as_str())
}

fn join<'a>(sign: &Sign, words: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for word in words {
        text.push_str(&sign.0);
        text.push('_');
        text.push_str(word);
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_carry_the_sign_of_their_tenant() {
        let (one, other) = (Sign::of("Acme"), Sign::of("acme"));
        assert_ne!(one, other);
        let found = entries(&one, "Đường", Mime::Plain, "running");
        assert_eq!(found[0].body, format!("{} ", one.word("run")));
        assert_eq!(found[0].head, format!("{} ", one.word("đường")));
        assert_eq!(found[0].fold, format!("{} ", one.word("duong")));
        assert_eq!(found[0].words, 2);
    }

    #[test]
    fn a_document_without_words_is_found_by_its_title() {
        let found = entries(&Sign::of("t"), "Empty", Mime::Markdown, "");
        assert_eq!((found.len(), found[0].chunk.length), (1, 0));
        assert!(found[0].head.contains("empti"));
    }
}
