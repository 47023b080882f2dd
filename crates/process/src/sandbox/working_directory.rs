//! A directory that programs work in, opened once: what is put in its place later is not used.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::spec::OverlayPlaces;

/// An opened directory with its real path.
#[derive(Debug)]
pub struct WorkingDirectory {
    handle: OwnedFd,
    path: PathBuf,
    overlay: Option<OverlayPlaces>,
}

impl WorkingDirectory {
    /// Opens a directory by its real path, in which there are no links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let real = path.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = match openat2(CWD, &real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS) => rustix::fs::open(&real, flags | OFlags::NOFOLLOW, Mode::empty()),
            opened => opened,
        }?;
        Ok(Self { handle, path: real, overlay: None })
    }

    /// One that is open already, with the real path it was opened by.
    pub fn of(handle: OwnedFd, path: PathBuf) -> Self {
        Self { handle, path, overlay: None }
    }

    /// The same directory, opened once more.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { handle: self.handle.try_clone()?, path: self.path.clone(), overlay: self.overlay.clone() })
    }

    /// Changes of a program in it go elsewhere.
    pub(super) fn overlaid(self, places: OverlayPlaces) -> Self {
        Self { overlay: Some(places), ..self }
    }

    pub(super) fn overlay(&self) -> Option<&OverlayPlaces> {
        self.overlay.as_ref()
    }

    pub(super) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Its permissions.
    pub(super) fn mode(&self) -> io::Result<u32> {
        Ok(fstat(&self.handle)?.st_mode & 0o777)
    }

    /// The file system that it is on.
    pub(super) fn device(&self) -> io::Result<u64> {
        Ok(fstat(&self.handle)?.st_dev)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A name of the handle in every process that still has it: a child before it becomes another program.
    pub(super) fn by_handle(&self) -> PathBuf {
        match cfg!(target_os = "linux") {
            true => PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd())),
            false => self.path.clone(),
        }
    }
}
