//! What a program can read and not change in its working directory, and what it cannot move out of the way.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::Error;
use super::spec::{MissingPath, SealedPath};

/// Entries of folders that Landlock is told of one by one, because something beside them is sealed.
const ENTRIES: usize = 20_000;

/// The sealed paths of a directory that are there, or are made to be.
#[derive(Default)]
pub struct SealedPaths {
    /// Absolute.
    pub paths: Vec<PathBuf>,
    /// Folders that stand in for missing ones until the end.
    pub meanwhile: Vec<PathBuf>,
}

impl SealedPaths {
    /// Finds them. A link in the way would lead elsewhere when it is replaced, so it is an error.
    pub fn find(directory: &Path, sealed: &[SealedPath]) -> Result<Self, Error> {
        let mut found = Self::default();
        for SealedPath { path, missing } in sealed {
            let whole = directory.join(path);
            let Some(parent) = whole.parent().filter(|parent| parent.starts_with(directory)) else {
                continue;
            };
            if !is_plain_folder(directory, parent)? {
                continue;
            }
            match fs::symlink_metadata(&whole) {
                Ok(entry) if entry.is_symlink() => return Err(Error::Unsealed(whole, "it is a link")),
                Ok(_) => found.paths.push(whole),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::At(whole, error)),
                Err(_) if *missing == MissingPath::Creatable => {}
                Err(_) => {
                    make(&whole)?;
                    found.meanwhile.push(whole.clone());
                    found.paths.push(whole);
                }
            }
        }
        Ok(found)
    }
}

fn make(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(0o755).create(path) {
        // A file system that is read-only keeps programs from creating it too.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(()),
        Err(error) => Err(Error::At(path.to_owned(), error)),
        Ok(()) => Ok(()),
    }
}

/// Whether a path beneath a directory is a folder to which no link leads; an error if one does.
fn is_plain_folder(directory: &Path, path: &Path) -> Result<bool, Error> {
    for folder in between(directory, path).chain((path != directory).then(|| path.to_owned())) {
        match fs::symlink_metadata(&folder) {
            Ok(entry) if entry.is_symlink() => return Err(Error::Unsealed(folder, "it is a link")),
            Ok(entry) if entry.is_dir() => {}
            Ok(_) | Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

/// The folders between a directory and a path in it, without both, from the top.
pub fn between(directory: &Path, path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let parents = path.ancestors().skip(1).take_while(|parent| *parent != directory);
    let mut parents: Vec<PathBuf> = parents.map(Path::to_owned).collect();
    if !path.starts_with(directory) || path == directory {
        parents.clear();
    }
    parents.reverse();
    parents.into_iter()
}

/// Handles to what can be written in a directory when Landlock keeps some of it from being written: everything that is not
/// sealed. Nothing can be created beside what is sealed.
pub fn writable(directory: &Path, sealed: &[PathBuf]) -> Result<Vec<OwnedFd>, Error> {
    let closed: BTreeSet<PathBuf> =
        sealed.iter().flat_map(|path| between(directory, path).chain([directory.to_owned()])).collect();
    let (mut open, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(path) = left.pop() {
        if sealed.contains(&path) {
            continue;
        }
        if !closed.contains(&path) {
            let at = |error: rustix::io::Errno| Error::At(path.clone(), error.into());
            // A link is opened itself, so that it leads nowhere.
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            open.push(openat(CWD, &path, flags, Mode::empty()).map_err(at)?);
            continue;
        }
        left.extend(entries(&path)?);
        if open.len() + left.len() > ENTRIES {
            return Err(Error::Unsealed(path, "there are too many files beside it"));
        }
    }
    Ok(open)
}

/// What can be read of a folder that has hidden places in it: the entries beside them. A folder without any is given back itself.
pub fn readable(folder: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let (mut shown, mut left) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(path) = left.pop() {
        if hidden.iter().any(|hidden| path.starts_with(hidden)) {
            continue;
        }
        let is_link = fs::symlink_metadata(&path).is_ok_and(|entry| entry.is_symlink());
        match path.canonicalize() {
            // Where it leads may be hidden, or contain something that is.
            Ok(real) if is_link && path != folder => {
                let is_private = |hidden: &PathBuf| real.starts_with(hidden) || hidden.starts_with(&real);
                shown.extend((!hidden.iter().any(is_private)).then_some(path));
            }
            Ok(real) if hidden.iter().any(|hidden| hidden.starts_with(&real)) => {
                left.extend(entries(&real).unwrap_or_default());
            }
            Ok(_) => shown.push(path),
            Err(_) => {}
        }
        if shown.len() + left.len() > ENTRIES {
            return Vec::new();
        }
    }
    shown
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    read().map_err(|error| Error::At(folder.to_owned(), error))
}
