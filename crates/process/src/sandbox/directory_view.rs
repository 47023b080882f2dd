//! A private view of a directory for one program: it sees the files as they are and can change them, and no other program sees the
//! changes. An overlay where the sandbox can mount one, a copy elsewhere. See ADR 60.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::scratch::ScratchDirectory;
use super::server::Sandbox;
use super::spec::{OverlayPlaces, SandboxLevel};
use super::tree_copy::{ChangedPaths, CopyLimits, TreeCopy, entries_of, open_beneath, parent_of};
use super::{Error, WorkingDirectory};

/// The parts of a scratch directory.
const UPPER: &str = "upper";
const WORK: &str = "work";
const COPY: &str = "copy";

/// What sizes on the disk are counted in.
const BLOCK_BYTES: u64 = 512;

/// Folders in a chain, beyond which a view is not looked at.
const DEPTH: usize = 200;

/// A private view. Dropped, it is removed, with all changes.
#[derive(Debug)]
pub struct DirectoryView {
    directory: WorkingDirectory,
    kind: Kind,
    /// The upper layer or the copy, opened.
    layer: OwnedFd,
    put: PathBuf,
    scratch: ScratchDirectory,
}

#[derive(Debug)]
enum Kind {
    Overlay(OverlayPlaces),
    Copy { copied: TreeCopy, is_shown_in_place: bool },
}

impl Sandbox {
    /// A private view of a directory. Only a copy has limits: an overlay costs the same however large the directory is.
    pub async fn private_view(
        &self,
        directory: &WorkingDirectory,
        limits: CopyLimits,
    ) -> Result<DirectoryView, Error> {
        let level = self.level().await?;
        self.remove_abandoned_views().await;
        self.settings().places.check(directory.path(), SandboxLevel::Namespaces)?;
        let directory =
            directory.try_clone().map_err(|error| Error::At(directory.path().to_owned(), error))?;
        let excluded = self.private_paths_in(directory.path());
        let with_overlay = match level {
            SandboxLevel::Namespaces => self.has_overlay(&directory).await,
            SandboxLevel::Landlock | SandboxLevel::Unconfined => false,
        };
        let made = tokio::task::spawn_blocking(move || match with_overlay {
            true => DirectoryView::overlay(directory),
            false => DirectoryView::copy(directory, &excluded, limits, level),
        });
        made.await.map_err(|error| Error::Setup("a private view", io::Error::other(error)))?
    }
}

impl DirectoryView {
    pub(super) fn overlay(directory: WorkingDirectory) -> Result<Self, Error> {
        let scratch = ScratchDirectory::create()?;
        let places = OverlayPlaces { upper: scratch.path().join(UPPER), work: scratch.path().join(WORK) };
        for path in [&places.upper, &places.work] {
            fs::create_dir(path).map_err(|error| Error::At(path.clone(), error))?;
        }
        // The top of the layer shows as the top of the directory.
        let at = |error: io::Error| Error::At(places.upper.clone(), error);
        let mode = directory.mode().map_err(at)? | 0o700;
        fs::set_permissions(&places.upper, std::os::unix::fs::PermissionsExt::from_mode(mode)).map_err(at)?;
        let layer = open_folder(&places.upper)?;
        Ok(Self { directory, kind: Kind::Overlay(places), layer, put: PathBuf::new(), scratch })
    }

    fn copy(
        directory: WorkingDirectory,
        excluded: &[PathBuf],
        limits: CopyLimits,
        level: SandboxLevel,
    ) -> Result<Self, Error> {
        let scratch = ScratchDirectory::create()?;
        let path = scratch.path().join(COPY);
        fs::create_dir(&path).map_err(|error| Error::At(path.clone(), error))?;
        let layer = open_folder(&path)?;
        let copied = TreeCopy::make(directory.handle(), &layer, excluded, limits)?;
        let is_shown_in_place = level == SandboxLevel::Namespaces;
        Ok(Self {
            directory,
            kind: Kind::Copy { copied, is_shown_in_place },
            layer,
            put: PathBuf::new(),
            scratch,
        })
    }

