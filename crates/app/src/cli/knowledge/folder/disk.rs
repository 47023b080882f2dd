//! The folder itself: finds its files without following links, and writes files whole or not at all.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use orchestr8_contract::Code;
use orchestr8_knowledge::folder::{self, File};
use orchestr8_knowledge::limits::{BODY_BYTES, DEPTH, METADATA_BYTES};

use super::super::super::files::unreadable;
use super::super::super::sessions;
use crate::failure::Failure;

/// Files of one folder; more belong into several.
const FILES: usize = 200_000;

/// A file that cannot be taken, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    pub what: String,
}

#[derive(Debug, Default)]
pub struct Scan {
    pub files: Vec<File>,
    pub problems: Vec<Problem>,
    /// Files that are no Markdown.
    pub others: usize,
}

/// Reads every `*.md` below a folder, in order of their paths. What begins with a dot is not looked at.
pub fn scan(root: &Path) -> Result<Scan, Failure> {
    let mut scan = Scan::default();
    let mut open = vec![(root.to_owned(), String::new())];
    while let Some((folder, prefix)) = open.pop() {
        let entries = fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = match entries {
            Ok(entries) => entries,
            Err(cause) if prefix.is_empty() => return Err(unreadable(&root.display().to_string(), &cause)),
            Err(cause) => {
                scan.problems.push(Problem { path: prefix, what: cause.to_string() });
                continue;
            }
        };
        for entry in entries {
            scan.take(&entry, &prefix, &mut open);
            if scan.files.len() > FILES {
                return Err(Failure::new(
                    Code::InvalidArgument,
                    format!("{} has more than {FILES} files", root.display()),
                )
                .hinting("take its folders one by one"));
            }
        }
    }
    scan.files.sort_by(|one, other| one.path.cmp(&other.path));
    scan.problems.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(scan)
}

impl Scan {
    fn take(&mut self, entry: &fs::DirEntry, prefix: &str, open: &mut Vec<(PathBuf, String)>) {
        let name = entry.file_name();
        let shown = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        let Some(name) = name.to_str() else {
            let path = shown(&name.to_string_lossy());
            return self.problems.push(Problem { path, what: String::from("its name is not UTF-8") });
        };
        if name.starts_with('.') {
            return;
        }
        let (path, is_document) = (shown(name), name.ends_with(".md"));
        match entry.file_type() {
            Err(cause) => self.problems.push(Problem { path, what: cause.to_string() }),
            // A link may lead anywhere, and round in circles.
            Ok(kind) if kind.is_symlink() => {
                self.problems
                    .push(Problem { path, what: String::from("it is a link, and links are not followed") });
            }
            Ok(kind) if kind.is_dir() && path.matches('/').count() >= DEPTH => {
                self.problems.push(Problem { path, what: format!("it is deeper than {DEPTH} folders") });
            }
            Ok(kind) if kind.is_dir() => open.push((entry.path(), path)),
            Ok(kind) if kind.is_file() && is_document => match text(&entry.path(), &path) {
                Ok(file) => self.files.push(file),
                Err(what) => self.problems.push(Problem { path, what }),
            },
            Ok(_) if is_document => {
                self.problems.push(Problem { path, what: String::from("it is no plain file") });
            }
            Ok(_) => self.others += 1,
        }
    }
}

fn text(file: &Path, path: &str) -> Result<File, String> {
    let limit = (BODY_BYTES + METADATA_BYTES) as u64 + 1;
    let mut bytes = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    read.map_err(|cause| cause.to_string())?;
    if bytes.len() as u64 == limit {
        return Err(folder::Error::TooLarge.to_string());
    }
    let text = String::from_utf8(bytes).map_err(|_| String::from("it is not text in UTF-8"))?;
    folder::read(path, &text).map_err(|wrong| wrong.to_string())
}

/// Where a path of ours is. Paths are made of titles without slashes, and never lead out of the folder.
pub fn place(root: &Path, path: &str) -> Result<PathBuf, Failure> {
    let is_inside = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    match is_inside && !path.contains('\\') {
        true => Ok(root.join(path)),
        false => Err(Failure::new(Code::InvalidArgument, format!("'{path}' is no path inside the folder"))),
    }
}

/// Writes a file, whole or not at all. A link in its way is replaced, never followed.
pub fn write(root: &Path, path: &str, text: &str) -> Result<(), Failure> {
    let file = place(root, path)?;
    make_folder(root, path)?;
    sessions::write(&file, text)
}

/// The folders above a path. One that is a link is not gone through: it may lead anywhere.
pub fn make_folder(root: &Path, path: &str) -> Result<(), Failure> {
    let mut at = root.to_owned();
    for part in path.split('/').rev().skip(1).collect::<Vec<_>>().into_iter().rev() {
        at.push(part);
        if fs::symlink_metadata(&at).is_ok_and(|found| found.is_symlink()) {
            let message = format!("{} is a link, and links are not followed", at.display());
            return Err(Failure::new(Code::InvalidArgument, message).hinting("make it a folder"));
        }
    }
    let folder = at;
    fs::create_dir_all(&folder).map_err(|cause| {
        Failure::new(Code::InvalidArgument, format!("{}: {cause}", folder.display()))
            .hinting("check that the folder can be written and has room")
    })
}

/// Keeps what a file holds beside it, under a name that is free.
pub fn keep_aside(root: &Path, path: &str) -> Result<Option<String>, Failure> {
    let file = place(root, path)?;
    if !file.exists() {
        return Ok(None);
    }
    let mut number = 1;
    loop {
        let name = if number == 1 { format!("{path}.mine") } else { format!("{path}.mine-{number}") };
        let aside = place(root, &name)?;
        match fs::hard_link(&file, &aside) {
            Ok(()) => return Ok(Some(name)),
            Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(cause) => return Err(unreadable(&name, &cause)),
        }
    }
}

/// Removes a file, and the folders that are empty without it.
pub fn remove(root: &Path, path: &str) -> Result<(), Failure> {
    let file = place(root, path)?;
    match fs::remove_file(&file) {
        Ok(()) => {}
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
        Err(cause) => return Err(unreadable(path, &cause)),
    }
    let mut folder = file.parent();
    while let Some(at) = folder.filter(|at| *at != root && at.starts_with(root)) {
        if fs::remove_dir(at).is_err() {
            break;
        }
        folder = at.parent();
    }
    Ok(())
}
