//! Names of files, and the ids of files that name none.

use std::collections::HashSet;

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use super::front::UNTITLED;
use crate::record::ROOT;

/// The ending of a document's file.
pub const ENDING: &str = ".md";

/// Bytes of a name without its ending: file systems take 255, and an id may follow.
const NAME_BYTES: usize = 180;

/// Names that one system keeps for itself, whatever follows them after a dot.
const TAKEN: [&str; 6] = ["con", "prn", "aux", "nul", "com1", "lpt1"];

/// The path without its ending, which is also the folder of what is below.
pub fn stem(path: &str) -> &str {
    path.strip_suffix(ENDING).unwrap_or(path)
}

pub fn parent_path(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

pub fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The id of a file that names none: always the same for the same path below the same document, so that importing twice
/// changes nothing.
pub fn id_of(top: &str, path: &str) -> String {
    let path = if top == ROOT { path.to_owned() } else { format!("{top}\n{path}") };
    let hash = Sha256::digest(format!("orchestr8-knowledge\n{path}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().hyphenated().to_string()
}

/// A title as a file name: what every file system takes.
pub fn slug(title: &str) -> String {
    let letter = |found: char| match found {
        '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' => '-',
        found if found.is_control() => '-',
        found => found,
    };
    let mut name = String::new();
    for found in title.trim().nfc().map(letter) {
        if name.len() + found.len_utf8() > NAME_BYTES {
            break;
        }
        name.push(found);
    }
    let name = name.trim_matches(['.', ' ']);
    match name {
        "" => UNTITLED.to_owned(),
        name if TAKEN.contains(&name.to_lowercase().split('.').next().unwrap_or_default()) => {
            format!("{name}-")
        }
        name => name.to_owned(),
    }
}

/// Names of one folder that are given away. Some file systems take `A` and `a` for the same.
#[derive(Default)]
pub struct Given(HashSet<String>);

impl Given {
    pub fn take(&mut self, name: &str) -> bool {
        self.0.insert(name.nfc().collect::<String>().to_lowercase())
    }

    /// A name for a document: its title, with its id where that is taken.
    pub fn give(&mut self, title: &str, id: &str) -> String {
        let name = slug(title);
        if self.take(&name) {
            return name;
        }
        let name = format!("{name}-{id}");
        self.take(&name);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_title_makes_a_name_that_file_systems_take() {
        for (title, name) in [
            ("Setup", "Setup"),
            ("a/b: c?", "a-b- c-"),
            ("..", "untitled"),
            (" .hidden. ", "hidden"),
            ("NUL", "NUL-"),
            ("con.txt", "con.txt-"),
            ("tab\there", "tab-here"),
            ("e\u{301}", "é"),
        ] {
            assert_eq!(slug(title), name, "{title:?}");
        }
        let long = slug(&"Ộ".repeat(500));
        assert!(long.len() <= NAME_BYTES && long.chars().all(|c| c == 'Ộ'));
    }

    #[test]
    fn names_that_differ_in_case_only_are_told_apart() {
        let mut given = Given::default();
        assert_eq!(given.give("Setup", "1"), "Setup");
        assert_eq!(given.give("setup", "2"), "setup-2");
    }

    #[test]
    fn ids_of_paths_do_not_change() {
        assert_eq!(id_of(ROOT, "guide/setup"), id_of(ROOT, "guide/setup"));
        assert_ne!(id_of(ROOT, "guide/setup"), id_of("x", "guide/setup"));
    }
}
