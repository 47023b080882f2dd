//! Copies a directory tree within limits, and finds what was changed in the copy later.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, fstat, futimens, mkdirat,
    openat, openat2, readlinkat, statat, symlinkat,
};
use rustix::io::Errno;

use super::Error;

/// How large a copy may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyLimits {
    pub entries: u64,
    pub bytes: u64,
}

/// A file as it was right after it was copied: whatever changes it changes this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    mode: u32,
    size: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What was copied.
#[derive(Debug, Default)]
pub struct TreeCopy {
    stamps: BTreeMap<PathBuf, Stamp>,
    bytes: u64,
}

/// Paths that were changed, created or removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedPaths {
    /// From the directory; a new folder with all that is in it ends with `/`.
    pub paths: Vec<String>,
    /// There are more.
    pub is_cut: bool,
}

impl ChangedPaths {
    /// False: there is no room for more.
    pub fn add(&mut self, path: &Path, is_folder: bool, most: usize) -> bool {
        if self.paths.len() >= most {
            self.is_cut = true;
            return false;
        }
        let slash = if is_folder { "/" } else { "" };
        self.paths.push(format!("{}{slash}", path.display()));
        true
    }
}

/// Opens what is beneath a directory, following no link.
pub fn open_beneath(directory: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        return Ok(openat(directory, ".", flags | OFlags::CLOEXEC, Mode::empty())?);
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(match openat2(directory, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => openat(directory, path, flags, Mode::empty()),
        opened => opened,
    }?)
}

/// The entries of a folder beneath a directory, each with what it is.
pub fn entries_of(directory: &OwnedFd, folder: &Path) -> io::Result<Vec<(PathBuf, Stat)>> {
    let handle = open_beneath(directory, folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&handle)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let path =
            folder.join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name.to_bytes()));
        match statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => entries.push((path, found)),
            // It was removed meanwhile.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(entries)
}

impl TreeCopy {
    /// Copies files, folders and links with permissions and times. Pipes, sockets and devices are left out, and so is what is excluded.
    pub fn make(
        from: &OwnedFd,
        to: &OwnedFd,
        excluded: &[PathBuf],
        limits: CopyLimits,
    ) -> Result<Self, Error> {
        let mut copy = Self::default();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let at = |error: io::Error| Error::At(folder.clone(), error);
            for (path, found) in entries_of(from, &folder).map_err(at)? {
                if excluded.contains(&path) {
                    continue;
                }
                let at = |error: io::Error| Error::At(path.clone(), error);
                copy.count(&found, limits)?;
                match FileType::from_raw_mode(found.st_mode) {
                    FileType::Directory => {
                        let (parent, name) = parent_of(to, &path).map_err(at)?;
                        let mode = Mode::from_raw_mode(found.st_mode & 0o777 | 0o700);
                        mkdirat(&parent, &name, mode).map_err(|error| at(error.into()))?;
                        folders.push(path.clone());
                    }
                    FileType::RegularFile => copy_file(from, to, &path).map_err(at)?,
                    FileType::Symlink => copy_link(from, to, &path).map_err(at)?,
                    _ => continue,
                }
                let stamp = stamp(to, &path).map_err(at)?;
                copy.stamps.insert(path, stamp);
            }
        }
        Ok(copy)
    }

    fn count(&mut self, found: &Stat, limits: CopyLimits) -> Result<(), Error> {
        if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
            self.bytes += u64::try_from(found.st_size).unwrap_or(0);
        }
        let entries = u64::try_from(self.stamps.len()).unwrap_or(u64::MAX) + 1;
        match entries > limits.entries || self.bytes > limits.bytes {
            true => Err(Error::TooLarge { entries: limits.entries, mib: limits.bytes >> 20 }),
            false => Ok(()),
        }
    }

    /// What differs from the copy that was made, but for one path and the folders that it is in.
    pub fn changes(&self, copy: &OwnedFd, but: &Path, most: usize) -> io::Result<ChangedPaths> {
        let mut changed = ChangedPaths::default();
        let (mut folders, mut seen) = (vec![PathBuf::new()], 0);
        while let Some(folder) = folders.pop() {
            for (path, found) in entries_of(copy, &folder)? {
                let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
                let before = self.stamps.get(&path);
                seen += usize::from(before.is_some());
                if path == but {
                    continue;
                }
                let was_folder =
                    before.is_some_and(|stamp| FileType::from_raw_mode(stamp.mode) == FileType::Directory);
                let is_same = match is_folder {
                    true => was_folder || but.starts_with(&path),
                    false => before.is_some_and(|before| *before == Stamp::of(&found)),
                };
                if !is_same && !changed.add(&path, is_folder, most) {
                    return Ok(changed);
                }
                if is_folder && is_same {
                    folders.push(path);
                }
            }
        }
        if seen < self.stamps.len() {
            self.find_removed(copy, but, most, &mut changed);
        }
        changed.paths.sort();
        Ok(changed)
    }

    fn find_removed(&self, copy: &OwnedFd, but: &Path, most: usize, changed: &mut ChangedPaths) {
        for path in self.stamps.keys().filter(|path| *path != but) {
            let is_there = open_beneath(copy, path, OFlags::PATH).is_ok();
            if !is_there && !changed.add(path, false, most) {
                return;
            }
        }
    }
}

impl Stamp {
    fn of(found: &Stat) -> Self {
        Self {
            mode: found.st_mode,
            size: u64::try_from(found.st_size).unwrap_or(0),
            inode: found.st_ino,
            modified: (found.st_mtime, i64::try_from(found.st_mtime_nsec).unwrap_or(0)),
            changed: (found.st_ctime, i64::try_from(found.st_ctime_nsec).unwrap_or(0)),
        }
    }
}

fn stamp(directory: &OwnedFd, path: &Path) -> io::Result<Stamp> {
    let (parent, name) = parent_of(directory, path)?;
    Ok(Stamp::of(&statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW)?))
}

/// The opened folder that a path is in, and its name there.
pub fn parent_of(directory: &OwnedFd, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((open_beneath(directory, parent, OFlags::RDONLY | OFlags::DIRECTORY)?, name.into()))
}

/// Shares the blocks with the original where the file system can.
fn copy_file(from: &OwnedFd, to: &OwnedFd, path: &Path) -> io::Result<()> {
    let mut source = File::from(open_beneath(from, path, OFlags::RDONLY | OFlags::NONBLOCK)?);
    let found = fstat(&source)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it was replaced while it was copied"));
    }
    let (parent, name) = parent_of(to, path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(found.st_mode & 0o777);
    let mut target = File::from(openat(&parent, &name, flags, mode)?);
    if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
        // No further than it was long: another program may append to it without an end.
        let length = u64::try_from(found.st_size).unwrap_or(0);
        io::copy(&mut io::Read::take(&mut source, length), &mut target)?;
    }
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let nanoseconds = |value| i64::try_from(value).unwrap_or(0);
    let times = Timestamps {
        last_access: time(found.st_atime, nanoseconds(found.st_atime_nsec)),
        last_modification: time(found.st_mtime, nanoseconds(found.st_mtime_nsec)),
    };
    Ok(futimens(&target, &times)?)
}

fn copy_link(from: &OwnedFd, to: &OwnedFd, path: &Path) -> io::Result<()> {
    let (parent, name) = parent_of(from, path)?;
    let leads = readlinkat(&parent, &name, Vec::new())?;
    let (parent, name) = parent_of(to, path)?;
    Ok(symlinkat(leads, &parent, &name)?)
}
