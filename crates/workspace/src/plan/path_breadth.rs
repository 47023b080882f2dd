//! Whether an allow-list leaves anything out. It is tried on paths that no project has: one that allows those of most initials,
//! in any of several shapes, allows whatever comes.

use super::allowlist::Pattern;
use crate::root::Inside;

/// Initials of the names that are tried.
const INITIALS: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

/// Shapes of paths; `n` stands for a name.
const SHAPES: [&str; 9] = ["n", "n.n", ".n", "n/n", "n/n.n", ".n/n", "n/n/n.n", "n/n/n/n/n.n", "n_n-n"];

/// How often a name repeats its letter.
const LENGTHS: [usize; 4] = [1, 2, 3, 6];

/// Whether the patterns together allow most paths of some shape.
pub fn is_unbounded(patterns: &[Pattern]) -> bool {
    let allows = |path: &str| {
        let path = Inside::own(path.to_owned());
        patterns.iter().any(|pattern| pattern.allows(&path))
    };
    SHAPES.iter().any(|shape| {
        LENGTHS.iter().any(|length| {
            let tried =
                INITIALS.chars().map(|letter| shape.replace('n', &letter.to_string().repeat(*length)));
            tried.filter(|path| allows(path)).count() * 2 > INITIALS.len()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_unbounded(list: &[&str]) -> bool {
        let patterns: Vec<Pattern> = list.iter().filter_map(|text| Pattern::parse(text).ok()).collect();
        patterns.len() < list.len() || super::is_unbounded(&patterns)
    }

    #[test]
    fn lists_that_leave_nothing_out_are_found() {
        for list in [
            &["**"][..],
            &["**/*.*"],
            &["*.*"],
            &["**/.*"],
            &["?*/**"],
            &["**/?*.?*"],
            &["**/???"],
            &["*/*.*"],
            &["**/*_*"],
            &["./**/*"],
            &["**/**/*.*"],
        ] {
            assert!(is_unbounded(list), "{list:?}");
        }
        let letters: Vec<String> = ('a'..='z').map(|letter| format!("{letter}*/**")).collect();
        assert!(is_unbounded(&letters.iter().map(String::as_str).collect::<Vec<_>>()));
        for list in [
            &["src/**"][..],
            &["**/*.rs"],
            &["**/mod.rs", "src/*"],
            &["src/**", "tests/**", "docs/**", "README.md", "Cargo.toml", "*.md"],
            &["a/?"],
            &["Makefile"],
        ] {
            assert!(!is_unbounded(list), "{list:?}");
        }
    }
}
