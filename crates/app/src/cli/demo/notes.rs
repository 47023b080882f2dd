//! What the steps of the demo note down themselves: one line each time they begin and each time they do something.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub struct Notes(PathBuf);

impl Notes {
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Adds a line; short lines of several processes do not mix.
    pub fn add(&self, what: &str, step: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
        file.write_all(format!("{what} {step}\n").as_bytes())
    }

    pub fn count(&self, what: &str, step: &str) -> usize {
        let line = format!("{what} {step}");
        super::text(&self.0).lines().filter(|noted| *noted == line).count()
    }

    /// True for the first with this key, ever: what a payment service does with an idempotency key.
    pub fn is_new(&self, key: &str) -> io::Result<bool> {
        let name: String =
            key.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
        let path = self.0.with_file_name(format!("key-{name}"));
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_once_and_lines_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::at(folder.path().join("notes.txt"));
        assert_eq!(notes.count("begun", "a"), 0);
        notes.add("begun", "a").unwrap();
        notes.add("begun", "ab").unwrap();
        notes.add("begun", "a").unwrap();
        assert_eq!((notes.count("begun", "a"), notes.count("done", "a")), (2, 0));
        assert!(notes.is_new("e:a").unwrap());
        assert!(!notes.is_new("e:a").unwrap());
        assert!(notes.is_new("e:b").unwrap());
    }
}
