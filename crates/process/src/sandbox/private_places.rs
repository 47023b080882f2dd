//! Places of the host that programs must not see or change, and the working directories that would let them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Error;
use super::spec::SandboxLevel;

/// Places that no program of a sandbox gets at, however its working directory and the readable folders are chosen.
#[derive(Debug, Clone, Default)]
pub struct PrivatePlaces {
    /// State, data, configuration and keys of the server: neither seen nor created where they are missing.
    pub protected: Vec<PathBuf>,
    /// Credentials and other secrets: not seen where they exist.
    pub hidden: Vec<PathBuf>,
    /// Credentials by their path in a working directory: not seen where they exist.
    pub hidden_names: Vec<PathBuf>,
    /// Homes: neither they nor what contains them is a working directory, because files that start programs are in them.
    pub homes: Vec<PathBuf>,
    /// Folders whose files are started or read by programs outside of the sandbox: no working directory is in or around them.
    pub startup: Vec<PathBuf>,
}

impl PrivatePlaces {
    /// The real paths of what is protected, also of what does not exist yet.
    pub(super) fn real_protected(&self) -> Vec<PathBuf> {
        self.protected.iter().map(|path| real(path)).collect()
    }

    /// The real paths of what is hidden and exists.
    pub(super) fn real_hidden(&self, directory: Option<&Path>) -> Vec<PathBuf> {
        let inside =
            directory.into_iter().flat_map(|folder| self.hidden_names.iter().map(|name| folder.join(name)));
        let all = self.hidden.iter().cloned().chain(inside);
        let mut real: Vec<PathBuf> = all.filter_map(|path| path.canonicalize().ok()).collect();
        real.sort();
        real.dedup();
        real
    }

    /// Whether programs may work in a directory, given by its real path.
    pub(super) fn check(&self, directory: &Path, level: SandboxLevel) -> Result<(), Error> {
        if self.homes.iter().any(|home| real(home).starts_with(directory)) {
            return Err(Error::Home(directory.to_owned()));
        }
        let is_around = |place: &PathBuf| {
            let place = real(place);
            place.starts_with(directory) || directory.starts_with(&place)
        };
        if self.startup.iter().any(is_around) {
            return Err(Error::Startup(directory.to_owned()));
        }
        let (protected, hidden) = (self.real_protected(), self.real_hidden(Some(directory)));
        let is_reached = |place: &&PathBuf| directory.starts_with(place) || is_alias(directory, place);
        if let Some(place) = protected.iter().chain(&hidden).find(is_reached) {
            return Err(Error::Hidden(place.clone()));
        }
        // What is missing cannot be covered, so a program could create it.
        let is_open = |place: &&PathBuf| place.starts_with(directory) && fs::symlink_metadata(place).is_err();
        if let Some(place) = protected.iter().find(is_open) {
            return Err(Error::Hidden(place.clone()));
        }
        // Rules of Landlock add up, so that nothing inside of what is shown can be taken out again.
        let is_inside = |place: &&PathBuf| place.starts_with(directory) && !place.as_path().eq(directory);
        match (level, protected.iter().chain(&hidden).find(is_inside)) {
            (SandboxLevel::Landlock, Some(place)) => Err(Error::Hidden(place.clone())),
            (SandboxLevel::Landlock, None) | (SandboxLevel::Namespaces | SandboxLevel::Unconfined, _) => {
                Ok(())
            }
        }
    }
}

/// The real path, also of what does not exist: that of its nearest parent that does, and the rest.
fn real(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|parent| Some((parent, parent.canonicalize().ok()?)));
    match found {
        Some((parent, real)) => {
            path.strip_prefix(parent).map_or(real.clone(), |rest| match rest.as_os_str().is_empty() {
                true => real,
                false => real.join(rest),
            })
        }
        None => path.to_owned(),
    }
}

/// Whether a directory is in a place, or has it inside, under a path that does not say so: the same folder mounted twice.
fn is_alias(directory: &Path, place: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let is_same = |one: &Path, other: &Path| identity(one).is_some_and(|one| Some(one) == identity(other));
    let is_in = directory.ancestors().any(|parent| is_same(parent, place));
    // The root of the host may be shown elsewhere too, but is never a working directory.
    let is_above = place.ancestors().any(|parent| parent != directory && is_same(parent, directory));
    is_in || (is_above && !place.starts_with(directory))
}
