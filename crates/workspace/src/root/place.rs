//! Putting a file in its place: all of it or nothing, on stable storage, and back again if it is not to stay.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use orchestr8_contract::Code;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fstat, fsync, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::{Found, Inside, Links, Root, sha256};
use crate::refusal::{Refusal, errno};

/// The permissions of a file that was not there before.
pub const FRESH_MODE: u32 = 0o644;

/// A file that was put in its place. Dropped before it was kept, what was there before is put back.
pub struct Placed {
    root: Arc<Root>,
    path: Inside,
    before: Option<Found>,
    hash: String,
    /// Folders that had to be made, the outermost first.
    folders: Vec<String>,
    name_of_temporary: String,
    kept: bool,
}

impl Placed {
    /// Puts bytes in the place of what was found there. If something else is there by now, nothing happens.
    pub fn put(
        root: &Arc<Root>,
        path: &Inside,
        before: Option<Found>,
        bytes: &[u8],
        temporary: String,
    ) -> Result<Self, Refusal> {
        let mut folders = Vec::new();
        let written = (|| {
            let folder = root.folder_for(path, &mut folders)?;
            if root.look(path)? != before {
                let message = format!("'{path}' was changed by somebody else meanwhile");
                return Err(Refusal::new(Code::HashMismatch, message));
            }
            let mode = before.as_ref().map_or(FRESH_MODE, |before| before.mode);
            root.swap_in(path, &folder, bytes, mode, &temporary)
        })();
        if let Err(refusal) = written {
            root.remove_folders(&folders);
            return Err(refusal);
        }
        let hash = sha256(bytes);
        Ok(Self {
            root: root.clone(),
            path: path.clone(),
            before,
            hash,
            folders,
            name_of_temporary: temporary,
            kept: false,
        })
    }

    /// It stays.
    pub fn keep(mut self) {
        self.kept = true;
    }

    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub fn hash_before(&self) -> Option<String> {
        self.before.as_ref().map(Found::hash)
    }

    fn put_back(&self) -> Result<(), Refusal> {
        // Whatever somebody else has put there since is not ours to take away.
        let now = self.root.look(&self.path)?;
        if now.is_none_or(|now| now.hash() != self.hash) {
            return Ok(());
        }
        let folder = self.root.folder_for(&self.path, &mut Vec::new())?;
        match &self.before {
            Some(before) => {
                self.root.swap_in(&self.path, &folder, &before.bytes, before.mode, &self.name_of_temporary)
            }
            None => {
                let failed = |error| write_failed(&self.path, error);
                unlinkat(&folder, self.path.split().1, AtFlags::empty()).map_err(failed)?;
                fsync(&folder).map_err(failed)?;
                self.root.remove_folders(&self.folders);
                Ok(())
            }
        }
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if !self.kept {
            // There is nobody to tell; the next check of the workspace finds a file that no entry accounts for.
            let _ = self.put_back();
        }
    }
}

impl Root {
    /// The folder of a path, made if need be, following no link.
    fn folder_for(&self, path: &Inside, made: &mut Vec<String>) -> Result<OwnedFd, Refusal> {
        let failed = |error| write_failed(path, error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let Some(folder) = path.split().0 else {
            return openat(self.handle(), ".", flags | OFlags::CLOEXEC, Mode::empty()).map_err(failed);
        };
        let mut at = openat(self.handle(), ".", flags | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let mut end = 0;
        for name in folder.split('/') {
            end += name.len();
            let so_far = &folder[..end];
            at = match self.resolve(so_far, flags, Links::None) {
                Ok(handle) => handle,
                Err(Errno::NOENT) => {
                    match mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                        Ok(()) => made.push(so_far.to_owned()),
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(failed(error)),
                    }
                    fsync(&at).map_err(failed)?;
                    self.open_at(&Inside::own(so_far.to_owned()), flags, Links::None)?
                }
                Err(_) => self.open_at(&Inside::own(so_far.to_owned()), flags, Links::None)?,
            };
            end += 1;
        }
        Ok(at)
    }

    /// Writes beside it, flushes, and renames within the opened folder: whoever reads sees the old file or the new one.
    fn swap_in(
        &self,
        path: &Inside,
        folder: &OwnedFd,
        bytes: &[u8],
        mode: u32,
        temporary: &str,
    ) -> Result<(), Refusal> {
        let failed = |error| write_failed(path, error);
        let name = path.split().1;
        if let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        {
            return Err(Refusal::new(Code::FileWriteFailed, format!("'{path}' is no plain file")));
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(folder, temporary, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
        let written = (|| {
            let mut file = File::from(handle);
            file.write_all(bytes).map_err(|error| failed(errno(&error)))?;
            fchmod(&file, Mode::from_raw_mode(mode)).map_err(failed)?;
            fsync(&file).map_err(failed)?;
            self.still_holds(path, folder)?;
            renameat(folder, temporary, folder, name).map_err(failed)
        })();
        if written.is_err() {
            let _ = unlinkat(folder, temporary, AtFlags::empty());
            return written;
        }
        fsync(folder).map_err(failed)
    }

    /// The opened folder is still the one at this path: somebody may have carried it out of the workspace meanwhile.
    fn still_holds(&self, path: &Inside, folder: &OwnedFd) -> Result<(), Refusal> {
        let failed = |error| write_failed(path, error);
        let is = fstat(folder).map_err(failed)?;
        let same = match path.split().0 {
            None => (is.st_dev, is.st_ino) == self.id(),
            Some(name) => {
                let now = self.open_at(
                    &Inside::own(name.to_owned()),
                    OFlags::PATH | OFlags::DIRECTORY,
                    Links::None,
                )?;
                let now = fstat(&now).map_err(failed)?;
                (now.st_dev, now.st_ino) == (is.st_dev, is.st_ino)
            }
        };
        match same {
            true => Ok(()),
            false => {
                Err(Refusal::new(Code::OutsideWorkspace, format!("the folder of '{path}' was moved away")))
            }
        }
    }

    fn remove_folders(&self, made: &[String]) {
        for folder in made.iter().rev() {
            let path = Inside::own(folder.clone());
            let (parent, name) = path.split();
            let parent = match parent {
                Some(parent) => self.resolve(parent, OFlags::PATH | OFlags::DIRECTORY, Links::None),
                None => openat(self.handle(), ".", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()),
            };
            if let Ok(parent) = parent {
                // One that somebody has put something into stays.
                let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
            }
        }
    }
}

fn write_failed(path: &Inside, error: Errno) -> Refusal {
    let code = match error {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Code::InsufficientPermissions,
        Errno::NAMETOOLONG => Code::InvalidPath,
        _ => Code::FileWriteFailed,
    };
    Refusal::new(code, format!("'{path}' could not be written")).because_of(error)
}
