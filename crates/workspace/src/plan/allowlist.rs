//! Which paths a plan allows: names, with `*` and `?` within one name and `**` for any number of them.

use std::path::Path;

use crate::root::Inside;

/// One line of an allow-list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<String>);

/// What is wrong with a line of an allow-list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// It leads out of the workspace.
    Escape,
    /// It is no path.
    Invalid,
    /// It allows everything.
    Unbounded,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        if text.starts_with(['/', '~']) || text.split('/').any(|name| name == "..") || text.contains(":\\") {
            return Err(Wrong::Escape);
        }
        let inside = Inside::parse(text, Path::new("/")).map_err(|_| Wrong::Invalid)?;
        if inside.as_str().contains([' ', '\t', '"', '<', '>', '|', '`']) {
            return Err(Wrong::Invalid);
        }
        let names: Vec<String> = inside.as_str().split('/').map(str::to_owned).collect();
        // Without one name that says something, a list allows everything.
        match names.iter().all(|name| name.chars().all(|c| matches!(c, '*' | '?'))) {
            true => Err(Wrong::Unbounded),
            false => Ok(Self(names)),
        }
    }

    pub fn allows(&self, path: &Inside) -> bool {
        let names: Vec<&str> = path.as_str().split('/').collect();
        // fits[i]: the patterns so far can stand for the first i names.
        let mut fits = vec![false; names.len() + 1];
        fits[0] = true;
        for pattern in &self.0 {
            let mut next = vec![false; names.len() + 1];
            if pattern == "**" {
                let mut any = false;
                for (at, fit) in fits.iter().enumerate() {
                    any |= *fit;
                    next[at] = any;
                }
            } else {
                for (at, name) in names.iter().enumerate() {
                    next[at + 1] = fits[at] && name_fits(pattern, name);
                }
            }
            fits = next;
        }
        fits[names.len()]
    }
}

fn name_fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    for sign in pattern {
        let mut next = vec![false; name.len() + 1];
        match sign {
            '*' => {
                let mut any = false;
                for (at, fit) in fits.iter().enumerate() {
                    any |= *fit;
                    next[at] = any;
                }
            }
            sign => {
                for (at, letter) in name.iter().enumerate() {
                    next[at + 1] = fits[at] && (sign == '?' || sign == *letter);
                }
            }
        }
        fits = next;
    }
    fits[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_allow_what_they_say() {
        let allows = |pattern: &str, path: &str| {
            Pattern::parse(pattern).unwrap().allows(&Inside::own(path.to_owned()))
        };
        assert!(allows("src/**", "src/a/b.rs") && allows("src/**/*.rs", "src/b.rs"));
        assert!(allows("src/*.rs", "src/b.rs") && !allows("src/*.rs", "src/a/b.rs"));
        assert!(!allows("src/**", "srcs/a") && !allows("src/a.rs", "src/a.rs.bak"));
        assert!(allows("a?c/x", "abc/x") && !allows("a?c/x", "ac/x"));
        assert!(allows("**/mod.rs", "mod.rs") && allows("**/mod.rs", "a/b/mod.rs"));
    }

    #[test]
    fn what_leads_out_or_says_nothing_is_no_pattern() {
        for (text, wrong) in [
            ("../x", Wrong::Escape),
            ("/etc", Wrong::Escape),
            ("~/x", Wrong::Escape),
            ("a/../../b", Wrong::Escape),
            ("**", Wrong::Unbounded),
            ("*/**", Wrong::Unbounded),
            ("", Wrong::Invalid),
            ("a b", Wrong::Invalid),
            ("a\\b", Wrong::Invalid),
        ] {
            assert_eq!(Pattern::parse(text), Err(wrong), "{text}");
        }
    }
}
