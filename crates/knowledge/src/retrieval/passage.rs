//! What is shown of a passage: a snippet with its place in the document, and an answer made of its sentences.

use std::collections::HashSet;

use super::lexical::Wanted;
use crate::limits::{ANSWER_CHARS, ANSWER_SENTENCES, SNIPPET_CHARS};
use crate::text::prose::Prose;
use crate::text::sentences::sentences;
use crate::text::terms;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    pub text: String,
    /// In characters from the beginning of the text.
    pub offset: usize,
    pub length: usize,
}

/// The stretch of a text, from one sentence to another, that says most about the wanted words.
pub fn snippet(text: &str, wanted: &[Wanted]) -> Snippet {
    let parts: Vec<&str> = sentences(text).into_iter().map(|range| &text[range]).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.chars().count()).collect();
    let worth: Vec<Vec<usize>> = parts.iter().map(|part| held(part, wanted)).collect();
    let (mut best, mut most) = (0..parts.len().min(1), -1.0);
    for start in 0..parts.len() {
        let (mut length, mut words) = (0, HashSet::new());
        for end in start..parts.len() {
            length += lengths[end];
            if length > SNIPPET_CHARS && end > start {
                break;
            }
            words.extend(worth[end].iter().copied());
            let sum: f64 = words.iter().map(|at| wanted[*at].weight).sum();
            // More around the same words is better to read; it never outweighs a word.
            let sum = sum + 1e-6 * length.min(SNIPPET_CHARS) as f64;
            if sum > most {
                (best, most) = (start..end + 1, sum);
            }
        }
    }
    let before: usize = lengths[..best.start].iter().sum();
    let joined = parts[best].concat();
    let kept = joined.trim_end();
    let text: String = kept.chars().take(SNIPPET_CHARS).collect();
    Snippet { offset: before, length: text.chars().count(), text }
}

/// The sentences that say most, best first; nothing if no passage holds a wanted word. Words that only stand in a heading lead to
/// what is said below it.
pub fn answer(passages: &[Prose], wanted: &[Wanted]) -> String {
    let mut scored: Vec<(f64, usize, &str)> = Vec::new();
    for (rank, passage) in passages.iter().enumerate() {
        for sentence in &passage.sentences {
            let sum: f64 = held(sentence, wanted).iter().map(|at| wanted[*at].weight).sum();
            // One word alone says nothing.
            if sum > 0.0 && terms(sentence).len() > 1 {
                scored.push((sum / (1.0 + 0.15 * rank as f64), scored.len(), sentence));
            }
        }
    }
    if scored.is_empty() {
        return below_heading(passages, wanted).unwrap_or_default().chars().take(ANSWER_CHARS).collect();
    }
    scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut seen = HashSet::new();
    scored.retain(|(_, _, sentence)| seen.insert(*sentence));
    let mut text = String::new();
    for (_, _, sentence) in scored.into_iter().take(ANSWER_SENTENCES) {
        // A sentence is said whole or not at all, but for the first.
        let room = ANSWER_CHARS.saturating_sub(text.chars().count() + 1);
        match (text.is_empty(), sentence.chars().count() <= room) {
            (true, _) => text.extend(sentence.chars().take(ANSWER_CHARS)),
            (false, true) => text.extend([" ", sentence]),
            (false, false) => {}
        }
    }
    text
}

/// With its title above everything it says.
pub fn titled(mut said: Prose, title: &str) -> Prose {
    said.headings.push(title.to_owned());
    said
}

/// What is said first below a heading that holds a wanted word, or that heading.
fn below_heading(passages: &[Prose], wanted: &[Wanted]) -> Option<String> {
    let holds = |heading: &&String| !held(heading, wanted).is_empty();
    passages.iter().find_map(|passage| {
        let heading = passage.headings.iter().find(holds)?;
        Some(passage.sentences.first().unwrap_or(heading).clone())
    })
}

