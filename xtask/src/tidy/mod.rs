//! The house rules a compiler does not know: lengths, first lines, names, marks, layers, SQL, streams, indexes, promises.
mod indexes;
mod layers;
mod lengths;
mod marks;
mod names;
mod promises;
mod source;
mod sql;
mod streams;

use crate::workspace;
use anyhow::{Context, Result};
use source::Source;
use std::path::{Path, PathBuf};

/// What is not ours to write, or written by a program.
const SKIPPED_FOLDERS: [&str; 5] = [".git", "target", "node_modules", "generated", "built"];
const TEXT: [&str; 15] = [
    "rs",
    "toml",
    "md",
    "json",
    "mjs",
    "ts",
    "tsx",
    "py",
    "sh",
    "txt",
    "yml",
    "yaml",
    "transcript",
    CASES,
    "sql",
];
/// Attacks and what comes of them: texts that are refused are written out in them.
const CASES: &str = "cases";

/// A text file of the repository.
pub struct File {
    /// Relative to the root, with forward slashes.
    pub path: String,
    pub text: String,
}

impl File {
    pub fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    fn complain(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// What was looked at and what is wrong.
pub struct Found {
    pub files: usize,
    pub complaints: Vec<String>,
}

pub fn check() -> Result<Found> {
    let root = workspace::root();
    let mut files = Vec::new();
    collect(&root, &root, &mut files)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut complaints = Vec::new();
    for file in &files {
        complaints.extend(marks::check(file));
        complaints.extend(lengths::check_file(file));
        if file.extension() == "rs" {
            let source = Source::read(&file.text);
            complaints.extend(lengths::check_rust(file, &source));
            complaints.extend(names::check(file, &source));
            complaints.extend(marks::check_rust(file, &source));
            complaints.extend(sql::check(file, &source));
            complaints.extend(streams::check(file));
        }
    }
    complaints.extend(indexes::check(&files));
    complaints.extend(promises::check(&files));
    complaints.extend(layers::check(&workspace::metadata()?));
    Ok(Found { files: files.len(), complaints })
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path: PathBuf = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                collect(root, &path, files)?;
            }
            continue;
        }
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if !TEXT.contains(&extension.as_str()) && path != root.join(".ci/run") {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        files.push(File { path: relative, text });
    }
    Ok(())
}
