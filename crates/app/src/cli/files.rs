//! Files of workflows: reading them within limits, and writing new ones without ever overwriting anything.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_workflows::definition::{self, Problems, Workflow};
use orchestr8_workflows::limits::DEFINITION_BYTES;
use serde_json::{Value, json};

use super::Shell;
use crate::failure::Failure;
use crate::reach::problem_lines;

/// Text of a definition, from a file or, for `-`, from stdin. One byte more than allowed is read, so that the reader of
/// definitions says what is too long.
pub fn read(path: &str) -> Result<String, Failure> {
    let limit = DEFINITION_BYTES as u64 + 1;
    let mut text = Vec::new();
    let read = match path {
        "-" => io::stdin().take(limit).read_to_end(&mut text),
        path => fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut text)),
    };
    read.map_err(|cause| unreadable(path, &cause))?;
    String::from_utf8(text).map_err(|_| {
        Failure::new(Code::InvalidWorkflow, format!("{path} is not text in UTF-8"))
            .hinting("save it as UTF-8")
    })
}

/// A definition that has been checked.
pub fn workflow(path: &str) -> Result<Arc<Workflow>, Failure> {
    let text = read(path)?;
    definition::read(&text).map_err(|problems| invalid(path, &problems))
}

/// Everything that is wrong with a definition, one line each.
pub fn invalid(path: &str, problems: &Problems) -> Failure {
    let count = problems.0.len();
    let message = match count {
        1 => format!("{path} is not a valid workflow"),
        count => format!("{path} is not a valid workflow: {count} problems"),
    };
    Failure::new(Code::InvalidWorkflow, message).listing(problem_lines(&problems.to_value()))
}

/// Whether a word on the command line means a file rather than the id of something stored.
pub fn is_file(word: &str) -> bool {
    word == "-" || word.contains(['/', '.']) || Path::new(word).is_file()
}

pub fn unreadable(path: &str, cause: &io::Error) -> Failure {
    let code = match cause.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::PermissionDenied => Code::Unauthorized,
        _ => Code::InvalidArgument,
    };
    Failure::new(code, format!("{path}: {cause}")).hinting("check the path, and that the file may be read")
}

/// Files to be made.
pub struct Making {
    files: Vec<(PathBuf, String)>,
}

impl Making {
    pub fn new(files: Vec<(PathBuf, String)>) -> Self {
        Self { files }
    }

    /// Makes those that are not there yet, and says what it did with each.
    pub fn make(&self, shell: &Shell, dry_run: bool) -> Result<Vec<(PathBuf, &'static str)>, Failure> {
        let mut done = Vec::new();
        for (path, text) in &self.files {
            let what = match (path.exists(), dry_run) {
                (true, _) => "kept",
                (false, true) => "planned",
                (false, false) => {
                    create(path, text).map_err(|cause| {
                        Failure::new(Code::StoreFailed, format!("{}: {cause}", path.display()))
                            .hinting("check that the folder can be written; what was there is as it was")
                    })?;
                    "created"
                }
            };
            done.push((path.clone(), what));
        }
        let shown: Vec<Value> =
            done.iter().map(|(path, what)| json!({"file": path, "result": what})).collect();
        if shell.terminal.json {
            shell.terminal.value(&json!({"files": shown}));
        } else {
            for (path, what) in &done {
                shell.terminal.data(&format!("{what:8} {}", path.display()));
            }
        }
        Ok(done)
    }
}

/// Only if there is none: somebody else may have made it in the meantime.
fn create(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The name of a new thing: it becomes a file's name and an id.
pub fn name(text: &str) -> Result<&str, Failure> {
    const LETTERS: usize = 64;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if text.is_empty() || text.len() > LETTERS || !text.chars().all(fits) || text.starts_with('-') {
        return Err(Failure::new(Code::InvalidArgument, format!("'{text}' cannot be a name"))
            .hinting(format!("use up to {LETTERS} letters, digits, '-' and '_'")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_the_folder_are_refused() {
        for good in ["a", "order-saga", "A_1"] {
            assert_eq!(name(good), Ok(good));
        }
        for bad in ["", "../a", "a b", "a/b", "-a", "é", &"a".repeat(65)] {
            assert_eq!(name(bad).unwrap_err().exit_code(), 2, "{bad}");
        }
    }

    #[test]
    fn files_are_told_from_ids() {
        for file in ["-", "a.json", "./a", "workflows/a"] {
            assert!(is_file(file), "{file}");
        }
        assert!(!is_file("nightly-report"));
    }

    #[test]
    fn a_missing_file_is_not_found() {
        assert_eq!(read("no/such.json").unwrap_err().exit_code(), 3);
    }
}
