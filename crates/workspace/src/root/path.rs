//! A path inside a workspace, as far as its text can tell. What is really there is found out on opened handles.

use std::path::Path;

use orchestr8_contract::Code;

use crate::limits;
use crate::refusal::Refusal;

/// Names joined by `/`: none of them empty, `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inside(String);

impl Inside {
    /// Reads what a caller wrote. An absolute path counts if it begins with the root.
    pub fn parse(text: &str, root: &Path) -> Result<Self, Refusal> {
        if text.trim().is_empty() {
            return Err(Refusal::new(Code::InvalidInputValue, "path is empty"));
        }
        let invalid = |why: &str| Err(Refusal::new(Code::InvalidPath, format!("path {why}")));
        if text.len() > limits::PATH_BYTES {
            return invalid("is longer than 4096 bytes");
        }
        if text.chars().any(char::is_control) {
            return invalid("has a control character in it");
        }
        if text.contains('\\') {
            return invalid("has a backslash in it; write / between its parts");
        }
        if text.split('/').any(|name| name == "..") {
            let message = format!("'{text}' has '..' in it; name the file from the root of the workspace");
            return Err(Refusal::new(Code::PathTraversalBlocked, message));
        }
        let relative = match text.starts_with('/') {
            false => Path::new(text),
            true => Path::new(text).strip_prefix(root).map_err(|_| {
                Refusal::new(Code::OutsideWorkspace, format!("'{text}' is not inside the workspace"))
            })?,
        };
        let names: Vec<&str> = relative
            .to_str()
            .unwrap_or_default()
            .split('/')
            .filter(|name| !name.is_empty() && *name != ".")
            .collect();
        if names.is_empty() {
            return invalid("is the workspace itself");
        }
        if names.iter().any(|name| name.len() > limits::NAME_BYTES) {
            return invalid("has a name longer than 255 bytes in it");
        }
        Ok(Self(names.join("/")))
    }

    /// A path that this crate makes itself.
    pub(crate) fn own(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder it is in, if that is not the root, and its name there.
    pub fn split(&self) -> (Option<&str>, &str) {
        match self.0.rsplit_once('/') {
            Some((folder, name)) => (Some(folder), name),
            None => (None, &self.0),
        }
    }

    /// Whether it is in this folder, however deep.
    pub fn is_in(&self, folder: &str) -> bool {
        self.0.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl std::fmt::Display for Inside {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_people_mean_it() {
        let parse = |text: &str| {
            Inside::parse(text, Path::new("/w/s")).map(|inside| inside.0).map_err(|wrong| wrong.code)
        };
        assert_eq!(parse("a/b.rs").unwrap(), "a/b.rs");
        assert_eq!(parse("./a//b/.").unwrap(), "a/b");
        assert_eq!(parse("/w/s/a").unwrap(), "a");
        assert_eq!(parse("a/..b").unwrap(), "a/..b");
        for (text, code) in [
            ("", Code::InvalidInputValue),
            ("  ", Code::InvalidInputValue),
            ("..", Code::PathTraversalBlocked),
            ("a/../../b", Code::PathTraversalBlocked),
            ("/w/s/../x", Code::PathTraversalBlocked),
            ("/etc/passwd", Code::OutsideWorkspace),
            ("/w/sub", Code::OutsideWorkspace),
            (".", Code::InvalidPath),
            ("a\0b", Code::InvalidPath),
            ("..\\a", Code::InvalidPath),
        ] {
            assert_eq!(parse(text), Err(code), "{text:?}");
        }
    }
}
