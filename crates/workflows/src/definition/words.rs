//! The words of a definition: what an id, a version and a name may look like, and what somebody probably meant.

use super::limits;
use crate::expression::DANGEROUS;

/// `^[a-zA-Z0-9_-]+$`, not too long, and nothing expressions refuse.
pub fn is_id(text: &str) -> bool {
    is_word(text, limits::ID_CHARACTERS) && !DANGEROUS.contains(&text)
}

/// Why a text is no id.
pub fn id_hint(text: &str) -> &'static str {
    match DANGEROUS.contains(&text) {
        true => "This name is refused everywhere; use another one.",
        false => "Use letters, digits, - and _ only, 128 at most.",
    }
}

/// What the environment calls its variables.
pub fn is_env_name(text: &str) -> bool {
    is_word(text, limits::NAME_CHARACTERS)
        && !text.contains('-')
        && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// For example `@orchestr8/echo`, `research`, `http://…` not.
pub fn is_agent(text: &str) -> bool {
    let body = text.strip_prefix('@').unwrap_or(text);
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':'))
    };
    text.len() <= limits::NAME_CHARACTERS && body.split('/').all(is_part)
}

/// Semantic Versioning 2.0.0.
pub fn is_semver(text: &str) -> bool {
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let is_name = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_pre =
        |part: &str| is_name(part) && (is_number(part) || !part.bytes().all(|byte| byte.is_ascii_digit()));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_pre))
        && build.is_none_or(|build| build.split('.').all(is_name))
}

/// The nearest of the known names, if it is near enough to be a slip of the hand.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > limits::NAME_CHARACTERS {
        return None;
    }
    let lower = name.to_lowercase();
    let near = known.into_iter().map(|known| (distance(&lower, &known.to_lowercase()), known));
    let (distance, best) = near.min_by_key(|(distance, _)| *distance)?;
    let length = name.chars().count();
    // A name of one letter is near to every other one, and means none of them.
    (distance <= (length / 3).max(1) && distance < length).then_some(best)
}

/// How many letters must be added, dropped, changed or swapped with their neighbour to get from one word to the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // Three rows of the usual table: the one before last is for swapped neighbours.
    let mut before_last = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1; other.len() + 1];
        for (j, wanted) in other.iter().enumerate() {
            let change = usize::from(letter != wanted);
            row[j + 1] = (last[j + 1] + 1).min(row[j] + 1).min(last[j] + change);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *wanted {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

/// A list for people: `a, b or c`.
pub fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Somebody's text, short enough for a message.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{:?}", format!("{}…", &text[..at])),
        None => format!("{text:?}"),
    }
}

fn is_word(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for good in ["0.0.0", "1.2.3", "1.0.0-alpha.1", "1.0.0-0a", "1.0.0+01.b", "10.20.30-x-y+z"] {
            assert!(is_semver(good), "{good}");
        }
        for bad in
            ["", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.x", "v1.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.3 "]
        {
            assert!(!is_semver(bad), "{bad}");
        }
    }

    #[test]
    fn ids_and_names_are_plain() {
        assert!(
            is_id("fetch-data_2")
                && is_env_name("API_URL")
                && is_agent("@orchestr8/echo")
                && is_agent("a:b.c")
        );
        for bad in ["", "a b", "é", "a.b", "constructor", &"x".repeat(129)] {
            assert!(!is_id(bad), "{bad}");
        }
        assert!(!is_env_name("1A") && !is_env_name("A-B"));
        for bad in ["", "@", "@/x", "a//b", "a b", "-a", "../x", "@@a"] {
            assert!(!is_agent(bad), "{bad}");
        }
    }

    #[test]
    fn distances_are_counted_in_slips() {
        for (one, other, slips) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("steps", "stpes", 1),
            ("kitten", "sitting", 3),
            ("é", "e", 1),
        ] {
            assert_eq!(distance(one, other), slips, "{one} {other}");
        }
    }

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        assert_eq!(nearest("dependancies", ["dependencies", "id"]), Some("dependencies"));
        assert_eq!(nearest("colour", ["dependencies", "id"]), None);
        assert_eq!(nearest("x", ["a", "b"]), None);
        assert_eq!(either(&["a", "b", "c"]), "a, b or c");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), 63);
    }
}