/// How many of the wanted words a text holds, by weight: 0 to 1.
pub fn covered(text: &str, wanted: &[Wanted]) -> f64 {
    let all: f64 = wanted.iter().map(|one| one.weight).sum();
    let found: f64 = held(text, wanted).iter().map(|at| wanted[*at].weight).sum();
    if all > 0.0 { found / all } else { 0.0 }
}

/// Markdown as plain text: without the signs for headings, emphasis and code.
pub fn plain(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start_matches(['#', '>']).trim_start());
    lines.map(|line| line.replace(['*', '`'], "")).collect::<Vec<_>>().join("\n")
}

/// Which of the wanted words stand in a text, with or without their marks.
fn held(text: &str, wanted: &[Wanted]) -> Vec<usize> {
    let mut forms = HashSet::new();
    for term in terms(text) {
        forms.extend(term.folded);
        forms.insert(term.kept);
    }
    let holds = |one: &Wanted| {
        forms.contains(one.term.folded.as_ref().unwrap_or(&one.term.kept)) || forms.contains(&one.term.kept)
    };
    wanted.iter().enumerate().filter(|(_, one)| holds(one)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::prose::prose;
    use proptest::prelude::*;

    fn wanted(query: &str) -> Vec<Wanted> {
        terms(query).into_iter().map(|term| Wanted { term, weight: 1.0 }).collect()
    }

    #[test]
    fn a_snippet_is_where_the_words_are() {
        let text = format!(
            "{} The capital of Vietnam is Hà Nội. {}",
            "Nothing here. ".repeat(60),
            "Nor here. ".repeat(60)
        );
        let found = snippet(&text, &wanted("capital vietnam"));
        assert!(found.text.contains("Hà Nội"), "{}", found.text);
        assert!(found.length <= SNIPPET_CHARS);
    }

    #[test]
    fn an_answer_is_made_of_sentences_that_hold_the_words() {
        let told = |text: &str| titled(prose(text, true), "Birds");
        let passages =
            [told("The sky is blue. Wings make lift. Birds sing."), told("Lift grows with speed.")];
        let found = answer(&passages, &wanted("how do wings make lift"));
        assert!(found.starts_with("Wings make lift.") && !found.contains("Birds"), "{found}");
        assert_eq!(answer(&passages, &wanted("submarine")), "");
        let long = told(&format!("Wings {}. Wings bend.", "flap ".repeat(ANSWER_CHARS)));
        assert_eq!(answer(&[long], &wanted("wings")).chars().count(), ANSWER_CHARS, "it has an end");
    }

    #[test]
    fn kno_8_5_an_answer_reads_as_prose() {
        let told = |text: &str| titled(prose(text, true), "Birds");
        let passage =
            told("# How wings work\n\nWings make lift.\n\n## Wings in the rain\nRain makes\nwings wet.");
        assert_eq!(answer(&[passage], &wanted("wings")), "Wings make lift. Rain makes wings wet.");
        let only_above = told("# Wings\n\nThey make lift. They bend.");
        assert_eq!(answer(&[only_above], &wanted("wings")), "They make lift.");
        assert_eq!(
            answer(&[told("They sing. They fly.")], &wanted("birds")),
            "They sing.",
            "found by its title"
        );
        let nothing_else = told("# Wings\n```\ncode\n```");
        assert_eq!(answer(&[nothing_else], &wanted("wings")), "Wings");
        assert_eq!(answer(&[told("東京は日本の首都です。")], &wanted("東京")), "東京は日本の首都です。");
    }

    #[test]
    fn plain_text_has_no_marks() {
        assert_eq!(plain("## Title\n**bold** `code`"), "Title\nbold code");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_snippet_stands_where_it_says(text in "([a-z]{1,9}[ .?!\n]{1,2}|đường |東京。){0,300}", query in "[a-z]{1,9}( [a-z]{1,9}){0,4}") {
            let found = snippet(&text, &wanted(&query));
            let characters: Vec<char> = text.chars().collect();
            let cut: String = characters[found.offset..found.offset + found.length].iter().collect();
            prop_assert_eq!(cut, found.text);
        }
    }
}
