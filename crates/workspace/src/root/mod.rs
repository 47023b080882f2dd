//! The folder of a workspace, opened once. Everything in it is reached from that handle, and nothing else can be.
//!
//! Paths are resolved by the kernel of the machine (`openat2`, beneath the handle), so there is no moment between a check
//! and a use in which a link could be put in the place of a folder.

mod open;
mod path;
mod place;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use orchestr8_contract::{Code, canonical::hex};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::limits;
use crate::refusal::{Refusal, errno};

pub use open::Links;
pub use path::Inside;
pub use place::{FRESH_MODE, Placed};

/// An opened workspace.
#[derive(Debug)]
pub struct Root {
    handle: OwnedFd,
    path: PathBuf,
    id: (u64, u64),
}

/// A file as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

impl Found {
    pub fn hash(&self) -> String {
        sha256(&self.bytes)
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

impl Root {
    /// Opens a folder by its absolute path.
    pub fn open(text: &str) -> Result<Self, Refusal> {
        let failed = |message: String| Refusal::new(Code::SessionInitializationFailed, message);
        if !text.starts_with('/') || text.contains('\0') {
            return Err(failed(String::from("workspace_root must be an absolute path")));
        }
        let path = std::fs::canonicalize(text).map_err(|error| {
            failed(format!("workspace_root '{text}' cannot be opened")).because_of(errno(&error))
        })?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The real path has no links in it; one that is put there now is not followed.
        let handle = match openat2(CWD, &path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS) => rustix::fs::open(&path, flags | OFlags::NOFOLLOW, Mode::empty()),
            opened => opened,
        };
        let handle = handle.map_err(|error| {
            failed(format!("workspace_root '{text}' is no folder to be opened")).because_of(error)
        })?;
        let stat = fstat(&handle)
            .map_err(|error| failed(String::from("workspace_root cannot be read")).because_of(error))?;
        let id = (stat.st_dev, stat.st_ino);
        Ok(Self { handle, path, id })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder itself, by whatever name it is reached.
    pub fn id(&self) -> (u64, u64) {
        self.id
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    pub fn inside(&self, text: &str) -> Result<Inside, Refusal> {
        Inside::parse(text, &self.path)
    }

    /// A file's bytes and permissions. Links are followed as long as they stay inside.
    pub fn read(&self, path: &Inside) -> Result<Found, Refusal> {
        self.read_through(path, Links::Inside)
    }

    fn read_through(&self, path: &Inside, links: Links) -> Result<Found, Refusal> {
        // Without waiting: a pipe in the place of a file would keep us for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.open_at(path, flags, links)?);
        let failed = |why: String| Refusal::new(Code::FileReadFailed, format!("'{path}' {why}"));
        let stat = fstat(&file).map_err(|error| failed("cannot be read".into()).because_of(error))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => {
                return Err(Refusal::new(Code::InvalidPath, format!("'{path}' is a folder")));
            }
            _ => return Err(failed("is no plain file".into())),
        }
        let mut bytes = Vec::new();
        let limit = limits::FILE_BYTES as u64 + 1;
        let read = file.take(limit).read_to_end(&mut bytes);
        read.map_err(|error| failed("cannot be read".into()).because_of(errno(&error)))?;
        if bytes.len() > limits::FILE_BYTES {
            return Err(failed(format!("is larger than {} bytes", limits::FILE_BYTES)));
        }
        Ok(Found { bytes, mode: stat.st_mode & 0o7777 })
    }

    /// What is there to be replaced: nothing, or a plain file. No link is followed on the way to what is written.
    pub fn look(&self, path: &Inside) -> Result<Option<Found>, Refusal> {
        match self.read_through(path, Links::None) {
            Ok(found) => Ok(Some(found)),
            Err(refusal) if matches!(refusal.code, Code::FileNotFound | Code::PathNotFound) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// The names of the files in a folder, sorted; none if there is no such folder.
    pub fn list(&self, folder: &str) -> Result<Vec<String>, Refusal> {
        let folder = Inside::own(folder.to_owned());
        let handle = match self.open_at(&folder, OFlags::RDONLY | OFlags::DIRECTORY, Links::None) {
            Ok(handle) => handle,
            Err(refusal) if matches!(refusal.code, Code::FileNotFound | Code::PathNotFound) => {
                return Ok(Vec::new());
            }
            Err(refusal) => return Err(refusal),
        };
        self.names_in(handle)
    }

    /// The names in the root itself.
    pub fn names(&self) -> Result<Vec<String>, Refusal> {
        let failed =
            |error| Refusal::new(Code::FileReadFailed, "the workspace cannot be listed").because_of(error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, ".", flags, Mode::empty()).map_err(failed)?;
        self.names_in(handle)
    }

    fn names_in(&self, handle: OwnedFd) -> Result<Vec<String>, Refusal> {
        let failed = |error: Errno| {
            Refusal::new(Code::FileReadFailed, "the folder cannot be listed").because_of(error)
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(&handle).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_file = statat(&handle, name.as_str(), AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
            if is_file {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}
