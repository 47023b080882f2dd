//! Passages: what a search finds and an answer cites. They follow the structure of a text and know where in it they stand.

use std::ops::Range;

use super::markdown;
use super::sentences::sentences;
use super::structure::{self, Block};
use crate::limits::{CHUNK_CHARS, CHUNK_CHARS_MAX, CHUNK_CHARS_MIN, CHUNKS, OVERLAP_CHARS};
use crate::record::Mime;

/// One passage of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// In bytes.
    pub range: Range<usize>,
    /// Where it begins and how long it is, in characters.
    pub offset: usize,
    pub length: usize,
    /// The headings above it.
    pub heading: String,
}

/// The passages of a text, in order. A text without words has none.
pub fn chunks(mime: Mime, text: &str) -> Vec<Chunk> {
    let blocks = match mime {
        Mime::Markdown => markdown::blocks(text),
        Mime::Plain => structure::paragraphs(text),
        Mime::Json => structure::members(text),
    };
    let mut packed: Vec<Block> = Vec::new();
    for block in blocks.into_iter().flat_map(|block| cut(text, block)) {
        match packed.last_mut() {
            Some(last) if joins(text, last, &block) => last.range.end = block.range.end,
            _ => packed.push(block),
        }
    }
    measure(text, packed)
}

/// Whether a block still belongs to the passage before it.
fn joins(text: &str, last: &Block, block: &Block) -> bool {
    let before = chars(text, &last.range);
    if block.range.start < last.range.end {
        return false;
    }
    let whole = chars(text, &(last.range.start..block.range.end));
    if block.opens { before < CHUNK_CHARS_MIN && whole <= CHUNK_CHARS } else { whole <= CHUNK_CHARS }
}

/// Cuts a block that is too long between sentences, or where it must be, with some text in common.
fn cut(text: &str, block: Block) -> Vec<Block> {
    if chars(text, &block.range) <= CHUNK_CHARS_MAX {
        return vec![block];
    }
    let mut pieces = Vec::new();
    let mut start = block.range.start;
    let ends: Vec<usize> = sentences(&text[block.range.clone()])
        .into_iter()
        .map(|range| block.range.start + range.end)
        .collect();
    while start < block.range.end {
        let limit = forward(text, start, CHUNK_CHARS).min(block.range.end);
        let from = ends.partition_point(|end| *end <= limit);
        let sentence = from.checked_sub(1).and_then(|at| ends.get(at)).copied();
        let long_enough = forward(text, start, CHUNK_CHARS_MIN);
        let end =
            sentence.filter(|end| *end >= long_enough).unwrap_or_else(|| space_before(text, start, limit));
        pieces.push(Block {
            range: start..end,
            heading: block.heading.clone(),
            opens: block.opens && pieces.is_empty(),
        });
        if end >= block.range.end {
            break;
        }
        // The next piece begins a little before this one ends, between words, and always further on than this one began.
        let back = backward(text, end, OVERLAP_CHARS);
        let next = text[back..end].find(char::is_whitespace).map_or(back, |at| back + at);
        let next = next + text[next..end].len() - text[next..end].trim_start().len();
        start = if next > start { next } else { end };
    }
    pieces
}

/// The end of a word at or before `limit`, unless that leaves next to nothing.
fn space_before(text: &str, start: usize, limit: usize) -> usize {
    if limit == text.len() {
        return limit;
    }
    let least = forward(text, start, CHUNK_CHARS_MIN);
    match text[start..limit].rfind(char::is_whitespace) {
        Some(at) if start + at >= least => start + at,
        _ => limit,
    }
}

fn measure(text: &str, blocks: Vec<Block>) -> Vec<Chunk> {
    let (mut at, mut offset) = (0, 0);
    let mut found = Vec::with_capacity(blocks.len());
    for mut block in blocks {
        let piece = &text[block.range.clone()];
        block.range.start += piece.len() - piece.trim_start().len();
        block.range.end = block.range.start + text[block.range.start..block.range.end].trim_end().len();
        if !text[block.range.clone()].contains(char::is_alphanumeric) || found.len() == CHUNKS {
            continue;
        }
        // Pieces overlap, so the count may have to go back a little.
        offset = match block.range.start.checked_sub(at) {
            Some(_) => offset + text[at..block.range.start].chars().count(),
            None => offset - text[block.range.start..at].chars().count(),
        };
        at = block.range.start;
        let length = chars(text, &block.range);
        found.push(Chunk { range: block.range, offset, length, heading: block.heading });
    }
    found
}

fn chars(text: &str, range: &Range<usize>) -> usize {
    text[range.clone()].chars().count()
}

/// So many characters further on, or the end.
fn forward(text: &str, from: usize, count: usize) -> usize {
    text[from..].char_indices().nth(count).map_or(text.len(), |(at, _)| from + at)
}

/// So many characters back, or the beginning.
fn backward(text: &str, from: usize, count: usize) -> usize {
    text[..from].char_indices().rev().nth(count.saturating_sub(1)).map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_section_is_a_passage_and_knows_its_headings() {
        let text = format!("# One\n{}\n\n## Two\n{}\n", "alpha ".repeat(80), "beta ".repeat(80));
        let found = chunks(Mime::Markdown, &text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].heading.as_str(), found[1].heading.as_str()), ("One", "One / Two"));
        assert!(text[found[1].range.clone()].starts_with("## Two"));
    }

    #[test]
    fn small_sections_share_a_passage() {
        let text = "# A\nx\n# B\ny\n# C\nz\n";
        assert_eq!(chunks(Mime::Markdown, text).len(), 1);
    }

    #[test]
    fn a_long_paragraph_is_cut_between_sentences_with_an_overlap() {
        let text = (0..200).map(|n| format!("This is sentence number {n}. ")).collect::<String>();
        let found = chunks(Mime::Plain, &text);
        assert!(found.len() > 3);
        for pair in found.windows(2) {
            assert!(text[pair[0].range.clone()].ends_with('.'), "cut within a sentence");
            assert!(pair[1].range.start < pair[0].range.end, "nothing in common");
        }
    }

    #[test]
    fn a_text_without_words_has_no_passage() {
        assert!(chunks(Mime::Markdown, " \n\n---\n").is_empty());
        assert!(chunks(Mime::Plain, "").is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn passages_hold_every_word_and_know_their_place(
            text in "([a-z]{1,9} |đường |東京|\\. |\n|\n\n|# |- |```\n|\\{|\"|,|x{700}){0,400}",
            kind in 0..3usize,
        ) {
            let mime = [Mime::Markdown, Mime::Plain, Mime::Json][kind];
            let found = chunks(mime, &text);
            let mut covered = 0;
            for chunk in &found {
                prop_assert!(chunk.length <= CHUNK_CHARS_MAX);
                let characters: Vec<char> = text.chars().collect();
                let cut: String = characters[chunk.offset..chunk.offset + chunk.length].iter().collect();
                prop_assert_eq!(&cut, &text[chunk.range.clone()]);
                if chunk.range.start > covered {
                    prop_assert!(!text[covered..chunk.range.start].contains(char::is_alphanumeric), "a word is lost");
                }
                covered = covered.max(chunk.range.end);
            }
            prop_assert!(!text[covered..].contains(char::is_alphanumeric), "the end is lost");
        }
    }
}
