//! Tags of contracts that code, transcripts and documents cite: each has a row in a promise table.
use super::super::File;
use super::FOLDER;
use std::collections::BTreeMap;

/// The families of tags, and whether a digit follows their hyphen.
const FAMILIES: [(&str, bool); 7] = [
    ("MCP-", false),
    ("AACP-", false),
    ("SES-", true),
    ("WF-", true),
    ("KNO-", true),
    ("ERR-", true),
    ("ADR-0", true),
];
/// Families that names of tests begin with: `wf_19_5_…` cites WF-19.5.
const TEST_FAMILIES: [&str; 5] = ["wf", "kno", "err", "ses", "aacp"];
const READ: [&str; 6] = ["rs", "md", "transcript", "mjs", "ts", "tsx"];
/// Records whose sections are rows of another family: `ADR-019` section 5 is `WF-19.5`.
const SECTIONS: [(&str, &str); 1] = [("ADR-019", "WF-19")];
/// This folder spells tags of tests.
const OWN: &str = "xtask/src/tidy/promises/";

pub fn check(files: &[File], tags: &BTreeMap<String, String>) -> Vec<String> {
    let mut complaints = Vec::new();
    let read = |file: &&File| {
        READ.contains(&file.extension()) && !file.path.starts_with(FOLDER) && !file.path.starts_with(OWN)
    };
    for file in files.iter().filter(read) {
        for (index, line) in file.text.lines().enumerate() {
            let named = test_name(line).into_iter().flat_map(cited_by_name);
            for tag in cited(line).into_iter().chain(named).filter(|tag| !is_known(tags, tag)) {
                let what =
                    format!("{tag} has no row: add it to a table of {FOLDER}, with the test that would fail");
                complaints.push(file.complain(index + 1, what));
            }
        }
    }
    complaints
}

/// A row of this tag, or of parts of it: `WF-19.1` stands for `WF-19.1a` and `WF-19.1b`.
fn is_known(tags: &BTreeMap<String, String>, cited: &str) -> bool {
    let cited = SECTIONS.iter().find(|(record, _)| *record == cited).map_or(cited, |(_, family)| family);
    let parts = tags.range(cited.to_string()..).take_while(|(tag, _)| tag.starts_with(cited));
    parts.into_iter().any(|(tag, _)| !tag[cited.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

fn cited(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (family, needs_digit) in FAMILIES {
        for (at, _) in line.match_indices(family) {
            let begins = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
            if let Some(tag) = begins.then(|| tag_at(&line[at..], family, needs_digit)).flatten() {
                found.push(tag);
            }
        }
    }
    found
}

fn tag_at(text: &str, family: &str, needs_digit: bool) -> Option<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let run = text[..end].split("..").next()?.trim_end_matches(['.', '-']);
    let first = text[family.len()..].chars().next()?;
    // `MCP-Protocol-Version` is a header.
    let is_word = text[end..].starts_with(|c: char| c.is_ascii_lowercase())
        && run.ends_with(|c: char| c.is_ascii_uppercase());
    let fits = if needs_digit {
        first.is_ascii_digit()
    } else {
        first.is_ascii_uppercase() || first.is_ascii_digit()
    };
    (fits && !is_word && run.len() > family.len()).then(|| run.to_string())
}

fn test_name(line: &str) -> Option<&str> {
    let rest = line.trim().split_once("fn ")?.1;
    rest.split_once('(').map(|(name, _)| name)
}

fn cited_by_name(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('_').collect();
    let is_number = |part: &&&str| part.chars().all(|c| c.is_ascii_digit()) && !part.is_empty();
    if let Some(at) = parts.iter().position(|part| *part == "adr") {
        return parts.get(at + 1).filter(is_number).map(|number| format!("ADR-{number}"));
    }
    let family = parts.first().filter(|first| TEST_FAMILIES.contains(*first))?.to_uppercase();
    let section = parts.get(1).filter(is_number)?;
    let part = parts.get(2).filter(is_number).map(|part| format!(".{part}")).unwrap_or_default();
    Some(format!("{family}-{section}{part}"))
}

#[cfg(test)]
mod tests {
    use super::{cited, cited_by_name, is_known};
    use std::collections::BTreeMap;

    #[test]
    fn tags_are_found_in_sentences() {
        assert_eq!(
            cited("as MCP-ORDER-4 says, (SES-7.3). ADR-019, MCP-SCHEMA-1..5"),
            ["MCP-ORDER-4", "MCP-SCHEMA-1", "SES-7.3", "ADR-019"]
        );
        assert_eq!(cited("MCP-Protocol-Version, X-MCP-ID-1, AES-256, ERR-none, SES-"), Vec::<String>::new());
    }

    #[test]
    fn names_of_tests_cite_too() {
        let name = |name: &str| cited_by_name(name);
        assert_eq!(name("wf_19_5_syntax_is_refused"), Some("WF-19.5".into()));
        assert_eq!(name("kno_9_a_key_is_remembered"), Some("KNO-9".into()));
        assert_eq!(name("a_page_has_a_date_adr_003"), Some("ADR-003".into()));
        assert_eq!(name("a_key_is_remembered"), None);
    }

    #[test]
    fn a_section_is_known_by_its_parts() {
        let tags: BTreeMap<String, String> = ["WF-19.1a", "WF-19.10b", "KNO-12a"]
            .into_iter()
            .map(|tag| (tag.to_string(), String::new()))
            .collect();
        assert!(is_known(&tags, "WF-19.1") && is_known(&tags, "WF-19.10") && is_known(&tags, "KNO-12"));
        assert!(is_known(&tags, "ADR-019") && !is_known(&tags, "ADR-018"));
        assert!(!is_known(&tags, "KNO-1") && !is_known(&tags, "WF-19.2"));
    }
}