    /// What a program is to be started in.
    pub fn working_directory(&self) -> io::Result<WorkingDirectory> {
        match &self.kind {
            Kind::Overlay(places) => Ok(self.directory.try_clone()?.overlaid(places.clone())),
            Kind::Copy { is_shown_in_place: true, .. } => {
                Ok(WorkingDirectory::of(self.layer.try_clone()?, self.directory.path().to_owned()))
            }
            Kind::Copy { is_shown_in_place: false, .. } => {
                WorkingDirectory::open(&self.scratch.path().join(COPY))
            }
        }
    }

    /// Whether nothing had to be copied.
    pub fn is_overlay(&self) -> bool {
        matches!(self.kind, Kind::Overlay(_))
    }

    /// Puts a file into the view, in the place of what the directory has there. Once for each view, before its program starts.
    pub fn put(&mut self, path: &Path, bytes: &[u8], mode: RawMode) -> Result<(), Error> {
        self.try_put(path, bytes, mode).map_err(|error| Error::At(path.to_owned(), error))?;
        self.put = path.to_owned();
        Ok(())
    }

    fn try_put(&self, path: &Path, bytes: &[u8], mode: RawMode) -> io::Result<()> {
        let mut folders: Vec<&Path> =
            path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
        folders.reverse();
        for folder in folders {
            let is_there = open_beneath(self.directory.handle(), folder, OFlags::PATH | OFlags::DIRECTORY);
            let mode = is_there.and_then(|handle| Ok(rustix::fs::fstat(&handle)?.st_mode & 0o777 | 0o700));
            let (parent, name) = parent_of(&self.layer, folder)?;
            match mkdirat(&parent, &name, Mode::from_raw_mode(mode.unwrap_or(0o755))) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (parent, name) = parent_of(&self.layer, path)?;
        match unlinkat(&parent, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&parent, &name, flags, Mode::from_raw_mode(0o600))?);
        file.write_all(bytes)?;
        Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?)
    }

    /// Whether the file that was put is still what was put.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        let Ok(handle) = open_beneath(&self.layer, &self.put, OFlags::RDONLY | OFlags::NONBLOCK) else {
            return false;
        };
        let mut found = Vec::new();
        let limit = u64::try_from(bytes.len()).unwrap_or(u64::MAX).saturating_add(1);
        File::from(handle).take(limit).read_to_end(&mut found).is_ok() && found == bytes
    }

    /// Whether the layer or the copy takes more than so many bytes on the disk. What vanishes meanwhile is not counted.
    pub fn is_larger_than(&self, bytes: u64) -> bool {
        let (mut used, mut folders) = (0_u64, vec![PathBuf::new()]);
        while let Some(folder) = folders.pop() {
            for (path, found) in entries_of(&self.layer, &folder).unwrap_or_default() {
                used = used
                    .saturating_add(u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(BLOCK_BYTES));
                if used > bytes {
                    return true;
                }
                let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
                if is_folder && path.components().count() < DEPTH {
                    folders.push(path);
                }
            }
        }
        false
    }

    /// What the program changed beside the file that was put.
    pub fn changes(&self, most: usize) -> io::Result<ChangedPaths> {
        match &self.kind {
            Kind::Copy { copied, .. } => copied.changes(&self.layer, &self.put, most),
            Kind::Overlay(_) => self.changes_of_layer(most),
        }
    }

    fn changes_of_layer(&self, most: usize) -> io::Result<ChangedPaths> {
        let mut changed = ChangedPaths::default();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for (path, found) in entries_of(&self.layer, &folder)? {
                if path == self.put {
                    continue;
                }
                let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
                let was_folder = is_folder && (self.put.starts_with(&path) || self.had_folder(&path));
                if was_folder && path.components().count() < DEPTH {
                    folders.push(path);
                } else if !changed.add(&path, is_folder, most) {
                    return Ok(changed);
                }
            }
        }
        changed.paths.sort();
        Ok(changed)
    }

    fn had_folder(&self, path: &Path) -> bool {
        parent_of(self.directory.handle(), path)
            .and_then(|(parent, name)| Ok(statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW)?))
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    }
}

fn open_folder(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| Error::At(path.to_owned(), error.into()))
}
