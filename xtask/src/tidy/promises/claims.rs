//! Finds the words that make a sentence a promise: "never", "at most", "survives", a number with its unit.
use std::ops::Range;

const WORDS: [&str; 26] = [
    "never",
    "always",
    "every",
    "exactly",
    "twice",
    "unless",
    "durable",
    "encrypted",
    "restart",
    "restarts",
    "at most",
    "at least",
    "no more than",
    "only once",
    "survives",
    "survive",
    "outlives",
    "refused",
    "refuses",
    "guarantees",
    "guaranteed",
    "cannot",
    "nothing",
    "no one",
    "loses",
    "lost",
];
const UNITS: [&str; 30] = [
    "%",
    "s",
    "ms",
    "second",
    "seconds",
    "minute",
    "minutes",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "KiB",
    "MiB",
    "GiB",
    "kB",
    "KB",
    "MB",
    "GB",
    "bytes",
    "characters",
    "times",
    "attempts",
    "items",
    "levels",
    "rounds",
    "requests",
    "connections",
    "entries",
];

/// Where in the text something is promised; text between backticks is left out.
pub fn claims(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let mut found: Vec<Range<usize>> = Vec::new();
    for word in WORDS {
        found.extend(lower.match_indices(word).map(|(at, _)| at..at + word.len()));
    }
    found.retain(|range| is_whole(text, range));
    found.extend(measures(text));
    let code = code_spans(text);
    found.retain(|range| !code.iter().any(|span| span.contains(&range.start)));
    found.sort_by_key(|range| range.start);
    found
}

/// Numbers that a unit follows.
fn measures(text: &str) -> Vec<Range<usize>> {
    let is_figure = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(|c: char| c.is_ascii_digit()).map(|start| at + start) {
        let digits = text[start..].find(|c| !is_figure(c)).unwrap_or(text.len() - start);
        let figures_end = start + text[start..start + digits].trim_end_matches([',', '.']).len();
        at = start + digits;
        let rest = &text[figures_end..];
        let unit_start = figures_end + (rest.len() - rest.trim_start_matches(' ').len());
        let unit = UNITS.iter().find(|unit| {
            text[unit_start..].starts_with(**unit) && is_whole(text, &(unit_start..unit_start + unit.len()))
        });
        if let Some(unit) =
            unit.filter(|_| is_whole(text, &(start..figures_end)) || unit_start == figures_end)
        {
            found.push(start..unit_start + unit.len());
        }
    }
    found
}

fn code_spans(text: &str) -> Vec<Range<usize>> {
    let ticks: Vec<usize> = text.match_indices('`').map(|(at, _)| at).collect();
    ticks.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Whether no letter or digit stands directly before or after.
fn is_whole(text: &str, range: &Range<usize>) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-');
    let is_mark = text[range.clone()].ends_with('%');
    edge(text[..range.start].chars().next_back().filter(|c| !is_mark || !c.is_ascii_digit()))
        && edge(text[range.end..].chars().next())
}

#[cfg(test)]
mod tests {
    use super::claims;

    fn found(text: &str) -> Vec<&str> {
        claims(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn words_of_promises_are_found_as_words() {
        assert_eq!(found("It never forgets; At most one is Refused."), ["never", "At most", "Refused"]);
        assert_eq!(found("nevertheless, `never`, almost"), Vec::<&str>::new());
    }

    #[test]
    fn numbers_are_found_with_their_units() {
        assert_eq!(
            found("after 30 s, 1.5 GiB or 10,000 items, 80 %"),
            ["30 s", "1.5 GiB", "10,000 items", "80 %"]
        );
        assert_eq!(found("version 2.1, port 8088, 3 steps of 4 and RFC 9110."), Vec::<&str>::new());
    }
}
